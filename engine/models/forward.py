"""The forward pass of one batch, stepped block by block, forward and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call
from torch.fx.node import map_arg

from ..project import catalogue
from ..project.document import Block
from ..project.problems import Problem
from ..protocol import Activation, ForwardSnapshot, TensorSpec
from ..recording.recorder import Recorder
from ..recording.recording import Place, Recording
from ..restoring.module_kept import ModuleState
from ..restoring.randomness import RandomStream
from ..system.errors import LabError
from ..system.private_torch import next_sequence
from ..tensors.readable import dtype_name
from ..tensors.summary import shown_groups, summarise
from . import problems
from .live import LiveModel

LOSS = "loss"
"""The id of the last step if no loss block is on the canvas."""

LossFunction = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class _StateBefore:
    """The state that running a block may change, from before it ran."""

    random: dict[str, Tensor]
    buffers: dict[str, Tensor]


class ForwardPass:
    """Steps a batch through the live model in training mode, bit for bit as the module computes it.

    `order` lists the block ids in order of execution, with the loss last; the first `position` of
    them have run. `values[block]` are the tensors at a block's output ports, with their autograd
    graph; for the Output it is the prediction, for the loss the scalar. The block's autograd nodes
    have the sequence numbers from `sequence_ranges[block][0]` up to, not including, `[1]`.
    `recording` has the calls of all blocks; a block that is not a module is recorded as if it were
    one. `lines` are the lines of the model's Python for each block, and `recording` gives them as
    the source of its calls.

    `state` has tensors of the pass's own, so that a training run meanwhile changes neither its
    weights nor its gradients; the live model has them only while a block runs. Random numbers come
    from a stream of the pass's own, seeded by `seed`. Going back restores the stream and the
    buffers (BatchNorm's running statistics), so that each replay gives the same values.
    """

    def __init__(
        self,
        live: LiveModel,
        x: Tensor,
        y: Tensor,
        loss_function: LossFunction,
        seed: int,
        batch: int = 0,
        lines: Mapping[str, Place] | None = None,
    ) -> None:
        self.blocks, self.document = live.blocks, live.model
        self._graph = live.module
        self.state = ModuleState(live.module)
        with self.state:
            live.module.train()
        self._buffers = {name: b.detach().clone() for name, b in self.state.named_buffers()}
        self.x, self.y = x.to(live.device), y.to(live.device)
        self.loss_function, self.seed, self.batch = loss_function, seed, batch
        self._blocks = {block.id: block for block in self.document.blocks}
        ends = {catalogue.kind(block.kind).call: block.id for block in self.document.blocks}
        self._output = ends.get("output")
        self.loss_id = ends.get(LOSS, LOSS)
        outputs = (self._output,) if self._output else ()
        self.order: tuple[str, ...] = (*self.blocks.order, *outputs, self.loss_id)
        self._lines = lines or {}
        self._keeps_failed = False
        self.reset()

    def reset(self) -> None:
        """Return before the first block."""
        self.position = 0
        self.values: dict[str, tuple[Tensor, ...]] = {}
        self.sequence_ranges: dict[str, tuple[int, int]] = {}
        self._activations: dict[str, Activation] = {}
        self._nodes: dict[fx.Node, Any] = {}
        self._random = RandomStream(self.seed, self.x.device)
        self._before: list[_StateBefore] = []
        self._put_back(self._buffers)
        self._recorder = Recorder(modules=self._module_paths(), files=lambda name: False)
        self._calls_before: list[int] = []

    @property
    def recording(self) -> Recording:
        return self._recorder.recording

    @property
    def loss(self) -> Tensor | None:
        """The scalar loss, with its graph; None before the loss has run."""
        found = self.values.get(self.loss_id)
        return found[0] if found else None

    @property
    def done(self) -> bool:
        return self.position == len(self.order)

    def step(self) -> str:
        """Run the next block and return its id.

        Raises LabError, naming the block, if it fails; the pass then stays where it was. Raises
        IndexError at the end.
        """
        block_id = self.order[self.position]
        before = _StateBefore(self._random.state(), self._buffers_of(block_id))
        started_at = perf_counter()
        first = next_sequence()
        calls = len(self.recording.calls)
        self._recorder.place = self._lines.get(block_id)
        try:
            with (
                self.state,
                self._random,
                torch.enable_grad(),
                self._recorder,
                self._scope(block_id),
            ):
                outputs = self._run(block_id)
        except Exception as error:
            if not self._keeps_failed:
                self.recording.cut(calls)
            self._undo(before, block_id)
            raise self._failure(block_id, error) from error
        elapsed_ms = (perf_counter() - started_at) * 1e3
        self.sequence_ranges[block_id] = (first, next_sequence())
        self.values[block_id] = outputs
        self._activations[block_id] = Activation(
            block_id, tuple(summarise(tensor) for tensor in outputs), elapsed_ms
        )
        self._before.append(before)
        self._calls_before.append(calls)
        self.position += 1
        return block_id

    def back(self) -> None:
        """Undo the last block; before the first block, do nothing."""
        if self.position == 0:
            return
        self.position -= 1
        block_id = self.order[self.position]
        for held in (self.values, self.sequence_ranges, self._activations):
            del held[block_id]
        self.recording.cut(self._calls_before.pop())
        self._undo(self._before.pop(), block_id)

    def run_to(self, block_id: str) -> None:
        """Go forward or back until `block_id` is the last that has run.

        Raises LabError if the block is not part of the pass, and as `step` does.
        """
        if block_id not in self.order:
            raise LabError(
                "This block is not part of the forward pass.",
                hint="Start a new pass: the model has changed since this one began.",
            )
        target = self.order.index(block_id) + 1
        while self.position < target:
            self.step()
        while self.position > target:
            self.back()

    def end(self) -> None:
        """Run all remaining blocks and the loss. Raises as `step` does."""
        while not self.done:
            self.step()

    def again(self) -> ForwardPass:
        """Another pass of the same batch, with tensors of its own, before its first block. If a
        block of it fails, its `recording` keeps the calls of that block."""
        other = copy(self)
        with self.state:
            other.state = ModuleState(self._graph)
        other._keeps_failed = True
        other.reset()
        return other

    def plain(self) -> Tensor:
        """Return the loss of the same batch from one call of the whole module, as the reference.

        The call starts from the same random state and buffers, and has an autograd graph of its
        own.
        """
        buffers = self.buffers_before()
        with self.state, RandomStream(self.seed, self.x.device), torch.enable_grad():
            prediction = functional_call(self._graph, buffers, (self.x,))
            return self.loss_function(prediction, self.y)

    def buffers_before(self) -> dict[str, Tensor]:
        """Copies of the module's buffers from before the first block."""
        return {name: buffer.clone() for name, buffer in self._buffers.items()}

    def snapshot(self) -> ForwardSnapshot:
        current = inputs = ()
        if self.position:
            block_id = self.order[self.position - 1]
            current, inputs = shown_groups(self.outputs_of(block_id), self.inputs_of(block_id))
        return ForwardSnapshot(
            order=self.order,
            position=self.position,
            activations=tuple(self._activations[block_id] for block_id in self.values),
            current=current,
            inputs=inputs,
            loss=None if self.loss is None else self.loss.item(),
            batch=self.batch,
            batch_size=len(self.x),
        )

    def outputs_of(self, block_id: str) -> dict[str, Tensor]:
        """The tensors that a block which has run gave, by its ports."""
        if block_id == self.loss_id:
            ports = ("loss",)
        elif block_id == self._output:
            ports = ("prediction",)
        else:
            ports = (port.name for port in catalogue.ports(self._blocks[block_id])[1])
        return dict(zip(ports, self.values[block_id], strict=True))

    def inputs_of(self, block_id: str) -> dict[str, Tensor]:
        """The tensors that a block has run on, by its ports."""
        if block_id in (self._output, self.loss_id):
            given = {"prediction": self._nodes[_known(self.blocks.prediction)]}
            return given if block_id == self._output else {**given, "target": self.y}
        return {port: self._nodes[node] for port, node in self.blocks.inputs[block_id].items()}

    def weights_of(self, block_id: str) -> dict[str, Tensor]:
        """A block's parameters by name."""
        block = self._blocks.get(block_id)
        if block is None or block_id not in self.blocks.nodes:
            return {}
        named = self.state.named_parameters()
        start = f"{block.name}."
        return {name.removeprefix(start): p for name, p in named if name.startswith(start)}

    def path_of(self, block_id: str) -> str:
        """The name of a block in the recording."""
        block = self._blocks.get(block_id)
        return LOSS if block is None else block.name

    # -- one block

    def _module_paths(self) -> dict[nn.Module, str]:
        paths: dict[nn.Module, str] = {}
        paths.update((module, name) for name, module in self._graph.named_modules() if name)
        if isinstance(self.loss_function, nn.Module):
            paths[self.loss_function] = self.path_of(self.loss_id)
        return paths

    def _scope(self, block_id: str) -> AbstractContextManager[None]:
        """The recorder's scope for a block that is not a module; modules have their own."""
        if block_id == self.loss_id:
            is_module = isinstance(self.loss_function, nn.Module)
            title = getattr(self.loss_function, "__name__", LOSS)
        else:
            nodes = self.blocks.nodes.get(block_id, ())
            is_module = not nodes or any(node.op == "call_module" for node in nodes)
            title = self._blocks[block_id].kind.rpartition(".")[2]
        if is_module:
            return nullcontext()
        return self._recorder.scope(self.path_of(block_id), title)

    def _run(self, block_id: str) -> tuple[Tensor, ...]:
        if block_id in (self._output, self.loss_id):
            prediction = self._nodes[_known(self.blocks.prediction)]
            if block_id == self._output:
                return (prediction,)
            return (self.loss_function(prediction, self.y),)
        block = self._blocks[block_id]
        for node in self.blocks.nodes[block_id]:
            args, kwargs = map_arg((node.args, node.kwargs), self._nodes.__getitem__)
            if node.op == "placeholder":
                self._nodes[node] = self.x
            elif node.op == "call_module":
                module = self._graph.get_submodule(str(node.target))
                self._nodes[node] = module(*args, **kwargs)
            elif node.op == "call_method":
                self._nodes[node] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
            else:
                assert callable(node.target)
                self._nodes[node] = node.target(*args, **kwargs)
        return tuple(self._nodes[node] for node in self.blocks.outputs(block))

    def _undo(self, before: _StateBefore, block_id: str) -> None:
        self._random.restore(before.random)
        self._put_back(before.buffers)
        for node in self.blocks.nodes.get(block_id, ()):
            self._nodes.pop(node, None)

    def _buffers_of(self, block_id: str) -> dict[str, Tensor]:
        """Copies of a block's buffers, by full name."""
        block = self._blocks.get(block_id)
        return {
            name: buffer.clone()
            for name, buffer in self.state.named_buffers()
            if block and name.startswith(f"{block.name}.")
        }

    def _put_back(self, buffers: dict[str, Tensor]) -> None:
        own = dict(self.state.named_buffers())
        for name, buffer in buffers.items():
            own[name].copy_(buffer)

    def _failure(self, block_id: str, error: Exception) -> LabError:
        detail = f"{type(error).__name__}: {error}"
        block = self._blocks.get(block_id)
        if block is None or block_id == self.loss_id:
            return LabError(
                f"The loss cannot be computed: {error}",
                problems=(Problem(f"The loss cannot be computed: {error}", detail=detail),),
            )
        problem = problems.refused(block, self._specs(block), detail)
        return LabError(f"{block.name}: {problem.message}", problems=(problem,))

    def _specs(self, block: Block) -> dict[str, TensorSpec]:
        return {
            port: TensorSpec(tuple(tensor.shape), dtype_name(tensor.dtype))
            for port, node in self.blocks.inputs[block.id].items()
            if isinstance(tensor := self._nodes.get(node), Tensor)
        }


def _known(node: fx.Node | None) -> fx.Node:
    if node is None:
        raise LabError("The model returns nothing yet.", hint="Wire a block to the Output.")
    return node
