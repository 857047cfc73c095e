"""Messages about the files of the engine's machine, for a window on another one.

Not here: what an engine does with files of its own accord (`exporting`, `datasets`, `training`).
"""
