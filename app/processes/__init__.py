"""The window's other processes: the link to the engine, why it ended, and the layout workers.

Not here: what commands and snapshots mean (`app.presenters`), the engine itself (`engine`).
"""
