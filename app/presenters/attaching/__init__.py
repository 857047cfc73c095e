"""Attaching the window to a process that listens: calling it, leaving it, what both say a second.

Not here: what is shown of the process, which the other presenters do as for an engine of the
window's own.

`place` says where the window's own engine runs, `engine_files` shows files of that machine, and
`ranks` attaches to the other ranks of a run.
"""
