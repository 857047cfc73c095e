"""The storage of a tensor as a strip of cells, and the map of tensors that share memory.

Not here: the elements as a table or picture (`values`).
"""
