"""The subject of a workspace: a module, and where its batches and its loss come from.

Not here: how the model of blocks is built (`models`), or how a subject is trained (`training`).

The document names the subject (`project.subject`): the canvas, or a module or a function of
tensors, of the console or of a Python file, which runs only by a `RunFileCommand`. A command that
works on a subject carries it; its handler asks `handlers.subjects` for the module, and for the
objective, which gives batches and the loss. Cells reach the live model of the canvas as `canvas`
(`canvas`).
"""
