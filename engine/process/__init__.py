"""The window's hold on an engine in another process: start it or call it, talk to it, end it or
leave it. No torch.

Not here: what the engine does (`serve`), and how a process that listens is called (`connecting`).
"""

from .engine_process import EngineLost, EngineProcess
from .exits import Departure, Exit, Unreached
from .spawned import SpawnedEngine

__all__ = ["Departure", "EngineLost", "EngineProcess", "Exit", "SpawnedEngine", "Unreached"]
