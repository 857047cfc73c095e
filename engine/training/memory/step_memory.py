"""The memory of one step: what forward keeps for backward, and the peak. It is measured, and
predicted for modules whose activations would be computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from ...recording.compiled import add_forward_hook, add_forward_pre_hook
from ..objectives.batches import tensors_in
from .storages import LivingStorages, plain_tensors


class StepMemory(NamedTuple):
    """Bytes of tensors that a step makes: those that live between forward and backward, and the
    most that live at once in both, gradients among them."""

    kept: int
    peak: int


class _Counted(LivingStorages[int]):
    """In this context the bytes of storages that torch makes are counted while they live."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0

    def made(self, storage: torch.UntypedStorage) -> int:
        size = storage.nbytes()
        self.now += size
        self.peak = max(self.peak, self.now)
        return size

    def freed(self, known: int) -> None:
        self.now -= known


def measured(run: Callable[[], Tensor]) -> StepMemory:
    """The memory of `run`, which gives the loss, and of its backward."""
    with _Counted() as counted:
        loss = run()
        kept = counted.now
        loss.backward()
        return StepMemory(kept, counted.peak)


class _Saved:
    """The bytes of each storage that forward makes and saves for backward: those saved `outside` of
    the modules, those saved `inside` each call of one, and those of the `inputs` of the calls.
    `calls` has, for each call, the module and the bytes of `outside` and `inputs` when it began."""

    def __init__(self, counted: _Counted) -> None:
        self._counted = counted
        self.outside: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self.inside: list[dict[int, int]] = []
        self.calls: list[tuple[nn.Module, int]] = []
        self._alive: list[Tensor] = []  # else another storage could get the same address
        self._place = self.outside

    def pack(self, tensor: Tensor) -> Tensor:
        self._note(tensor, self._place)
        return tensor

    def _note(self, tensor: Tensor, place: dict[int, int]) -> None:
        for plain in plain_tensors(tensor):
            storage = plain.untyped_storage()
            if self._counted.known_of(storage) is not None:
                place[storage._cdata] = storage.nbytes()
                self._alive.append(plain.detach())

    @contextmanager
    def of(self, modules: Sequence[nn.Module]) -> Iterator[None]:
        """In this context a forward pass runs, and its storages are noted."""

        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            for tensor in tensors_in((args, kwargs)):
                self._note(tensor, self.inputs)
            self.calls.append((module, sum({**self.outside, **self.inputs}.values())))
            self._place = {}
            self.inside.append(self._place)

        def leave(module: nn.Module, args: Any, result: Any) -> None:
            self._place = self.outside

        hooks = [add_forward_pre_hook(m, enter, with_kwargs=True) for m in modules]
        hooks += [add_forward_hook(m, leave, always_call=True) for m in modules]
        try:
            with saved_tensors_hooks(self.pack, lambda tensor: tensor):
                yield
        finally:
            for hook in hooks:
                hook.remove()


def predicted(
    run: Callable[[], Tensor], modules: Sequence[nn.Module], without: StepMemory, gradients: int
) -> StepMemory:
    """The memory that the step of `run` would take if these modules kept only their inputs.
    `without` is the memory as it was measured, `gradients` the bytes of the gradients of all
    parameters.

    The peak is either where backward begins, less what the modules do not keep; or where a module
    has computed again what it needs: with what was kept before it, the gradients by then, and those
    before and behind its largest tensor.
    """
    with _Counted() as counted:
        saved = _Saved(counted)
        with saved.of(modules):
            run()
    stays = {**saved.outside, **saved.inputs}
    gone = [sum(size for k, size in of.items() if k not in stays) for of in saved.inside]
    all_saved = saved.outside.keys() | {key for of in saved.inside for key in of}
    new = sum(size for key, size in saved.inputs.items() if key not in all_saved)
    peaks = [without.peak - sum(gone) + new]
    known: set[nn.Module] = set()
    for (module, before), of, own in zip(saved.calls, saved.inside, gone, strict=True):
        if module not in known:
            known.add(module)
            gradients -= sum(p.nbytes for p in module.parameters() if p.requires_grad)
        peaks.append(before + own + 2 * max(of.values(), default=0) + gradients)
    return StepMemory(without.kept - sum(gone) + new, max(peaks))
