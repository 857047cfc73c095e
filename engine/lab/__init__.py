"""What one engine holds, the `Lab`, and what it does while code of the user's runs: the loops of
the code are shown, and it is held.

Not here: the answers to commands (`handlers`), the session that asks for them (`server`), and the
state of each room, which is in the room.
"""

from .lab import Lab, Run

__all__ = ["Lab", "Run"]
