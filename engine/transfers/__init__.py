"""Files of this machine for a window on another one: what a folder holds, files in parts.

Not here: what the files mean (`artifacts`, `datasets`, `exporting`).

The window has them by `files.there` (`app/other_files.py`). Projects stay on the window's machine.
"""
