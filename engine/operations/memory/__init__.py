"""The storage under a tensor: its cells, the tensors that share it, and each element's cell.

Not here: the elements as numbers (`values`), who wrote them (`recording.writes`).
"""
