"""Training by several processes, the ranks: sharing batches and gradients, and starting the ranks.

Not here: the program that a rank runs (`engine/ranks`), what it needs of the console
(`console.elsewhere.handing`).

`launch` starts the ranks through torch's launcher. Each takes its rows of every batch; before each
step all wait for the word of rank 0 (`Ranks.agree`), so that it pauses, ends or adjusts the run for
all. Rank 0 writes the checkpoints.
"""
