"""The modules that the user's code imports from its own folders, kept apart for each file.

Not here: which files run (`subjects`), and what a cell is (`console`).

Two projects may each have a `model.py`. Each file that runs gets a `FolderModules`, which is in
`sys.modules` and `sys.path` while code of that file runs. An import statement in a file of the
folder always looks there, whoever calls the code and whatever else runs: its module has an
`__import__` of its own among its builtins. `ConsoleModules` does the same for cells.
"""
