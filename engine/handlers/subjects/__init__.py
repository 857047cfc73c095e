"""The subject of a command, by one interface: the model of blocks, or a module of the user's code.

Not here: the answers that are given with it (the other handlers), and how modules are found and
made (`engine/subjects`).
"""
