"""Choosing a file or a folder of the engine's machine, where that is another one.

Not here: the system's dialogs for files of this machine (`app.window.dialogs`).
"""
