"""Presenters turn signals of widgets into edits and commands, and show projects and snapshots.

In: one presenter for the window's frame, and one for each workspace or tab; `questions` asks the
engine. Not in: widgets, and the connections between presenters (`app.workspaces`).
"""
