"""The window's hold on an engine in another process: start it or call it, talk to it, end it or
leave it. No torch.

Not here: what the engine does (`server`), and how a process that listens is called (`connecting`).

Threads of their own write to the pipe (`outbox`), read it and end it, so that the window never
waits. `EngineProcess` talks; a subclass says how its engine starts and ends. A `SpawnedEngine` ends
with all that its cells started. An `AttachedEngine` is in a process of the user's, which the window
only leaves.
"""

from .engine_process import EngineLost, EngineProcess
from .exits import Departure, Exit
from .spawned import SpawnedEngine

__all__ = ["Departure", "EngineLost", "EngineProcess", "Exit", "SpawnedEngine"]
