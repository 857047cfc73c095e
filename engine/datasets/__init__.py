"""Data sets: bundled ones and files, read, checked, split and made ready as tensors. No reader runs
what a file holds: pickles are refused.

Not here: how batches become a loss (`training`), or which data set a project names (`project`).

A transform of samples is a function in `transforms` of a batch and a generator, in plain torch,
because scripts carry its source; with its name in `DRAWN` there, and a line in `[transforms]` of
`project/catalogue.toml`, whose parameters `python -m engine.models.signatures` writes out.
"""
