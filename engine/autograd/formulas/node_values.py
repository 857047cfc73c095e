"""The values in a rule: a node's incoming gradients, its saved tensors, its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..graph.engine_run import zeros_like_output
from ..graph.reading import Node
from ..graph.stale import stale_saves

Shape = tuple[int, ...]


class MissingValue(Exception):
    """A value that a formula needs cannot be read. The message says which, and why."""


class NodeValues:
    """The incoming gradients and saved values of one node, by the symbols of its formula.

    `names` maps symbols to torch's names (`{"a": "self"}`); by default `x` is `self` and `y` is
    `result`. `g` is the first incoming gradient, `g0`, `g1`, ... are all of them. An undefined
    gradient counts as zeros.
    """

    def __init__(
        self,
        node: Node,
        incoming: Sequence[torch.Tensor | None],
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.node = node
        self.incoming = tuple(incoming)
        self._names = {"x": "self", "y": "result", **(names or {})}
        self._saved = {saved.name: saved for saved in node.saved}

    # -- by name ---------------------------------------------------------------------------------

    def __getitem__(self, symbol: str) -> Any:
        """A gradient, a saved tensor or a parameter. Raises MissingValue."""
        output = gradient_number(symbol)
        if output is not None:
            return self.gradient(output)
        name = self._names.get(symbol, symbol)
        if name in self._saved or f"{name}[0]" in self._saved:
            return self.saved(name)
        return self.number(name)

    def torch_name(self, symbol: str) -> str:
        """torch's name of a saved value; "" for gradients."""
        return self._names.get(symbol, symbol) if gradient_number(symbol) is None else ""

    def gradient(self, output: int = 0) -> torch.Tensor:
        found = self.incoming[output]
        if found is not None:
            return found
        return zeros_like_output(self.node.fn, output)

    @property
    def gradients(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.gradient(i) for i in range(len(self.incoming)))

    def with_gradients(self, gradients: Sequence[torch.Tensor]) -> NodeValues:
        """The same node and names with other incoming gradients."""
        return NodeValues(self.node, gradients, self._names)

    def saved(self, name: str) -> torch.Tensor:
        """A saved tensor as it is in memory now. It is not unpacked. Raises MissingValue."""
        saved = self._saved.get(name)
        if saved is None:
            raise MissingValue(f"{name} was not saved")
        if saved.data is None or saved.note:
            raise MissingValue(f"{name}: {saved.note or 'never set'}")
        return saved.data.detach()

    def has(self, symbol: str) -> bool:
        """Whether the symbol is a saved tensor that can be read."""
        saved = self._saved.get(self._names.get(symbol, symbol))
        return saved is not None and saved.data is not None and not saved.note

    def saved_list(self, name: str) -> list[torch.Tensor | None]:
        """A list of saved tensors, such as the indices of `x[i, :, j]`; None for an empty place."""
        found: list[torch.Tensor | None] = []
        while (saved := self._saved.get(f"{name}[{len(found)}]")) is not None:
            found.append(None if saved.data is None else saved.data.detach())
        if not found:
            raise MissingValue(f"{name} was not saved")
        return found

    def number(self, name: str, default: Any = MissingValue) -> Any:
        """A parameter of the operation, or `default` where torch saved None or nothing. Raises
        MissingValue."""
        try:
            value = signed(getattr(self.node.fn, f"_saved_{name}"))
        except AttributeError:
            value = None
            if default is MissingValue:
                raise MissingValue(f"torch does not show {name}") from None
        except RuntimeError as error:
            raise MissingValue(f"{name}: {'freed' if 'freed' in str(error) else error}") from None
        return default if value is None and default is not MissingValue else value

    # -- the inputs ------------------------------------------------------------------------------

    def target(self, number: int) -> Any:
        """The metadata (shape, dtype) of input `number`; None if it gets no gradient."""
        fn, output = self.node.fn.next_functions[number]
        return None if fn is None else fn._input_metadata[output]

    def shape(self, number: int = 0) -> Shape:
        metadata = self.target(number)
        if metadata is None:
            raise MissingValue(f"the shape of input {number}, which needs no gradient")
        return tuple(metadata.shape)

    def dims(self, name: str = "dim", rank: int | None = None) -> tuple[int, ...]:
        """The dimensions of a parameter, counted from the left; None and () stand for all."""
        rank = len(self.shape()) if rank is None else rank
        dims = self.number(name, None)
        if dims is None or dims == ():
            return tuple(range(rank))
        dims = (dims,) if isinstance(dims, int) else dims
        return tuple(sorted(d % rank for d in dims)) if rank else ()

    @property
    def is_complex(self) -> bool:
        """Whether a gradient or saved tensor is complex."""
        tensors = [*self.incoming, *(saved.data for saved in self._saved.values())]
        return any(t is not None and t.is_complex() for t in tensors)

    @property
    def stale(self) -> dict[str, str]:
        """torch's message for each saved tensor that was overwritten, by the tensor's name."""
        return {each.saved.name: each.message for each in stale_saves([self.node])}


def gradient_number(symbol: str) -> int | None:
    """0 for `g`, 3 for `g3`: the number of an incoming gradient; None for other symbols."""
    found = re.fullmatch(r"g(\d*)", symbol)
    return None if found is None else int(found[1] or 0)


def signed(value: Any) -> Any:
    """The number itself: torch gives negative sizes and dims as unsigned 64-bit numbers."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value - (1 << 64) if value >= 1 << 63 else value
    if isinstance(value, list | tuple):
        return tuple(signed(v) for v in value)
    return value
