"""Random chains of operations: what is predicted of each line against what plain torch makes of it.

`make fuzz` runs more of them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.operations.explain import check, read
from tests.examples import examples, seconds

LARGE = 600
"""Elements from which on an operation that makes more of them is not drawn."""

pytestmark = [
    pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*(is|are|now) deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0:UserWarning"),
    pytest.mark.timeout(seconds(50)),
]

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool,
          torch.complex64]  # fmt: skip
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last]


class Chain:
    """Draws lines on the variables `v0`, `v1`, ... of which there are more after each."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.variables: dict[str, Any] = {"torch": torch}
        for i in range(2):
            self.variables[f"v{i}"] = self._tensor()

    def one(self, *choices: Any) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def between(self, least: int, most: int) -> int:
        return self._data.draw(st.integers(least, max(least, most)))

    def name(self) -> str:
        return self.one(*[n for n in self.variables if n != "torch"][-4:])

    def dim(self, t: torch.Tensor, extra: int = 0) -> int:
        """Mostly a dimension there is, now and then the one after."""
        most = max(t.ndim + extra, 1)
        return self.between(-most, most - 1 + self.one(0, 0, 0, 1))

    def order(self, t: torch.Tensor) -> tuple[int, ...]:
        return tuple(self._data.draw(st.permutations(range(t.ndim))))

    def shape_for(self, t: torch.Tensor) -> tuple[int, ...]:
        """One of as many elements, as a rule, perhaps with a -1 in it."""
        if self.one(*range(12)) == 0:
            return tuple(self.between(0, 4) for _ in range(self.between(0, 3)))
        rest, sizes = t.numel(), []
        while rest > 1 and len(sizes) < 3:
            size = self.one(*[n for n in range(1, rest + 1) if rest % n == 0])
            sizes.append(size)
            rest //= size
        sizes.append(rest)
        if self.one(False, True):
            sizes[self.between(0, len(sizes) - 1)] = -1
        return tuple(sizes)

    def filled(self, x: str) -> str:
        """One with elements if `x` has some, else `x`."""
        name = self.name()
        return name if self.variables[name].numel() and self.variables[x].numel() else x

    def memory_format(self) -> str:
        return f"memory_format={self.one(*FORMATS)}"

    def index(self, t: torch.Tensor) -> str:
        items, dims = [], 0
        for _ in range(self.between(1, 3)):
            kinds = ["None", "bool", "..."] if "..." not in items else ["None", "bool"]
            if dims < t.ndim:
                kinds += ["int", "slice", "slice", "list", "tensor", "mask"]
            kind = self.one(*kinds)
            size = t.shape[dims] if dims < t.ndim and "..." not in items else 1
            dims += kind not in ("None", "...", "bool")
            if kind == "int":
                kind = str(self.between(-size, size))
            elif kind == "slice":
                low, high = self.one("", "1", "-2"), self.one("", "2", "-1")
                kind = f"{low}:{high}" + self.one("", ":2", ":3")
            elif kind == "bool":
                kind = self.one("True", "False", "torch.tensor(True)", "torch.tensor(False)")
            elif kind == "mask":
                kind = str([self.one(True, False) for _ in range(size)])
            elif kind == "list":
                kind = self.indices(size, 1)
            elif kind == "tensor":
                kind = f"torch.tensor([{self.indices(size, 1)}, {self.indices(size, 1)}])"
            items.append(kind)
        return ", ".join(items)

    def indices(self, size: int, from_end: int = 0) -> str:
        """Two indices into a dimension, now and then one beyond its ends."""
        beyond = self.one(0, 0, 0, 0, 0, 1)
        least = -size * from_end - beyond
        return f"[0, {self.between(least, max(size - 1 + beyond, least))}]"

    def _tensor(self) -> torch.Tensor:
        shape = tuple(self.between(0, 4) or 1 for _ in range(self.between(0, 4)))
        if shape and self.between(0, 15) == 0:
            shape = (0, *shape[1:])
        t = torch.arange(math.prod(shape)).reshape(shape).to(self.one(*DTYPES))
        if t.ndim == 4 and self.one(False, True):
            return t.to(memory_format=torch.channels_last)
        return t.permute(self.order(t))


Draw = Callable[[Chain, str, torch.Tensor], str]

