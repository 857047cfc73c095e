"""The live model: training trains it, autograd steps through it, export writes it."""

from __future__ import annotations

import torch
from torch import fx, nn

from ..project.document import Block, Model, ParamValue
from .build import BlockGraph, build, explicit, make_initialised

_Key = tuple[str, str, tuple[tuple[str, ParamValue], ...]]


class LiveModel:
    """The document as a torch module, whose weights are kept when the document is edited.

    `module` is a GraphModule whose submodules have the blocks' names, so its state_dict has the
    keys of the generated code. `model` is the document that it was built from.
    """

    def __init__(self, model: Model, seed: int) -> None:
        self._kept: dict[_Key, tuple[nn.Module, int, tuple[int, ...]]] = {}
        self._build(model, seed)

    module: fx.GraphModule
    blocks: BlockGraph
    model: Model
    seed: int

    def sync(self, model: Model, seed: int) -> fx.GraphModule:
        """Rebuild the module after the document, and return it.

        A block whose name, kind and arguments are unchanged keeps its weights; others are
        initialised from `seed`. With a new seed, weights that were neither trained nor loaded are
        initialised again. Raises LabError if the wiring is not complete, and torch's error for
        arguments that it refuses; the live model then stays as it was.
        """
        if (model.wires, _bare(model), seed) != (self.model.wires, _bare(self.model), self.seed):
            self._build(model, seed)
        return self.module

    def reset(self, model: Model, seed: int) -> fx.GraphModule:
        """Initialise every block again from `seed`. Raises as `sync` does."""
        kept, self._kept = self._kept, {}
        try:
            self._build(model, seed)
        except Exception:
            self._kept = kept
            raise
        return self.module

    @property
    def parameters(self) -> int:
        """The number of learnable elements."""
        return sum(parameter.numel() for parameter in self.module.parameters())

    @property
    def device(self) -> torch.device:
        """The device of the weights; the CPU for a model without any."""
        first = next(self.module.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    def _build(self, model: Model, seed: int) -> None:
        fresh: dict[_Key, tuple[nn.Module, int, tuple[int, ...]]] = {}
        device = self.device if self._kept else None

        def make(block: Block) -> nn.Module:
            key = (block.name, block.kind, tuple(sorted(explicit(block).items())))
            module, old_seed, versions = self._kept.get(key, (None, seed, ()))
            if module is None or (old_seed != seed and versions == _versions(module)):
                module = make_initialised(block, seed).to(device)
                old_seed, versions = seed, _versions(module)
            fresh[key] = module, old_seed, versions
            return module

        self.module, self.blocks = build(model, make)
        self.model, self.seed, self._kept = model, seed, fresh


def _bare(model: Model) -> list[tuple[str, str, str, dict[str, ParamValue]]]:
    """The blocks without their places on the canvas."""
    return [(block.id, block.kind, block.name, block.params) for block in model.blocks]


def _versions(module: nn.Module) -> tuple[int, ...]:
    """The version counter of each weight: an optimizer step or loading increases it."""
    return tuple(tensor._version for tensor in module.state_dict(keep_vars=True).values())
