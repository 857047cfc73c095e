"""Answers about two modules, or one before and after.

Not here: the structure of one module (`handlers.subjects`).
"""
