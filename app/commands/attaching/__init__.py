"""The commands for scripts that a window attaches to: calling one that listens, and starting one.

Not here: the window (`app.application`), and what happens in the script (`engine.attached`).
"""
