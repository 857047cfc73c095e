"""The bounds of what a project may hold. Files are checked against them; edits stay within them."""

from __future__ import annotations

MAX_FILE_BYTES = 64 * 2**20
MAX_DEPTH = 32
"""How deep a project file may be nested; its own structs take ten levels."""
MAX_NAME_CHARS = 1000
"""The length of names, ids and words of parameters. A cell's Python may be longer."""
MAX_PATH_CHARS = 4096
MAX_SOURCE_CHARS = 100_000
"""The length of the source of a step."""
MAX_ENTRIES = 1000
"""The number of entries of one parameter."""
MAX_INT = 2**63 - 1
"""Torch's integers and the messages between the processes have 64 bits."""
MAX_POSITION = 1e7
"""The farthest coordinate of a block, in scene pixels. Beyond it Qt's integers overflow."""
MIN_ZOOM, MAX_ZOOM = 0.01, 100.0
MAX_TRIALS = 1000
MAX_SEED = 2**32 - 1
"""The largest seed that torch, numpy and scikit-learn all take."""
MAX_EPOCHS = 1_000_000
MAX_BATCH_SIZE = 1_000_000
MAX_WARMUP = 1_000_000_000
MAX_PATIENCE = 1_000_000
MAX_ACCUMULATE = 10_000
MAX_TRANSFORMS = 20
MAX_POINTS = 2000
"""The most points that can be painted."""
MAX_PAINTED_CLASSES = 6
MAX_RECOMPUTED = 1000
MAX_WORKERS = 64
MAX_PROCESSES = 64
MAX_PREFETCH = 1000
MAX_TIMEOUT = 86_400
"""The longest timeout of a worker of a DataLoader, in seconds."""
MAX_CLIP = 1e12
HOLD_LIMITS: dict[str, float] = {
    "loss_spike": 1e6,
    "gradient_norm": MAX_CLIP,
    "ratio_above": 1e6,
    "ratio_below": 1.0,
    "dead_units": 1.0,
    "unchanged": 1_000_000,
}
"""The largest value of what holds a run, by its name in `HoldWhen`."""


def clamped(coordinate: float) -> float:
    """The coordinate, or the nearest one that a block may have."""
    return min(max(float(coordinate), -MAX_POSITION), MAX_POSITION)


def point_problem(point: tuple[float, float, int]) -> str:
    """Why a painted point cannot be one of a project, in a sentence; empty if it can."""
    x, y, label = point
    if not (-1 <= x <= 1 and -1 <= y <= 1):
        return f"The point ({x:g}, {y:g}) is outside the plane: coordinates are from -1 to 1."
    if not 0 <= label < MAX_PAINTED_CLASSES:
        return f"A painted point has a class from 0 to {MAX_PAINTED_CLASSES - 1}, not {label}."
    return ""
