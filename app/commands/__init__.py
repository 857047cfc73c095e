"""What the command line does without a window: train, export, exec and doctor.

In: one file a command, and the conversation with an engine process. Not in: the options (`cli`)
and the tour, which drives the real window.
"""
