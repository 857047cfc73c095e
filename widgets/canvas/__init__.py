"""A canvas of blocks and wires; and the view, zoom bar and map that other pictures share with it.

Not here: where blocks lie (`layout`), the picture of an autograd graph (`graph`).
"""
