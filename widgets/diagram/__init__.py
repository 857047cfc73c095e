"""The parts of every diagram: a view to pan and zoom, its zoom bar and map, fonts, saved pictures.

Not here: what the diagrams show (`canvas`, `graph`, `memory`).
"""
