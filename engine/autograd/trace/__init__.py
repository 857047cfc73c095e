"""A recording as a program that can be stepped through in time, call by call and line by line.

Not here: making the recording (`recording`).
"""
