"""Presenters turn signals of widgets into edits and commands, and show projects and snapshots.

Not here: widgets, and the connections between workspaces (`app.workspaces`).

One presenter for the window's frame, and one for each workspace or tab. They connect to the store's
signals; `questions` gives the answers to one question to whoever asked. `python_files` runs a file
only after the user has agreed to its content; until then commands that name it fail in words.
`engine` tells in a banner that the engine has ended, and starts a new one.
"""
