"""Answers to the window's commands: one function per command, which calls the other rooms.

Not here: torch's own work. A command names its handler; `session` finds it and runs it.
"""
