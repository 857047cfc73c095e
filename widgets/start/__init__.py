"""The Start page: the ways into the program. It emits what the reader chose.

Not here: opening files and asking the engine (`app.presenters.start`).
"""
