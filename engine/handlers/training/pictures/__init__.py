"""Answers with pictures of a run: over its steps, of one step's memory, of the loss around the
weights, and of what the model predicts.

Not here: the run itself and its files (`handlers/training`).
"""
