"""What every diagram has: a view to pan and zoom, its zoom bar and map, fonts, saved pictures.

Not here: what the diagrams show (`canvas`, `graph`, `memory`).
"""
