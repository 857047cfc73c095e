"""Backward passes as a Python script that leaves the same bits in `.grad`.

Not here: running the passes (`backward`), the record of cells and passes (`console.journal`).
"""
