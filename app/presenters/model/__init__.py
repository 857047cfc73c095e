"""Presenters of the Model workspace: the canvas, its edits, and the check of every revision.

Not in: what an edit does to the document, which is `engine.project.edits`.
"""
