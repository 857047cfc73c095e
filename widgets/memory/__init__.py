"""The storage under a tensor as a strip of cells, and the map of who shares memory.

Not here: the elements as a table or picture (`values`).
"""
