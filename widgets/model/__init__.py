"""The Model workspace beside its canvas: palette, properties, problems, and the Python.

Not here: the canvas with its blocks and wires (`canvas`).
"""
