"""Presenters: signals of widgets in, edits and commands out; projects and snapshots shown.

In: one presenter for the frame and for each workspace or tab; `questions` asks the engine. Not in:
widgets, and the wiring of presenters to each other (`app.application`).
"""
