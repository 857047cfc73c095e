"""The engine's end of a connection: the mailbox, the session that answers commands, and the engine
that windows come to and leave.

Not here: the answers (`handlers`), and the window's hold on an engine (`process`).
"""
