"""Runs of torch's backward engine that an exception ends: for a few nodes, or for its plan."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ...system.private_torch import current_graph_task_execution_order, current_graph_task_id
from .reading import AccumulateGrad

Gradients = tuple[torch.Tensor | None, ...]


class _Stop(BaseException):
    """Ends an engine run. A BaseException, so that no `except Exception` in a hook catches it."""


@contextmanager
def _stopped_by_a_hook() -> Iterator[None]:
    """Catches the _Stop that ends an engine run, and its warning: under anomaly detection the
    engine warns of every exception in a node."""
    stopped = False
    recording = warnings.catch_warnings(record=True) if torch.is_anomaly_enabled() else None
    warned: list[warnings.WarningMessage] = []
    try:
        with recording or nullcontext() as caught:
            if caught is not None:
                warned = caught
                warnings.simplefilter("always")
            yield
    except _Stop:
        stopped = True
    finally:
        for w in warned:
            if not (stopped and _ANOMALY in str(w.message)):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


_ANOMALY = "Error detected in"


def _is_refused(outgoing: Iterable[torch.Tensor | None]) -> bool:
    """Whether the engine will raise for NaN after the node's hooks (anomaly detection)."""
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
    """Run one node in torch's engine, with its hooks. Returns the gradients that its rule got and
    those that it sends on. At a leaf the engine adds to `.grad`.

    `edit` is a pre-hook: it gets the incoming gradients and returns those to use. Without it, at
    least one of `incoming` must be defined. The run happens within `guard()`: hooks are the
    user's code.
    """
    ran: list[Gradients] = []

    def after(_: int, outgoing: Gradients, given: Gradients) -> bool:
        ran.extend((given, outgoing))
        return True

    defined = [(fn, i, g) for i, g in enumerate(incoming) if g is not None]
    all_undefined = not defined
    if all_undefined:  # the engine starts from defined gradients only; the edit replaces them
        defined = [(fn, 0, zeros_like_output(fn, 0))]
    handle = None
    if edit is not None:
        handle = fn.register_prehook(lambda grads: edit(incoming if all_undefined else grads))
    try:
        run_nodes([fn], defined, lambda _: None, after, create_graph=create_graph, guard=guard)
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
    """Run nodes in one engine run, as long as the engine keeps to this order.

    `waiting` are the gradients that wait for a node: (node, output, gradient). `before(place)` is
    called before `fns[place]` runs, after its pre-hooks. `after(place, outgoing, incoming)` is
    called with its gradients after it, and returns whether to stop. Among nodes that are ready at
    once the engine may choose another order in each run; then the run ends. The run happens within
    `guard()`, as hooks are the user's code; `before` and `after` are called within `shield()`.
    """
    task: int | None = None
    next_place = 0

    def begins(place: int, _: Gradients) -> None:
        nonlocal task
        current = current_graph_task_id()
        if task is None:
            task = current
        if current != task:
            return  # a checkpoint's own run
        if place != next_place:
            raise _Stop
        with shield():
            before(place)

    def ends(place: int, grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        nonlocal next_place
        if current_graph_task_id() != task:
            return
        if _is_refused(grad_inputs):
            return
        with shield():
            next_place += 1
            stop = after(place, grad_inputs, grad_outputs)
        if stop or next_place == len(fns):
            raise _Stop

    handles = []
    for place, fn in enumerate(fns):
        handles.append(fn.register_prehook(partial(begins, place)))
        handles.append(fn.register_hook(partial(ends, place)))
    try:
        # Within `guard`, which would take _Stop for an exit of the user's code.
        with guard(), _stopped_by_a_hook(), torch.autograd.set_multithreading_enabled(False):
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
    """The gradients that `torch.autograd.grad` gives for the results of `fn` when `incoming`
    arrives there. The tensors' hooks run, the node does not."""
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

    The engine itself is asked, in a run that ends before its first node: sequence numbers alone do
    not settle ties. The run starts at a node above the roots, so that it calls no hook of the
    user's.
    """
    plan: list[Any] = []

    def ask(_: Gradients) -> None:
        plan.extend(current_graph_task_execution_order())
        raise _Stop

    with torch.enable_grad():
        top = _JoinRoots.apply(*roots)
    fn = top.grad_fn
    handle = fn.register_prehook(ask)
    try:
        with _stopped_by_a_hook(), torch.autograd.set_multithreading_enabled(False):
            torch.autograd.backward(top, torch.zeros(()), retain_graph=True)
    finally:
        handle.remove()
    plan.remove(fn)
    return plan


class _JoinRoots(torch.autograd.Function):
    """One node above all roots. Its backward never runs."""

    @staticmethod
    def forward(ctx: Any, *roots: torch.Tensor) -> torch.Tensor:
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError


def zeros_like_output(fn: Any, output: int) -> torch.Tensor:
    """Zeros in the shape, dtype and device of an output of the forward operation."""
    metadata = fn._input_metadata[output]
    return torch.zeros(tuple(metadata.shape), dtype=metadata.dtype, device=metadata.device)
