"""Messages about a data set: what is in it, before anything is trained.

Not here: which data set a project names (`project/document.py`).
"""