VIEWS: dict[str, Draw] = {
    "view": lambda c, x, t: f"{x}.view{c.shape_for(t)}",
    "reshape": lambda c, x, t: f"{x}.reshape({c.shape_for(t)})",
    "flatten": lambda c, x, t: f"{x}.flatten({c.dim(t)}, {c.dim(t)})",
    "squeeze": lambda c, x, t: f"{x}.squeeze({c.one('', c.dim(t))})",
    "unsqueeze": lambda c, x, t: f"{x}.unsqueeze({c.dim(t, 1)})",
    "transpose": lambda c, x, t: f"{x}.transpose({c.dim(t)}, {c.dim(t)})",
    "permute": lambda c, x, t: f"{x}.permute({c.order(t)})",
    "turned": lambda c, x, t: f"{x}.{c.one('T', 'mT', 'H', 'mH', 'conj()', 'real')}",
    "view(dtype)": lambda c, x, t: f"{x}.view({c.one(*DTYPES)})",
    "movedim": lambda c, x, t: f"{x}.movedim({c.dim(t)}, {c.dim(t)})",
    "expand": lambda c, x, t: f"{x}.expand({_stretched(c, t)})",
    "narrow": lambda c, x, t: f"{x}.narrow({c.dim(t)}, {c.between(-1, 2)}, {c.between(0, 3)})",
    "select": lambda c, x, t: f"{x}.select({c.dim(t)}, {c.between(-2, 2)})",
    "slicing": lambda c, x, t: f"{x}[{c.index(t)}]",
    "chunk": lambda c, x, t: f"{x}.chunk({c.between(1, 4)}, {c.dim(t)})",
    "split": lambda c, x, t: f"{x}.split({c.between(1, 3)}, {c.dim(t)})",
    "unbind": lambda c, x, t: f"{x}.unbind({c.dim(t)})",
    "unfold": lambda c, x, t: f"{x}.unfold({c.dim(t)}, {c.between(0, 3)}, {c.between(1, 3)})",
    "as_strided": lambda c, x, t: f"{x}.as_strided({_strided(c)})",
    "contiguous": lambda c, x, t: f"{x}.contiguous({c.one('', c.memory_format())})",
    "detach": lambda c, x, t: f"{x}.detach()",
}
UNARY = ("exp", "log", "sqrt", "sigmoid", "tanh", "relu", "abs", "neg", "sign", "square", "round",
         "floor", "erf", "reciprocal", "isnan", "isfinite", "logical_not")  # fmt: skip
