"""Models made of blocks: built, checked, stepped, and written out as Python.

Not here: modules of the user's code (`subjects`), and training (`training`).

`signatures` reads the parameters of all kinds of block from the installed torch, and writes them to
`project/catalogue.json`.
"""
