"""The trace of code that ran, stepped through line by line and call by call.

Not here: the editor of the console (`console`).
"""
