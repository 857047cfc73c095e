"""What a workspace works on: a module, and where its batches and its loss come from.

Not here: how the model of blocks is built (`models`), or how a subject is trained (`training`).
"""
