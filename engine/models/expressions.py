"""The Python expressions of a block: how it is made, how it runs, a sample of an input."""

from __future__ import annotations

from collections.abc import Iterable

from ..project import catalogue
from ..project.catalogue import Port
from ..project.document import Block, ParamValue
from .build import explicit

_INFIX = {
    "residual": "+",
    "torch.add": "+",
    "torch.sub": "-",
    "torch.mul": "*",
    "torch.matmul": "@",
}
_BY_POSITION = frozenset(("torch.transpose", "torch.squeeze", "torch.unsqueeze", "torch.select"))


def constructor(block: Block) -> str:
    """Return the expression that makes a block's module: `nn.Conv2d(1, 6, kernel_size=5)`.

    The first two arguments that torch requires are passed by position, all others by name.
    """
    params = {param.name: param for param in catalogue.kind(block.kind).params}
    values = explicit(block)
    leading = [name for name, param in params.items() if param.required and name != "dim"][:2]
    if list(params)[: len(leading)] != leading:
        leading = []
    written = [_literal(values[name]) for name in leading]
    written += [
        f"{name}={_of_argument(name, value)}"
        for name, value in values.items()
        if name not in leading and value != "balanced"  # it depends on the training rows
    ]
    return f"{block.kind}({', '.join(written)})"


def _of_argument(name: str, value: ParamValue) -> str:
    """An argument as Python: weights of classes are tensors."""
    is_weight = name in ("weight", "pos_weight") and isinstance(value, tuple)
    return f"torch.tensor({_literal(value)})" if is_weight else _literal(value)


def call(block: Block, args: list[str]) -> str:
    """Return the expression that runs a block on these variables, one for each wired input."""
    kind = catalogue.kind(block.kind)
    values = explicit(block)
    inputs = catalogue.ports(block)[0][: len(args)]
    if kind.call == "module":
        packed = grouped(inputs, args, lambda group: f"({', '.join(group)})")
        return f"self.{block.name}({', '.join(packed)})"
    if block.kind in _INFIX and not values:
        return f"{args[0]} {_INFIX[block.kind]} {args[1]}"
    if inputs[0].pack:
        return f"{kind.torch_name}(({', '.join(args)}), {_keywords(values)})".replace(", )", ")")
    if len(args) > 1:
        return f"{kind.torch_name}({', '.join(args)}, {_keywords(values)})"
    return _method(block, args[0], values)


def _method(block: Block, x: str, values: dict[str, ParamValue]) -> str:
    name = block.kind.rpartition(".")[2]
    match block.kind:
        case "Tensor.reshape":
            shape = values["shape"]
            assert isinstance(shape, tuple)
            return f"{x}.reshape({x}.shape[0], {', '.join(map(str, shape))})"
        case "torch.permute":
            dims = values["dims"]
            return f"{x}.permute({', '.join(map(str, dims)) if isinstance(dims, tuple) else dims})"
        case "torch.select" if values["dim"] == 1:
            return f"{x}[:, {values['index']}]"
    if block.kind in _BY_POSITION:
        return f"{x}.{name}({', '.join(map(repr, values.values()))})"
    return f"{x}.{name}({_keywords(values)})"


def _keywords(values: dict[str, ParamValue]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in values.items())


def _literal(value: ParamValue) -> str:
    """Return a value as formatters write it: strings in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def grouped(ports: Iterable[Port], names: list[str], pack) -> list[str]:
    """Return `names`, with the names of ports that share a `pack` joined by `pack`."""
    groups: dict[str, list[str]] = {}
    packed = set()
    for port, name in zip(ports, names, strict=True):
        groups.setdefault(port.pack or port.name, []).append(name)
        if port.pack:
            packed.add(port.pack)
    return [
        ("_" if set(group) == {"_"} else pack(group)) if key in packed else group[0]
        for key, group in groups.items()
    ]


def sample(block: Block) -> str:
    """Return the expression of a batch of four random samples for an Input."""
    values = catalogue.arguments(block)
    shape = values["shape"]
    sizes = ", ".join(map(str, (4, *(shape if isinstance(shape, tuple) else ()))))
    if values["dtype"] == "int64":
        return f"torch.randint(2, ({sizes}))"
    dtype = f", dtype=torch.{values['dtype']}" if values["dtype"] != "float32" else ""
    return f"torch.randn({sizes}{dtype})"
