"""TensorBoard's event files: written from the folders of runs, and their scalars read.

Not here: the folders of runs (`engine/runs`). Both sides need the extra `tensorboard`.
"""
