"""Running the user's code without a lasting effect: what its modules hold and the states of random
generators are put back.

Not here: the states of a run that it goes back to (`training.checkpoints`).
"""
