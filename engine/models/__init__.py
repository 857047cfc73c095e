"""Models made of blocks: built, checked, stepped, and written out as Python. Not in it: modules of
the user's code, in `subjects`, and training."""
