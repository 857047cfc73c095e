"""The parts that all readers share: the index of a file, archives, described pickles, bytes on
demand.

Not here: any one format.
"""