COPIES: dict[str, Draw] = {
    "clone": lambda c, x, t: f"{x}.clone({c.one('', c.memory_format())})",
    "to": lambda c, x, t: f"{x}.to({c.one(*DTYPES)}, {c.one('', c.memory_format())})",
    "to format": lambda c, x, t: f"{x}.to({c.memory_format()})",
    "cast": lambda c, x, t: f"{x}.{c.one('float', 'double', 'long', 'bool', 'cfloat')}()",
    "mask": lambda c, x, t: f"{x}[{x} != 1]" if t.ndim else f"{x}[...]",
    "gather": lambda c, x, t: f"{x}.gather(0, torch.zeros_like({x}, dtype=torch.int64))",
    "picked": lambda c, x, t: _picked(c, x, t, c.one("gather", "scatter", "take_along_dim")),
    "take": lambda c, x, t: f"{x}.take(torch.tensor({c.indices(t.numel(), 1)}))",
    "index_select": lambda c, x, t: _selected(c, x, t),
    "scatter": lambda c, x, t: f"{x}.scatter(0, torch.zeros_like({x}, dtype=torch.int64), 1)",
    "take_along_dim": lambda c, x, t: (
        f"{x}.take_along_dim(torch.zeros_like({x}, dtype=torch.int64), {c.dim(t)})"
    ),
    "where": lambda c, x, t: f"torch.where({x} != 1, {x}, {c.one(c.name(), '0', '0.5')})",
    "repeat": lambda c, x, t: f"{x}.repeat({tuple(c.between(0, 2) for _ in range(t.ndim + 1))})",
    "stack": lambda c, x, t: f"torch.stack([{x}, {c.one(x, c.name())}], {c.dim(t, 1)})",
    "cat": lambda c, x, t: f"torch.cat([{x}, {c.one(x, x, c.name())}], {c.dim(t)})",
    "operator": lambda c, x, t: f"{x} {c.one('+', '-', '*', '/', '==', '<')} {_other(c)}",
    "reflected": lambda c, x, t: f"{c.one('1', '2.5')} {c.one('+', '-', '*')} {x}",
    "unary": lambda c, x, t: f"{x}.{c.one(*UNARY)}()",
    "activation": lambda c, x, t: (
        f"torch.nn.functional.{c.one('gelu', 'elu')}({x})" if _has_numbers(t) else f"{x}.relu()"
    ),
}
FOLDS = ("sum", "mean", "any", "all", "amax", "amin", "std", "var", "norm", "count_nonzero")
ONE_DIM_FOLDS = ("prod", "max", "min", "argmax", "argmin", "median")
REDUCTIONS: dict[str, Draw] = {
    "all": lambda c, x, t: f"{x}.{c.one(*FOLDS, *ONE_DIM_FOLDS)}()",
    "one": lambda c, x, t: (
        f"{x}.{c.one('sum', 'mean', 'any', 'all', 'amax', 'std', *ONE_DIM_FOLDS)}"
        f"(dim={c.dim(t)}, keepdim={c.one(True, False)})"
    ),
    "several": lambda c, x, t: (
        f"{x}.{c.one('sum', 'mean', 'any', 'amin', 'var', 'logsumexp')}"
        f"(({c.dim(t)}, {c.dim(t)}), {c.one(True, False)})"
    ),
    "norm": lambda c, x, t: f"{x}.norm({c.one(1, 2, 3.0)}, {c.dim(t)})",
    "values": lambda c, x, t: f"{x}.{c.one('max', 'min', 'sort')}({c.dim(t)}).{c.one(*PAIR)} * 1",
    "dtype": lambda c, x, t: f"{x}.{c.one('sum', 'mean', 'prod')}(dtype={c.one(*DTYPES)})",
    "along": lambda c, x, t: f"{x}.{c.one(*ALONG)}({c.dim(t)})",
    "topk": lambda c, x, t: f"{x}.topk({c.between(0, 3)}, {c.dim(t)})",
    "larger": lambda c, x, t: f"{x}.{c.one('max', 'min')}({c.name()})",
}
PRODUCTS: dict[str, Draw] = {
    "self": lambda c, x, t: f"{x} @ {x}.mT" if t.ndim > 1 else f"{x} @ {x}",
    "other": lambda c, x, t: f"{x} @ {c.filled(x)}",
    "named": lambda c, x, t: f"{x}.{c.one('matmul', 'mm', 'mv', 'dot')}({c.filled(x)})",
    "bmm": lambda c, x, t: f"{x}.bmm({c.one(f'{x}.transpose(-1, -2)', c.filled(x))})",
    "vector": lambda c, x, t: f"{x} @ torch.ones({_last(t)}, dtype={t.dtype})",
    "matrix": lambda c, x, t: f"{x} @ torch.ones({_last(t)}, {c.between(1, 2)}, dtype={t.dtype})",
    "linear": lambda c, x, t: (
        f"torch.nn.functional.linear({x}, torch.ones(2, {_last(t)}, dtype={t.dtype}))"
        if t.ndim
        else f"{x} @ {x}"
    ),
    "outer": lambda c, x, t: f"torch.outer({x}, {c.filled(x)})",
    "einsum": lambda c, x, t: _einsum(c, x, t),
}
PAIR = ("values", "indices")
ALONG = ("cumsum", "cumprod", "softmax", "log_softmax", "sort", "argsort", "cumsum_")
IN_PLACE: dict[str, Draw] = {
    "operator": lambda c, x, t: f"{x} {c.one('+=', '-=', '*=', '/=')} {_other(c)}",
    "method": lambda c, x, t: f"{x}.{c.one('add_', 'mul_', 'copy_')}({c.name()})",
    "fill": lambda c, x, t: f"{x}.{c.one('zero_()', 'fill_(1)', 'neg_()', 'exp_()', 'abs_()')}",
    "unary": lambda c, x, t: f"{x}.{c.one('relu_', 'sqrt_', 'sigmoid_', 'tanh_', 'round_')}()",
    "shape": lambda c, x, t: f"{x}.{c.one('squeeze_()', f'unsqueeze_({c.dim(t, 1)})')}",
    "transpose": lambda c, x, t: f"{x}.transpose_({c.dim(t)}, {c.dim(t)})",
    "pick": lambda c, x, t: f"{x}[{c.index(t)}] = {c.one('1', 'True', f'{x}.clone()[:1]')}",
    "assign": lambda c, x, t: f"{x}[{_slices(c, t)}] = {_other(c)}",
    "update": lambda c, x, t: f"{x}[{_slices(c, t)}] += {_other(c)}",
    "scatter": lambda c, x, t: f"{x}.scatter_(0, torch.zeros_like({x}, dtype=torch.int64), 1)",
}


def _has_numbers(t: torch.Tensor) -> bool:
    return t.numel() > 0 and not t.is_complex()


def _last(t: torch.Tensor) -> int:
    return t.shape[-1] if t.ndim else 1


def _einsum(c: Chain, x: str, t: torch.Tensor) -> str:
    own = "ijklmnop"[: t.ndim]
    kept = "".join(own[d] for d in c.order(t))[: c.between(0, t.ndim)]
    if not own:
        return f"{x}.mT"
    if not {0, 1} & set(t.shape) and t.dtype != torch.bool and c.one(True, False):
        return f"torch.einsum('{own},{own}->{kept}', {x}, {x})"
    return f"torch.einsum('{own}->{kept}', {x})"


