"""Files that hold tensors or programs: their index first, numbers on demand, and how two differ.
Nothing that is read can run code.

Not here: loading weights into a module, and writing files (`exporting`); which layers the keys of
a state_dict suggest (`project.layers`).

A format is a reader in `weights` or `programs` which gives an `Artifact`, and its line in
`opening`. It imports nothing that the file names, bounds all that it reads, and gets broken files
in `tests/engine/artifacts/hostile.py`.
"""
