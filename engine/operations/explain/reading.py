"""A typed line, read as steps: each operation with its operands, its predicted outcome, and the
call that would run it. The line does not run, and its variables do not change."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import torch

from ...console.resolve import resolve
from ...system.errors import LabError
from .layout import layout_of
from .operators import CREATORS, OPERATORS, assign, in_place, is_function, is_method
from .predict import SMALL, Predictor, can_be_read
from .stand_ins import StandIns, check_strided, copied_storage
from .steps import NoRule, Runner, Step, Term, terms_in

SMALL_BYTES = 1 << 20
"""A storage of up to this size is copied for each reading, to try small operations."""
_EXAMPLES = "Write one operation, such as y = x.T.reshape(-1), torch.cat([x, y]) or x[0] += 1."
_PLAIN = (int, float, complex, str, torch.dtype, torch.device, torch.layout, tuple)


def read(source: str, variables: Mapping[str, object]) -> list[Step]:
    """The operations of one line, innermost first, up to the first that torch would refuse.

    Raises LabError when the line is not Python or has an unknown name, NoRule when its result
    cannot be predicted. Small tensors are copied to try it; of large ones only masks and indices
    are read.
    """
    statement = _parse(source)
    reader = _Reader(variables)
    with suppress(_Stop):
        reader.statement(statement)
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


class _Stop(Exception):
    """A step was refused: the line ends there."""


@dataclass(frozen=True)
class _Method:
    term: Term
    name: str


class _Results(tuple[Term, ...]):
    """Several results of one operation; `names` are those of a named tuple."""

    names: tuple[str, ...] = ()


class _Reader:
    """Walks the syntax tree. Tensors are `Term`s, all other values are Python's own."""

    def __init__(self, variables: Mapping[str, object]) -> None:
        self.steps: list[Step] = []
        self._variables = variables
        self._terms: dict[int, Term] = {}
        self._memories: dict[int, int] = {}
        self._count = 0
        self._predictor = Predictor(self._new_memory)
        self._own = Runner(lambda t: t, torch.no_grad)
        self._on_copies = Runner(StandIns(copied_storage).of, ExitStack)
        self._writes = False

    def _runner(self) -> Runner:
        """Runs the line: on copies of its variables if it writes, else on the variables."""
        return self._on_copies if self._writes else self._own

    def _new_memory(self) -> int:
        self._count += 1
        return self._count

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
                raise NoRule("assigning to this")
            self._step("__setitem__", assign, [owner, index, value], {}, source)
        elif not isinstance(target, ast.Name | ast.Tuple):
            raise NoRule("assigning to an attribute")

    def _update(self, node: ast.AugAssign) -> None:
        source, kind, target = ast.unparse(node), type(node.op), node.target
        if kind is ast.MatMult and isinstance(target, ast.Name):  # tensors have no `@=`
            operands = [self._named(target.id), self._value(node.value)]
            self._step("matmul", operator.matmul, operands, {}, source)
            return
        if kind not in OPERATORS or kind is ast.MatMult:
            raise NoRule(f"`{source}`")
        name = OPERATORS[kind][0] + "_"
        if not isinstance(target, ast.Subscript):
            owner = self._value(ast.parse(ast.unparse(target), mode="eval").body)
            if not isinstance(owner, Term):
                raise NoRule("changing something that is not a tensor")
            self._step(name, in_place(kind), [owner, self._value(node.value)], {}, source)
            return
        # Python reads the part, changes it in place, and assigns it back.
        whole, index = self._value(target.value), self._value(target.slice)
        if not isinstance(whole, Term):
            raise NoRule("changing something that is not a tensor")
        written = ast.unparse(target)
        part = self._step("__getitem__", operator.getitem, [whole, index], {}, written)
        changed = self._step(name, in_place(kind), [part, self._value(node.value)], {}, source)
        back = f"{written} = (the result)"
        self._step("__setitem__", assign, [whole, index, changed], {}, back)

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
                return slice(*(None if end is None else self._bound(end) for end in ends))
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
        raise NoRule(f"`{source}`")

    def _bound(self, node: ast.expr) -> Any:
        value = self._value(node)
        if isinstance(value, Term):
            raise NoRule("a tensor as the bound of a slice")
        return value

    def _named(self, name: str) -> Any:
        return self._known(resolve(name, self._variables), name)

    def _known(self, value: object, text: str) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in self._terms:
            check_strided(value, text)
            storage = value.untyped_storage()
            if storage._cdata not in self._memories:
                self._memories[storage._cdata] = self._new_memory()
            layout = layout_of(value, self._memories[storage._cdata])
            small = value.device.type == "cpu" and storage.nbytes() <= SMALL_BYTES
            small = small and value.numel() <= SMALL
            self._terms[id(value)] = Term(text, layout, self._runner, value, is_small=small)
        return self._terms[id(value)]

    def _attribute(self, owner: Any, name: str, source: str) -> Any:
        if isinstance(owner, _Results) and name in owner.names:
            return owner[owner.names.index(name)]
        if isinstance(owner, _Results) and not hasattr(tuple, name):
            hint = f"They have {', '.join(owner.names)}." if owner.names else "Take one, as by [0]."
            raise LabError(f"These results have no `{name}`.", hint=hint)
        if not isinstance(owner, Term):
            return self._known(_plain(lambda: getattr(owner, name), source), source)
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
            raise NoRule("arguments unpacked with *")
        args = [self._value(arg) for arg in node.args]
        kwargs = {str(k.arg): self._value(k.value) for k in node.keywords}
        name = ast.unparse(node.func).rpartition(".")[2]
        if isinstance(function, _Method):
            if not is_method(name):
                raise NoRule(f"`{name}`")
            if name == "where" and args:  # the method is called on the first branch
                args = [args[0], function.term, *args[1:]]
                return self._step(name, torch.where, args, kwargs, source)
            called = lambda t, *a, **k: getattr(t, name)(*a, **k)  # noqa: E731
            return self._step(name, called, [function.term, *args], kwargs, source)
        if name in CREATORS and function is getattr(torch, name):
            return self._step(name, function, args, kwargs, source, shown=False)
        if not is_function(function):
            raise NoRule(f"calling `{ast.unparse(node.func)}`")
        name = getattr(function, "__name__", name)
        return self._step(name, function, args, kwargs, source)

    def _operator(self, node: ast.UnaryOp | ast.BinOp | ast.Compare, source: str) -> Any:
        if isinstance(node, ast.UnaryOp):
            kind, values = node.op, [self._value(node.operand)]
        elif isinstance(node, ast.BinOp):
            kind, values = node.op, [self._value(node.left), self._value(node.right)]
        elif len(node.ops) == 1:
            kind, values = node.ops[0], [self._value(node.left), self._value(node.comparators[0])]
        else:
            raise NoRule("a chain of comparisons")
        if type(kind) not in OPERATORS:
            raise NoRule(f"`{source}`")
        name, run = OPERATORS[type(kind)]
        if not any(isinstance(value, Term) for value in values):
            return _plain(lambda: run(*values), source)
        return self._step(name, run, values, {}, source)

    # -- steps -----------------------------------------------------------------------------------

    def _step(
        self,
        name: str,
        run: Callable[..., Any],
        args: list[Any],
        kwargs: dict[str, Any],
        source: str,
        shown: bool = True,
    ) -> Any:
        """Predict one operation. Returns its result; raises _Stop when it is refused. An operation
        that is not shown makes a constant."""
        step = Step(source, name, run, self._runner, args, kwargs, terms_in([args, kwargs]))
        ran, tried = self._predictor.predict(step)
        self._writes |= _may_write(step) or bool(ran.written)
        if step.refusal is not None:
            if not shown:
                raise LabError(f"torch.{name} refuses: {step.refusal}", step.refusal.hint)
            self.steps.append(step)
            raise _Stop
        if step.outcome is None:
            if all(isinstance(value, _PLAIN) for value in ran.tensors):
                return ran.given
            raise NoRule(f"`{name}`, which does not give an ordinary tensor")
        if shown:
            self.steps.append(step)
        return self._result(step, ran.tensors[0] if ran.tensors else None, ran.operands, tried)

    def _result(
        self, step: Step, first: object, operands: tuple[torch.Tensor, ...], tried: bool
    ) -> Any:
        assert step.outcome is not None
        results, names = step.outcome.results, step.outcome.names
        readable = can_be_read(step)
        terms = _Results(
            Term(
                step.source
                if not step.outcome.many
                else f"{step.source}.{names[i]}"
                if names
                else f"{step.source}[{i}]",
                layout,
                self._runner,
                step=step,
                place=i if step.outcome.many else None,
                is_small=tried,
                is_readable=readable,
            )
            for i, layout in enumerate(results)
        )
        terms.names = names
        if step.outcome.kind == "in place":  # the operand has this layout from now on
            for term, operand in zip(step.operands, operands, strict=True):
                if operand is first:
                    term.layout = results[0]
        return terms if step.outcome.many else terms[0]


def _may_write(step: Step) -> bool:
    """Whether an operation may write, by its name. A refused operation shows no new version, and
    some operations write without one."""
    renamed = step.operation.endswith("_") and not step.operation.endswith("__")
    unversioned = step.operation in ("__setitem__", "batch_norm", "instance_norm")
    return renamed or unversioned or bool({"out", "inplace"} & {*step.kwargs})


def _plain(compute: Callable[[], Any], source: str) -> Any:
    try:
        return compute()
    except Exception as error:
        raise LabError(f"`{source}` cannot be read: {error}") from error
