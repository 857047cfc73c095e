"""The canvas of a model: its blocks and wires, and the gestures, keys and menus that edit them.

Not here: the positions of blocks (`layout`), panning and zooming (`diagram`).
"""
