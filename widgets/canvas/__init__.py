"""The canvas of blocks and wires, and the view, zoom bar and map that other pictures use, too.

Not here: the positions of blocks (`layout`), the picture of an autograd graph (`graph`).
"""
