"""Answers to the window's commands: one function per command, which calls the rooms below.

Not here: any work of torch. A command names its handler; `session` looks it up and runs it.
"""
