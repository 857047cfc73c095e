"""The boxes of a graph: one per call of a module, nested, and folded where they repeat. No Qt.

Not here: the positions of boxes (`layout`), their painting (`graph`).
"""
