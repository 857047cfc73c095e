"""The programs of a run by several processes: torch's launcher, and one rank of it.

Not here: what ranks share (`training.distributed`), and the run that the window sees (`handlers`).
"""
