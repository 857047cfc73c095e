"""The boxes of a graph: one per call of a module, nested, and folded where they repeat. No Qt.

Not here: where boxes lie (`layout`), how they are painted (`graph`).
"""
