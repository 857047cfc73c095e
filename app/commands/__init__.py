"""The commands of the command line: train, export, exec and doctor.

In: one file per command, and the conversation with an engine process. Not in: the options (`cli`),
and the tour, which drives the real window.
"""
