"""A typed line, read as steps: each operation with its operands, its predicted outcome, and the
call that would run it. Nothing is run but what only makes new constants."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType
from typing import Any

import torch

from ...console.resolve import resolve
from ...errors import LabError
from .layout import Layout
from .leaves import CREATORS, Leaves, create
from .operators import IN_PLACE, OPERATORS, PROPERTIES, QUESTIONS, REFLECTED
from .registry import RULES, NotCovered, Outcome, Refusal

MAX_READ = 1 << 24
"""What must be known of a mask or an index is computed from tensors of up to so many elements."""

_EXAMPLES = "Write one operation, such as y = x.T.reshape(-1), torch.cat([x, y]) or x[0] += 1."


@dataclass
class Term:
    """A tensor in an expression. `compute` runs what leads to it, once."""

    text: str
    layout: Layout
    compute: Callable[[], torch.Tensor]


@dataclass
class Step:
    """One operation of a line. `refusal` in place of `outcome` where torch will raise.
    `compute` runs it (and what comes before it), once; it gives what torch gives. `args` and
    `kwargs` are all that it is given, with its tensors as `operands` has them."""

    source: str
    operation: str
    operands: tuple[Term, ...]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    refusal: Refusal | None = None
    compute: Callable[[], Any] = field(default=lambda: None)


def layout_of(t: torch.Tensor, text: str = "x") -> Layout:
    """The layout of a live tensor. Raises LabError for others than strided ones."""
    return replace(Leaves().layout(t, text), data=None)


def read(source: str, variables: Mapping[str, object]) -> list[Step]:
    """The operations of one line, innermost first; the last may be refused, then none follow.

    Raises LabError when the line is no Python or names what is not there, NoRule when it does
    what no rule covers. Reads masks for the number of their True elements; else changes and
    computes nothing.
    """
    statement = _parse(source)
    reader = _Reader(variables, _changes_something(statement))
    try:
        reader.statement(statement)
    except _Stop:
        pass
    except NotCovered as error:
        raise NoRule(
            f"There is no rule for {error}.",
            hint="Run the line in the console to see what it does.",
        ) from None
    if not reader.steps:
        raise LabError("There is no operation on a tensor in this line.", hint=_EXAMPLES)
    return reader.steps


def _parse(source: str) -> ast.stmt:
    try:
        body = ast.parse(source.strip()).body
    except (SyntaxError, ValueError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise LabError(f"This is not a line of Python yet: {said}.", hint=_EXAMPLES) from None
    if len(body) != 1:
        raise LabError("One line is explained at a time.", hint=_EXAMPLES)
    return body[0]


def _changes_something(statement: ast.stmt) -> bool:
    """Is there an operation in place: then the line is tried on copies of its variables."""
    return any(
        isinstance(node, ast.AugAssign)
        or (isinstance(node, ast.Attribute) and node.attr.endswith("_"))
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
        for node in ast.walk(statement)
    )


class NoRule(LabError):
    """The line may well run, but what it does is not predicted here."""


class _Stop(Exception):
    """A step was refused: nothing after it runs."""


@dataclass(frozen=True)
class _Method:
    term: Term
    name: str


class _Results(tuple[Term, ...]):
    """Several results of one operation; `names` are their attributes, if they have any."""

    names: tuple[str, ...] = ()


class _Reader:
    """Walks the tree. Tensors are `Term`s, everything else is the Python value itself."""

    def __init__(self, variables: Mapping[str, object], on_copies: bool) -> None:
        self.steps: list[Step] = []
        self._variables = variables
        self._leaves = Leaves()
        self._terms: dict[int, Term] = {}
        self._on_copies = on_copies

    # -- statements ------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr):
            self._value(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], node.value, ast.unparse(node))
        elif isinstance(node, ast.AugAssign):
            self._update(node)
        else:
            raise LabError("Only one operation or assignment is explained.", hint=_EXAMPLES)

    def _assign(self, target: ast.expr, value_node: ast.expr, source: str) -> None:
        value = self._value(value_node)
        if isinstance(target, ast.Subscript):
            owner, index = self._value(target.value), self._value(target.slice)
            if not isinstance(owner, Term):
                raise NotCovered("assigning to this")
            self._step("__setitem__", operator.setitem, [owner, index, value], {}, source)
        elif not isinstance(target, ast.Name | ast.Tuple):
            raise NotCovered("assigning to an attribute")

    def _update(self, node: ast.AugAssign) -> None:
        source = ast.unparse(node)
        if type(node.op) not in OPERATORS:
            raise NotCovered(f"`{source}`")
        name = OPERATORS[type(node.op)][0] + "_"
        target = node.target
        if isinstance(node.op, ast.MatMult):
            if not isinstance(target, ast.Name):
                raise NotCovered(f"`{source}`")
            operands = [self._named(target.id), self._value(node.value)]
            self._step("matmul", operator.matmul, operands, {}, source)  # tensors have no `@=`
            return
        if not isinstance(target, ast.Subscript):
            owner = self._value(ast.parse(ast.unparse(target), mode="eval").body)
            if not isinstance(owner, Term):
                raise NotCovered("changing what is no tensor")
            self._step(name, IN_PLACE[name], [owner, self._value(node.value)], {}, source)
            return
        # Python reads the part, changes it in place, and assigns it back.
        whole, index = self._value(target.value), self._value(target.slice)
        if not isinstance(whole, Term):
            raise NotCovered("changing what is no tensor")
        written = ast.unparse(target)
        part = self._step("__getitem__", operator.getitem, [whole, index], {}, written)
        changed = self._step(name, IN_PLACE[name], [part, self._value(node.value)], {}, source)
        back = f"{written} = (the result)"
        self._step("__setitem__", operator.setitem, [whole, index, changed], {}, back)

    # -- expressions -----------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        source = ast.unparse(node)
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._named(node.id)
            case ast.Tuple():
                return tuple(self._value(item) for item in node.elts)
            case ast.List():
                return [self._value(item) for item in node.elts]
            case ast.Slice():
                ends = (node.lower, node.upper, node.step)
                return slice(*(None if end is None else self._value(end) for end in ends))
            case ast.Attribute():
                return self._attribute(self._value(node.value), node.attr, source)
            case ast.Subscript():
                owner, index = self._value(node.value), self._value(node.slice)
                if isinstance(owner, Term):
                    return self._step("__getitem__", operator.getitem, [owner, index], {}, source)
                return _plain(lambda: owner[index], source)
            case ast.Call():
                return self._call(node, source)
            case ast.UnaryOp() | ast.BinOp() | ast.Compare():
                return self._operator(node, source)
        raise NotCovered(f"`{source}`")

    def _named(self, name: str) -> Any:
        return self._known(resolve(name, self._variables), name)

    def _known(self, value: object, text: str) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._terms:
                self._terms[id(value)] = self._leaf(value, text)
            return self._terms[id(value)]
        return value

    def _leaf(self, t: torch.Tensor, text: str) -> Term:
        return Term(
            text,
            self._leaves.layout(t, text),
            cache(lambda: self._leaves.copy(t) if self._on_copies else t),
        )

    def _attribute(self, owner: Any, name: str, source: str) -> Any:
        if isinstance(owner, _Results) and name in owner.names:
            return owner[owner.names.index(name)]
        if not isinstance(owner, Term):
            return self._known(_plain(lambda: getattr(owner, name), source), source)
        if name in PROPERTIES:
            return PROPERTIES[name](owner.layout)
        if name == "grad":
            return self._known(resolve(source, self._variables), source)
        if not hasattr(torch.Tensor, name):
            raise LabError(f"Tensors have no `{name}`.", hint="Check the spelling.")
        if not callable(getattr(torch.Tensor, name)):
            return self._step(name, lambda t: getattr(t, name), [owner], {}, source)
        return _Method(owner, name)

    def _call(self, node: ast.Call, source: str) -> Any:
        function = self._value(node.func)
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            raise NotCovered("arguments unpacked with *")
        args = [self._value(arg) for arg in node.args]
        kwargs = {str(k.arg): self._value(k.value) for k in node.keywords}
        if isinstance(function, _Method):
            name, term = function.name, function.term
            if name in QUESTIONS:
                return _plain(lambda: QUESTIONS[name](term.layout, *args, **kwargs), source)
            if name == "where":  # the method is called on the first branch
                args = [args[0], term, *args[1:]]
                return self._step(name, torch.where, args, kwargs, source)
            return self._step(
                name, lambda t, *a, **k: getattr(t, name)(*a, **k), [term, *args], kwargs, source
            )
        name = getattr(function, "__name__", "")
        if function is getattr(torch, name or " ", None) and name in CREATORS:
            made = create(function, [_real(a) for a in args], _real(kwargs))
            return Term(source, self._leaves.layout(made, source), lambda: made)
        homes = (torch, torch.nn.functional, torch.Tensor)
        if not any(function is getattr(home, name or " ", None) for home in homes):
            raise NotCovered(f"calling `{ast.unparse(node.func)}`")
        return self._step(name, function, args, kwargs, source)

    def _operator(self, node: ast.UnaryOp | ast.BinOp | ast.Compare, source: str) -> Any:
        if isinstance(node, ast.UnaryOp):
            kind, values = node.op, [self._value(node.operand)]
        elif isinstance(node, ast.BinOp):
            kind, values = node.op, [self._value(node.left), self._value(node.right)]
        elif len(node.ops) == 1:
            kind, values = node.ops[0], [self._value(node.left), self._value(node.comparators[0])]
        else:
            raise NotCovered("a chain of comparisons")
        if type(kind) not in OPERATORS:
            raise NotCovered(f"`{source}`")
        name, run = OPERATORS[type(kind)]
        if not any(isinstance(value, Term) for value in values):
            return _plain(lambda: run(*values), source)
        if len(values) == 2 and not isinstance(values[0], Term):
            if name == "div":
                inverse = self._step(
                    "reciprocal",
                    torch.reciprocal,
                    [values[1]],
                    {},
                    f"{_text(values[1])}.reciprocal()",
                )
                return self._step("mul", operator.mul, [inverse, values[0]], {}, source)
            if name in REFLECTED:  # Python asks the tensor: 1 + x is x + 1
                swapped = [values[1], values[0]]
                return self._step(REFLECTED[name], lambda t, v: run(v, t), swapped, {}, source)
        return self._step(name, run, values, {}, source)

    # -- steps -----------------------------------------------------------------------------------

    def _step(
        self,
        name: str,
        run: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
        source: str,
    ) -> Any:
        """Predict one operation. Returns its result; raises _Stop when it is refused."""
        rule = RULES.get(name)
        if rule is None:
            raise NotCovered(f"`{name}`")
        step = Step(source, name, tuple(_terms_in([args, kwargs])), args, kwargs)
        step.compute = cache(lambda: run(*_real(args), **_real(kwargs)))
        changes = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if changes and not self._on_copies:
            raise NotCovered(f"`{name}` under another name")
        self.steps.append(step)
        plain_args, plain_kwargs = _with_sizes(rule, _abstract(args), _abstract(kwargs))
        try:
            inspect.signature(rule).bind(*plain_args, **plain_kwargs)
        except TypeError as error:
            raise NotCovered(f"`{name}` called like this ({error})") from None
        try:
            outcome = rule(*plain_args, **plain_kwargs)
        except Refusal as refusal:
            step.refusal = refusal
            raise _Stop from None
        if changes:
            outcome = replace(outcome, kind="in place")
        derived = torch.is_grad_enabled() and any(term.layout.grad for term in step.operands)
        results = tuple(self._settled(x, derived and name != "detach") for x in outcome.results)
        step.outcome = replace(outcome, results=results)
        return self._result(step, changes)

    def _settled(self, layout: Layout, derived: bool) -> Layout:
        """With a number for memory that the operation makes; `derived` from what requires grad."""
        has_graph = derived and (layout.dtype.is_floating_point or layout.dtype.is_complex)
        layout = replace(layout, grad="derived" if has_graph else "")
        if layout.memory is not None:
            return layout
        return replace(
            layout,
            memory=self._leaves.new_memory(),
            storage_bytes=layout.extent() * layout.dtype.itemsize,
        )

    def _result(self, step: Step, changes: bool) -> Any:
        assert step.outcome is not None
        results, names = step.outcome.results, step.outcome.names
        cheap = _is_cheap(step)
        if not step.outcome.many:
            compute = step.compute if step.operation != "__setitem__" else step.operands[0].compute
            term = _term(step.source, results[0], compute, cheap)
            if changes:  # later mentions of the operand mean what it has become
                step.operands[0].layout = term.layout
            return term
        made = _Results(
            _term(
                f"{step.source}.{names[i]}" if names else f"{step.source}[{i}]",
                layout,
                lambda i=i: step.compute()[i],
                cheap,
            )
            for i, layout in enumerate(results)
        )
        made.names = names
        return made


def _is_cheap(step: Step) -> bool:
    """May a rule that depends on this step's numbers have them computed?"""
    assert step.outcome is not None
    known = all(term.layout.data is not None for term in step.operands)
    if step.outcome.kind in ("view", "same"):
        return known
    layouts = (*step.outcome.results, *(term.layout for term in step.operands))
    return known and max(step.outcome.work, *(x.numel for x in layouts)) <= MAX_READ


