"""The processes of a run: who they are, how they are, what they print.

Not here: how many there are to be (`widgets/training/settings`).
"""
