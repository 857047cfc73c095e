"""Storages as operations make them and as they are freed, with the place that each comes from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from types import FrameType
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from ...system.private_torch import current_autograd_node, next_sequence
from ..watchpoints.seen_calls import place_of_call, running_modules
from .allocator import Segment, read_allocator
from .storages import LivingStorages, plain_tensors

BlockKind = Literal["parameters", "gradients", "optimizer", "activations", "data", "other"]
KINDS: tuple[BlockKind, ...] = get_args(BlockKind)
Phase = Literal["zero_grad", "forward", "loss", "backward", "step"]


class Place(NamedTuple):
    """Where an operation comes from: the path of the innermost module that runs, or whose backward
    runs ("" the whole model, None outside of it), and the line of the user's code; without one,
    `source` is the line of a forward that torch.fx wrote, if it is one."""

    module: str | None = None
    file: str = ""
    line: int = 0
    source: str = ""


class Op(NamedTuple):
    name: str
    phase: Phase
    place: Place


@dataclass
class Block:
    """A storage: made by the operation number `born`, freed during number `died`. -1 is before the
    first, None that it lives at the end. `name` says what holds it, as far as that is known;
    `address` is where its memory begins."""

    size: int
    born: int
    address: int = 0
    died: int | None = None
    kind: BlockKind = "other"
    name: str = ""


@dataclass(eq=False)
class Tracker(LivingStorages[Block]):
    """In this context operations and their storages are written down. On CUDA also the bytes that
    the allocator has `allocated` and `reserved` after each operation; and after the one of number
    `picture_at` all that it holds, by `read`: `segments`, and in `holders` the storages by address.
    """

    model: nn.Module
    device: torch.device
    phase: Phase = "forward"
    ops: list[Op] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    allocated: list[int] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    picture_at: int = -1
    read: Callable[[torch.device], list[Segment]] = read_allocator
    segments: list[Segment] = field(default_factory=list)
    holders: dict[int, Block] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._running: list[str] = []
        self._of_node: dict[int, Place] = {}
        self._outermost: FrameType | None = None

    @contextmanager
    def following(self) -> Iterator[None]:
        """In this context the tracker is active, and knows which module runs."""
        self._outermost = sys._getframe(2)
        try:
            with (
                running_modules(self.model, self._running),
                saved_tensors_hooks(self._pack, lambda tensor: tensor),
                self,
            ):
                yield
        finally:
            self._outermost = None

    # -- storages --------------------------------------------------------------------------------

    def know(self, named: Iterable[tuple[str, Tensor]], kind: BlockKind) -> None:
        """These tensors are held by these names. One that was made before counts from the start."""
        for name, tensor in named:
            for part in plain_tensors(tensor):
                block = self.known_of(part.untyped_storage())
                if block is None:
                    block = self.follow(part.untyped_storage())
                    block.born = -1
                if not block.name:
                    block.kind, block.name = kind, name

    def made(self, storage: torch.UntypedStorage) -> Block:
        block = Block(storage.nbytes(), len(self.ops), storage.data_ptr())
        self.blocks.append(block)
        return block

    def freed(self, known: Block) -> None:
        known.died = len(self.ops)

    def _pack(self, tensor: Tensor) -> Tensor:
        for part in plain_tensors(tensor):
            block = self.known_of(part.untyped_storage())
            if block is not None and block.kind == "other":
                block.kind = "activations"
        return tensor

    def living_at(self, number: int) -> Iterator[Block]:
        """The storages that live after this operation."""
        for block in self.blocks:
            if block.born <= number and (block.died is None or block.died > number):
                yield block

    def bytes_by_kind(self) -> dict[BlockKind, list[int]]:
        """For each kind, the bytes that live after each operation."""
        size = len(self.ops) + 1
        changes: dict[BlockKind, list[int]] = {kind: [0] * size for kind in KINDS}
        for block in self.blocks:
            changes[block.kind][max(0, block.born)] += block.size
            if block.died is not None and block.died < len(self.ops):
                changes[block.kind][block.died] -= block.size
        return {kind: list(accumulate(of_kind))[:-1] for kind, of_kind in changes.items()}

    # -- operations ------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func.namespace == "profiler":
            return func(*args, **(kwargs or {}))
        node = current_autograd_node()
        frame = sys._getframe(1)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if node is None:
            module = self._running[-1] if self._running else None
            place = Place(module, *place_of_call(frame, self._outermost))
            # The node of this operation, if it has one, is the newest.
            self._of_node.setdefault(next_sequence() - 1, place)
        else:
            place = self._of_node.get(node._sequence_nr(), Place())
        self.ops.append(Op(str(func), self.phase, place))
        if self.device.type == "cuda":
            self.allocated.append(torch.cuda.memory_allocated(self.device))
            self.reserved.append(torch.cuda.memory_reserved(self.device))
        if len(self.ops) - 1 == self.picture_at:
            self.segments = self.read(self.device)
            self.holders = {block.address: block for block in self.known() if block.size}
        return result