def _term(text: str, layout: Layout, compute: Callable[[], torch.Tensor], cheap: bool) -> Term:
    data = torch.no_grad()(compute) if cheap else None
    return Term(text, replace(layout, data=data), compute)


def _with_sizes(
    rule: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Sizes that are given by name, as the last argument: rules take them as `*sizes`."""
    for name, parameter in inspect.signature(rule).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            given = [kwargs[key] for key in (name, "size", "shape", "dims") if key in kwargs]
            rest = {k: v for k, v in kwargs.items() if k not in (name, "size", "shape", "dims")}
            return [*args, *given[:1]], rest
    return args, kwargs


def _plain(compute: Callable[[], Any], source: str) -> Any:
    try:
        return compute()
    except Exception as error:
        raise LabError(f"`{source}` cannot be read: {error}") from error


def _text(value: Any) -> str:
    return value.text if isinstance(value, Term) else repr(value)


def with_terms(value: Any, change: Callable[[Term], Any]) -> Any:
    """`value`, a list or the like, with something else in place of its tensors."""
    if isinstance(value, Term):
        return change(value)
    if isinstance(value, list):
        return [with_terms(item, change) for item in value]
    if type(value) in (tuple, _Results):
        return tuple(with_terms(item, change) for item in value)
    if isinstance(value, dict):
        return {key: with_terms(item, change) for key, item in value.items()}
    if isinstance(value, ModuleType | _Method):
        raise NotCovered(f"{value!r} as an argument")
    return value


def _real(value: Any) -> Any:
    return with_terms(value, lambda term: term.compute())


def _abstract(value: Any) -> Any:
    return with_terms(value, lambda term: term.layout)


def _terms_in(value: Any) -> list[Term]:
    found: list[Term] = []
    with_terms(value, found.append)
    return found
