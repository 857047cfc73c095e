"""The panels around the canvas of the Model workspace: palette, properties, problems, Python.

Not here: the canvas with its blocks and wires (`canvas`).
"""
