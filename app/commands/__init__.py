"""The commands of the command line, one file for each, and the conversation with an engine process.

Not here: which commands there are (`cli`).
"""
