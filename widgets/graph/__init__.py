"""The picture of an autograd graph: boxes that open in place, search, marks, files.

Not here: where its boxes lie (`layout`), stepping through it (`backward`).
"""
