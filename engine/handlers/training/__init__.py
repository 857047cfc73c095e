"""Answers to commands about runs of Train.

Not here: the loop and its state (`engine/training`).

A step that is stepped by less than a phase is held inside of it (`stepping`): meanwhile the engine
answers commands as while code of the user's is held (`lab/holding`).
"""
