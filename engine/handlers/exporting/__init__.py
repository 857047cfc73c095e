"""Answers about files that leave the program, and weights that come in.

Not here: how the files are written (`exporting`) and read back (`verifier`).
"""
