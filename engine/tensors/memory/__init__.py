"""The storage under a tensor: its cells, who shares it, and where an element lies.

Not here: the elements as numbers (`values`), who wrote them (`recording.writes`).
"""
