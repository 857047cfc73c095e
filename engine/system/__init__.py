"""What all rooms stand on: errors, the flags of the engine, its devices and folders, which files
are the user's, how processes of this program are started, and what torch keeps private.

Not here: what torch and the user's code do (`recording`), and the ways to a process (`process`).
"""
