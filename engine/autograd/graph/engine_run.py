"""torch's backward engine, asked for one node or for its plan: runs that an exception ends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from .reading import AccumulateGrad

Gradients = tuple[torch.Tensor | None, ...]


class _Stop(BaseException):
    """Ends an engine run. No error, so that no `except Exception` in a hook swallows it."""


@contextmanager
def _stopped_by_a_hook() -> Iterator[None]:
    """Around an engine run that a _Stop ends. Under torch's anomaly detection the engine warns of
    it as of any exception in a node: that is not for the user."""
    stopped = False
    recording = warnings.catch_warnings(record=True) if torch.is_anomaly_enabled() else None
    told: list[warnings.WarningMessage] = []
    try:
        with recording or nullcontext() as caught:
            if caught is not None:
                told = caught
                warnings.simplefilter("always")
            yield
    except _Stop:
        stopped = True
    finally:
        for w in told:
            if not (stopped and _ANOMALY in str(w.message)):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


_ANOMALY = "Error detected in"


def _is_refused(outgoing: Iterable[torch.Tensor | None]) -> bool:
    """Whether the engine, once the hooks are through, will raise for NaN: it detects anomalies."""
    if not (torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()):
        return False
    return any(g is not None and bool(g.isnan().any()) for g in outgoing)


def run_node(
    fn: Any,
    incoming: Gradients,
    *,
    edit: Callable[[Gradients], Gradients] | None = None,
    create_graph: bool = False,
    guard: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> tuple[Gradients, Gradients]:
    """Execute one node in torch's engine: its hooks, its rule, and what the engine makes of the
    results. Returns what the rule was given and what goes out; adds to `.grad` at a leaf.

    `edit` is a pre-hook: from the gradients that arrive to those to use. Without it, at least one
    of `incoming` must be defined. `guard()` is entered around the run: hooks are the user's code.
    """
    ran: list[Gradients] = []

    def after(_: int, outgoing: Gradients, given: Gradients) -> bool:
        ran.extend((given, outgoing))
        return True

    live = [(fn, i, g) for i, g in enumerate(incoming) if g is not None]
    nothing_came = not live
    if nothing_came:  # the engine starts from defined gradients only; the edit replaces them
        live = [(fn, 0, _zeros(fn._input_metadata[0]))]
    handle = None
    if edit is not None:
        handle = fn.register_prehook(lambda grads: edit(incoming if nothing_came else grads))
    try:
        run_nodes([fn], live, lambda _: None, after, create_graph=create_graph, guard=guard)
    finally:
        if handle is not None:
            handle.remove()
    given, outgoing = ran
    return given, () if isinstance(fn, AccumulateGrad) else outgoing


def run_nodes(
    fns: Sequence[Any],
    waiting: Sequence[tuple[Any, int, torch.Tensor]],
    before: Callable[[int], None],
    after: Callable[[int, Gradients, Gradients], bool],
    *,
    create_graph: bool = False,
    guard: Callable[[], AbstractContextManager[object]] = nullcontext,
    shield: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Execute nodes in one run, as far as the engine takes them in this order.

    `waiting` are the gradients on their way: (node, output, gradient). `before(place)` is called
    before `fns[place]` runs, after its pre-hooks; `after(place, outgoing, incoming)` is told what
    it has given and been given, and says whether to stop. The engine settles ties between nodes
    that are ready at once anew in each run: where it takes another order, the run ends. `guard()`
    is entered around the run, as hooks are the user's code, and `shield()` around ours in it.
    """
    task: int | None = None
    turn = 0

    def begins(place: int, _: Gradients) -> None:
        nonlocal task
        current = torch._C._current_graph_task_id()  # type: ignore[attr-defined]
        if task is None:
            task = current
        if current != task:
            return  # a checkpoint's own run
        if place != turn:
            raise _Stop
        with shield():
            before(place)

    def ended(place: int, grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        nonlocal turn
        if torch._C._current_graph_task_id() != task:  # type: ignore[attr-defined]
            return
        if _is_refused(grad_inputs):
            return
        with shield():
            turn += 1
            stop = after(place, grad_inputs, grad_outputs)
        if stop or turn == len(fns):
            raise _Stop

    handles = []
    for place, fn in enumerate(fns):
        handles.append(fn.register_prehook(partial(begins, place)))
        handles.append(fn.register_hook(partial(ended, place)))
    try:
        with _stopped_by_a_hook(), guard(), torch.autograd.set_multithreading_enabled(False):
            torch.autograd.backward(
                [GradientEdge(fn, i) for fn, i, _ in waiting],
                [gradient for _, _, gradient in waiting],
                retain_graph=True,
                create_graph=create_graph,
            )
    finally:
        for handle in handles:
            handle.remove()


def capture(fn: Any, incoming: Gradients, *, create_graph: bool = False) -> Gradients:
    """What `torch.autograd.grad` gives for the tensors that come out of `fn` in forward when
    `incoming` arrives there: their hooks run, the node does not."""
    edges = [GradientEdge(fn, i) for i, g in enumerate(incoming) if g is not None]
    found: list[torch.Tensor | None] = [None] * len(incoming)
    if edges:
        results = torch.autograd.grad(
            edges,
            edges,
            [g for g in incoming if g is not None],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        for edge, result in zip(edges, results, strict=True):
            found[edge.output_nr] = result
    return tuple(found)


def execution_order(roots: Sequence[torch.Tensor]) -> list[Any]:
    """The nodes (`grad_fn`s) in the order in which the engine will run them from these roots.

    It is the engine's own answer, asked for in a run that ends before its first node: sequence
    numbers alone do not settle ties. A node above the roots takes the place of the engine's, so
    that no hook of the user's is called.
    """
    plan: list[Any] = []

    def ask(_: Gradients) -> None:
        plan.extend(torch._C._current_graph_task_execution_order())  # type: ignore[attr-defined]
        raise _Stop

    with torch.enable_grad():
        top = _Above.apply(*roots)
    fn = top.grad_fn
    handle = fn.register_prehook(ask)
    try:
        with _stopped_by_a_hook(), torch.autograd.set_multithreading_enabled(False):
            torch.autograd.backward(top, torch.zeros(()), retain_graph=True)
    finally:
        handle.remove()
    plan.remove(fn)
    return plan


class _Above(torch.autograd.Function):
    """Joins roots under one node. Its backward never runs."""

    @staticmethod
    def forward(ctx: Any, *roots: torch.Tensor) -> torch.Tensor:
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError


def _zeros(metadata: Any) -> torch.Tensor:
    return torch.zeros(tuple(metadata.shape), dtype=metadata.dtype, device=metadata.device)
