"""The window's other processes: the link to the engine, why it ended, and the layout workers.

Not here: what commands and snapshots mean (`app.presenters`), the engine itself (`engine`).

`engine_link` starts the engine, or attaches to one. `inbox` hands what arrives to the
window once a frame, for a few milliseconds, so that a flood of messages does not stop the painting.
"""
