"""Attaching the window to a process that listens: calling it, leaving it.

Not here: what is shown of the process, which the other presenters do as for an engine of the
window's own.

`ranks` attaches to the other ranks of a run.
"""
