"""What a rule has to work with: a node's incoming gradients and all that it kept from forward."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from ..graph.engine_run import zeros_like_output
from ..graph.reading import Node
from ..graph.stale import stale_saves

Shape = tuple[int, ...]


class NotKept(Exception):
    """A saved tensor that a formula needs cannot be read. The message says which, and why."""


class Given:
    """The incoming gradients and saved values of one node, by the names of its formula.

    `names` maps symbols to torch's names (`{"a": "self"}`); `x` is `self` and `y` is `result`
    unless it says otherwise. `g` is the first incoming gradient, `g0`, `g1`, ... are all; an
    undefined one counts as zeros. Numbers that torch keeps unsigned are negative again (dim -1).
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
        """A tensor (gradient or saved), or a number. Raises NotKept."""
        if symbol == "g" or re.fullmatch(r"g\d+", symbol):
            return self.gradient(int(symbol[1:] or 0))
        name = self._names.get(symbol, symbol)
        if name in self._saved or f"{name}[0]" in self._saved:
            return self.saved(name)
        return self.number(name)

    def torch_name(self, symbol: str) -> str:
        """What torch calls a symbol; empty for gradients."""
        if symbol == "g" or re.fullmatch(r"g\d+", symbol):
            return ""
        return self._names.get(symbol, symbol)

    def gradient(self, output: int = 0) -> torch.Tensor:
        found = self.incoming[output]
        if found is not None:
            return found
        return zeros_like_output(self.node.fn, output)

    @property
    def gradients(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.gradient(i) for i in range(len(self.incoming)))

    def with_gradients(self, gradients: Sequence[torch.Tensor]) -> Given:
        """The same node with other incoming gradients."""
        return Given(self.node, gradients, self._names)

    def saved(self, name: str) -> torch.Tensor:
        """A saved tensor as it stands in memory, never unpacked. Raises NotKept."""
        saved = self._saved.get(name)
        if saved is None:
            raise NotKept(f"{name} was not saved")
        if saved.data is None or saved.note:
            raise NotKept(f"{name}: {saved.note or 'never set'}")
        return saved.data.detach()

    def has(self, symbol: str) -> bool:
        """Whether a tensor of this name was saved and can be read."""
        saved = self._saved.get(self._names.get(symbol, symbol))
        return saved is not None and saved.data is not None and not saved.note

    def saved_list(self, name: str) -> list[torch.Tensor | None]:
        """A list of saved tensors, such as an index of several; None where nothing stands."""
        found: list[torch.Tensor | None] = []
        while (saved := self._saved.get(f"{name}[{len(found)}]")) is not None:
            found.append(None if saved.data is None else saved.data.detach())
        if not found:
            raise NotKept(f"{name} was not saved")
        return found

    def number(self, name: str, default: Any = NotKept) -> Any:
        """A parameter of the operation; `default` where torch keeps None or nothing."""
        try:
            value = signed(getattr(self.node.fn, f"_saved_{name}"))
        except AttributeError:
            value = None
            if default is NotKept:
                raise NotKept(f"torch does not tell {name}") from None
        except RuntimeError as error:
            raise NotKept(f"{name}: {'freed' if 'freed' in str(error) else error}") from None
        return default if value is None and default is not NotKept else value

    # -- the inputs ------------------------------------------------------------------------------

    def target(self, number: int) -> Any:
        """The metadata (shape, dtype) of input `number`, None where it needs no gradient."""
        fn, output = self.node.fn.next_functions[number]
        return None if fn is None else fn._input_metadata[output]

    def shape(self, number: int = 0) -> Shape:
        metadata = self.target(number)
        if metadata is None:
            raise NotKept(f"the shape of input {number}, which needs no gradient")
        return tuple(metadata.shape)

    def dims(self, name: str = "dim", rank: int | None = None) -> tuple[int, ...]:
        """Dimensions as they count from the left; all of them for None and ()."""
        rank = len(self.shape()) if rank is None else rank
        dims = self.number(name, None)
        if dims is None or dims == ():
            return tuple(range(rank))
        dims = (dims,) if isinstance(dims, int) else dims
        return tuple(sorted(d % rank for d in dims)) if rank else ()

    @property
    def is_complex(self) -> bool:
        """Whether a complex number takes part."""
        tensors = [*self.incoming, *(saved.data for saved in self._saved.values())]
        return any(t is not None and t.is_complex() for t in tensors)

    @property
    def stale(self) -> dict[str, str]:
        """Saved tensors that were overwritten since, with torch's own message."""
        return {each.saved.name: each.message for each in stale_saves([self.node])}


class Values(SimpleNamespace):
    """The symbols of a formula as attributes, for what is computed before it: `v.g * v.y`."""

    given: Given


def signed(value: Any) -> Any:
    """torch hands out negative sizes and dims as unsigned 64-bit numbers."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value - (1 << 64) if value >= 1 << 63 else value
    if isinstance(value, list | tuple):
        return tuple(signed(v) for v in value)
    return value
