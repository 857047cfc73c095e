"""Exporting: the formats in words, the command, and what it answers.

Not here: the weights that are saved beside a project.
"""
