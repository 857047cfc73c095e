"""The Python console: input, output, history, completion and the list of variables.

Not here: running code (`engine.console`).
"""
