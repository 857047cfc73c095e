"""The end of torch.distributed's process group in a watched process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed

from ..loops.hooks import Patch

PAUSE_S = 0.1


@contextmanager
def pause_before_group_ends() -> Iterator[None]:
    """While this context is open, `destroy_process_group` lets the other threads run first.

    In torch 2.13 a DDP model over gloo can deadlock when it is freed. Its destructor holds the GIL
    and joins gloo's threads. One of these may need the GIL, to free the `contextvars` context that
    `torch.autograd.graph._engine_run_backward` stores for each pass. The threads of a window's
    session make that likely: they compete for the GIL as well.
    """
    if not torch.distributed.is_available():
        yield
        return
    patch = Patch(torch.distributed, "destroy_process_group")

    def destroy_process_group(*args: object, **kwargs: object) -> None:
        time.sleep(PAUSE_S)  # it releases the GIL
        patch.original(*args, **kwargs)

    patch.wrap(destroy_process_group)
    patch.put_on()
    try:
        yield
    finally:
        patch.take_off()
