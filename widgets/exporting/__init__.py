"""Exporting: the things to export and their formats, the options of a format, its progress and its
result.

Not here: the names of the files, which the presenter asks for.
"""
