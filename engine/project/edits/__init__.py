"""Edits: pure functions from one Project to the next. None changes its arguments; each raises
EditError when the edit makes no sense.

Not here: undo (`app.history`), and whether what comes from a file is sound (`project.soundness`).
"""

from .blocks import (
    add_block,
    add_fragment,
    connect,
    disconnect,
    fragment,
    insert_on_wire,
    move_blocks,
    remove,
    rename,
    reroute,
    set_param,
)
from .cells import forget_cells, record_cell
from .fixes import apply_fix
from .loss import loss_block, loss_call, loss_of, set_loss
from .parameters import EditError
from .training import set_objective, set_subject, set_training

__all__ = [
    "EditError",
    "add_block",
    "add_fragment",
    "apply_fix",
    "connect",
    "disconnect",
    "forget_cells",
    "fragment",
    "insert_on_wire",
    "loss_block",
    "loss_call",
    "loss_of",
    "move_blocks",
    "record_cell",
    "remove",
    "rename",
    "reroute",
    "set_loss",
    "set_objective",
    "set_param",
    "set_subject",
    "set_training",
]