def _picked(c: Chain, x: str, t: torch.Tensor, name: str) -> str:
    """With an index of one or two elements along a dimension, one along all others."""
    dim = c.between(0, max(t.ndim - 1, 0))
    shape = tuple(c.one(1, 2) if d == dim else 1 for d in range(t.ndim))
    size = t.shape[dim] if t.ndim else 1
    pair = c.indices(size, c.one(0, 0, 1))
    index = f"torch.tensor({pair})[:{math.prod(shape)}].reshape({shape})"
    if name == "take_along_dim":
        return f"{x}.take_along_dim({index}{c.one('', f', {dim}')})"
    return f"{x}.{name}({dim}, {index}{', 1' if name == 'scatter' else ''})"


def _selected(c: Chain, x: str, t: torch.Tensor) -> str:
    dim = c.between(0, max(t.ndim - 1, 0))
    pair = c.indices(t.shape[dim] if t.ndim else 1)
    return f"{x}.index_select({dim}, torch.tensor({pair})[{c.one(':', ':1', ':0', '1')}])"


def _other(c: Chain) -> str:
    return c.one(c.name(), c.name(), "2", "0.5", "True")


def _slices(c: Chain, t: torch.Tensor) -> str:
    return c.one("...", ":", "0", "1:", "::2") if t.ndim else "..."


def _stretched(c: Chain, t: torch.Tensor) -> tuple[int, ...]:
    kept = (c.one(-1, 3) if size == 1 else size for size in t.shape)
    return (*(c.between(0, 2) for _ in range(c.one(0, 0, 1))), *kept)


def _strided(c: Chain) -> str:
    ndim = c.between(0, 3)
    size = tuple(c.between(0, 3) for _ in range(ndim))
    stride = tuple(c.between(0, 4) for _ in range(ndim))
    return f"{size}, {stride}{c.one('', ', 1')}"


def sharing(t: torch.Tensor, variables: Mapping[str, Any]) -> set[str]:
    """The variables over the same storage as `t`."""
    storage = t.untyped_storage()._cdata
    return {
        name
        for name, other in variables.items()
        if isinstance(other, torch.Tensor) and other.untyped_storage()._cdata == storage
    }


@settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_prediction_is_fact_along_random_chains(data: st.DataObject) -> None:
    chain = Chain(data)
    for step in range(chain.between(1, 6)):
        x = chain.name()
        t = chain.variables[x]
        table = chain.one(VIEWS, VIEWS, COPIES, IN_PLACE, REDUCTIONS, PRODUCTS)
        if t.numel() > LARGE:
            table = VIEWS
        line = table[chain.one(*table)](chain, x, t)
        before = dict(chain.variables)
        kept = {n: v.clone() for n, v in before.items() if n != "torch"}
        facts = check(read(line, before))
        assert all(kept[n].equal(before[n]) or v.isnan().any() for n, v in kept.items())
        assert [fact.differs for fact in facts] == [()] * len(facts), line
        _hold_against_torch(line, f"w{step}", chain)


def _hold_against_torch(line: str, name: str, chain: Chain) -> None:
    """Run the line in earnest and compare; its first result, if new, is the next variable."""
    before = dict(chain.variables)
    steps = read(line, before)
    said = steps[-1].outcome
    statement = isinstance(ast.parse(line).body[0], ast.Assign | ast.AugAssign)
    try:
        if statement:
            exec(line, {}, chain.variables)
            given = chain.variables[line[:2]]
        else:
            given = eval(line, {}, chain.variables)
    except (RuntimeError, IndexError, TypeError) as error:
        assert said is None, f"{line}: torch refuses: {error}"
        return
    assert said is not None, f"{line}: {steps[-1].refusal}"
    results = tuple(given) if isinstance(given, tuple | list) else (given,)
    assert len(results) == len(said.results), line
    owners = {term.layout.memory: term.compute() for s in steps for term in s.operands}
    for t, predicted in zip(results, said.results, strict=True):
        fact = (tuple(t.shape), t.stride(), t.storage_offset(), t.dtype)
        told = (predicted.shape, predicted.stride, predicted.offset, predicted.dtype)
        assert fact == told, line
        if said.kind != "in place":  # those are read on copies
            owner = owners.get(predicted.memory)
            shares = set() if owner is None else sharing(owner, before)
            assert sharing(t, before) == shares, line
    match said.kind:
        case "same" | "in place":
            assert any(results[0] is t for t in before.values()), line
        case _:
            assert all(t is not u for t in results for u in before.values()), line
    if results and not statement and results[0].numel() < LARGE * 4:
        chain.variables[name] = results[0]
