"""Answers about subjects: what leads to one, the structure of one, and how two differ.

Not here: what a subject is (`handlers/subjects`).
"""
