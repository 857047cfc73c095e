"""What one engine holds, the `Lab`, and what it does while code of the user's runs: the loops of
the code are shown, and it is held.

Not here: the answers to commands (`handlers`), the session that asks for them (`server`), and the
state of each room, which is in the room.

`holding` holds a cell, a file or a step of Train: at a `breakpoint()`, after an optimizer step, or
inside its own `backward()`. The namespace has then the variables of its frame, and commands marked
`while_held` are answered; those marked `while_running` also while code runs.
"""

from .lab import Lab, Run

__all__ = ["Lab", "Run"]
