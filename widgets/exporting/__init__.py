"""What can be exported and in which format, the options of one, its progress and its result.

Not here: the names of the files, which the presenter asks for.
"""
