"""Presenters of the Model workspace: the canvas, its edits, and the check of every revision.

Not here: how an edit changes the document (`engine.project.edits`).
"""
