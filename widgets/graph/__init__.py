"""The picture of an autograd graph: boxes that open in place, search, marks, files.

Not here: how it is painted (`painting`), the positions of its boxes (`layout`), stepping through it
(`backward`).
"""
