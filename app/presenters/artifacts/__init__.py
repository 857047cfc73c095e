"""Presenters of the page Files, which tie it to the engine, the subject and the console.

Not here: the project's own file (`app.files`).
"""
