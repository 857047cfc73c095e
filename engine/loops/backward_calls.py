"""`backward()` in the user's own code, handed to who steps it."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .hooks import is_outermost


@contextmanager
def backward_calls(
    take: Callable[..., bool], unless: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """While this context is open, `take` gets the arguments of each `torch.autograd.backward` in
    this thread that is not inside another, and returns whether it has run it. Not those that run
    while `unless` returns True."""
    thread, process = threading.get_ident(), os.getpid()
    is_open = True
    run = torch.autograd.backward

    @functools.wraps(run)
    def backward(*args: Any, **kwargs: Any) -> None:
        is_taken = (
            is_open
            and not unless()
            and threading.get_ident() == thread
            and os.getpid() == process
            and is_outermost()
            and take(*args, **kwargs)
        )
        if not is_taken:
            run(*args, **kwargs)

    torch.autograd.backward = backward
    try:
        yield
    finally:
        is_open = False  # the user's code may have kept the wrapper
        if torch.autograd.backward is backward:
            torch.autograd.backward = run
