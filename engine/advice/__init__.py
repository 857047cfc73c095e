"""Findings in a loop of the user's own, of which torch does not complain: each with evidence and a
fix.

Not here: the words for torch's errors (`tensors.error_help`, `operations.failures`).

One file for each kind of finding. `adviser` makes them all and calls them at a loop's steps, losses
and calls of torch.
"""
