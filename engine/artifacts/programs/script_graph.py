"""The graph of a TorchScript program: its forward is followed through the text, module by module.

Of an `if` whose test is known (`self.training`) one side is followed, else both; a loop is followed
once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from ...protocol import ProgramGraph, ProgramModule, ProgramNode, ProgramValue
from ..contents.artifact import plain
from ..contents.pickles import Made
from .script_code import ScriptCode

MAX_NODES = 20_000
MAX_CALLS = 80
MAX_EXPRESSIONS = 500_000
MAX_ITEMS = 10_000
_NOTE = "What a loop repeats is shown once; of a branch that the data decide, both sides are shown."


@dataclass(frozen=True)
class _Module:
    path: str


@dataclass(frozen=True)
class _Value:
    name: str


@dataclass(frozen=True)
class _Known:
    """A constant of the code or of a module."""

    value: Any


@dataclass(frozen=True)
class _Named:
    """A dotted name: a function of torch or of the code."""

    name: str


@dataclass(frozen=True)
class _Several:
    items: tuple[Any, ...]
    size: int

    @staticmethod
    def of(items: list[Any]) -> _Several:
        """Lists may hold each other: their items are counted as often as they are named."""
        size = 1 + sum(each.size if isinstance(each, _Several) else 1 for each in items)
        if size > MAX_ITEMS:
            raise _TooLarge
        return _Several(tuple(items), size)


_NOTHING = _Known(None)


class _TooLarge(Exception):
    pass


@dataclass
class _Walk:
    modules: dict[str, Made]
    code: ScriptCode
    tensors: set[str]
    nodes: list[ProgramNode] = field(default_factory=list)
    has_loop: bool = False
    depth: int = 0
    left: int = MAX_EXPRESSIONS
    used: dict[str, int] = field(default_factory=dict)

    # -- calls -------------------------------------------------------------------------------------

    def call(self, function: ast.FunctionDef, args: list[Any], module: str) -> Any:
        """What a function of the code returns for these arguments."""
        if self.depth >= MAX_CALLS:
            raise _TooLarge
        names = [each.arg for each in function.args.args]
        defaults = function.args.defaults
        scope: dict[str, Any] = {}
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            scope[name] = self.value(default, {}, module)
        scope |= dict(zip(names, args, strict=False))
        self.depth += 1
        try:
            returned = self.body(function.body, scope, module)
        finally:
            self.depth -= 1
        return _NOTHING if returned is None else returned

    def body(self, statements: list[ast.stmt], scope: dict[str, Any], module: str) -> Any:
        """Follow the statements; what is returned, None without a return."""
        for statement in statements:
            match statement:
                case ast.Return(value=value):
                    return _NOTHING if value is None else self.value(value, scope, module)
                case ast.Assign(targets=[target], value=value):
                    self.bind(target, self.value(value, scope, module), scope)
                case ast.AnnAssign(target=target, value=value) if value is not None:
                    self.bind(target, self.value(value, scope, module), scope)
                case ast.Expr(value=value):
                    self.value(value, scope, module)
                case ast.If(test=test, body=body, orelse=orelse):
                    returned = self.branch(test, body, orelse, scope, module)
                    if returned is not None:
                        return returned
                case ast.For(target=target, iter=iterated, body=body):
                    self.has_loop = True
                    self.bind(target, self.value(iterated, scope, module), scope)
                    self.body(body, scope, module)
                case ast.While(test=test, body=body):
                    self.has_loop = True
                    self.value(test, scope, module)
                    self.body(body, scope, module)
                case ast.With(body=body):
                    returned = self.body(body, scope, module)
                    if returned is not None:
                        return returned
        return None

    def branch(
        self,
        test: ast.expr,
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        scope: dict[str, Any],
        module: str,
    ) -> Any:
        decided = self.value(test, scope, module)
        if isinstance(decided, _Known):
            return self.body(body if decided.value else orelse, scope, module)
        sides = [dict(scope), dict(scope)]
        returned = [
            self.body(part, side, module) for part, side in zip((body, orelse), sides, strict=True)
        ]
        for name in sides[0].keys() & sides[1].keys():
            one, two = sides[0][name], sides[1][name]
            scope[name] = one if one == two else self.either(decided, one, two, module)
        for side in sides:
            for name, value in side.items():
                scope.setdefault(name, value)
        if all(each is not None for each in returned):
            return self.either(decided, returned[0], returned[1], module)
        return next((each for each in returned if each is not None), None)

    def either(self, test: Any, one: Any, two: Any, module: str) -> Any:
        """The result of one of two sides."""
        values = [name for each in (test, one, two) for name in _names(each)]
        if not values:
            return one
        return self.node("if", values, (), module)

    def bind(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items = value.items if isinstance(value, _Several) else [value] * len(target.elts)
            for each, item in zip(target.elts, items, strict=False):
                self.bind(each, item, scope)

    # -- expressions -------------------------------------------------------------------------------

    def value(self, expression: ast.expr, scope: dict[str, Any], module: str) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _TooLarge
        match expression:
            case ast.Constant(value=value):
                return _Known(value)
            case ast.Name(id=name):
                return scope.get(name, _Named(name))
            case ast.Attribute(value=base, attr=name):
                return self.attribute(self.value(base, scope, module), name)
            case ast.Call():
                return self.called(expression, scope, module)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return _Several.of([self.value(each, scope, module) for each in items])
            case ast.Dict(values=items):
                return _Several.of([self.value(each, scope, module) for each in items])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.value(operand, scope, module)
                known = isinstance(inner, _Known)
                return _Known(not inner.value) if known else inner
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand, scope, module)
                is_number = isinstance(inner, _Known) and isinstance(inner.value, int | float)
                return _Known(-inner.value) if is_number else inner
            case ast.Subscript(value=base, slice=index):
                return self.item(
                    self.value(base, scope, module), self.value(index, scope, module), module
                )
        inner = [
            self.value(each, scope, module)
            for each in ast.iter_child_nodes(expression)
            if isinstance(each, ast.expr)
        ]
        values = [name for each in inner for name in _names(each)]
        kind = type(expression).__name__.lower()
        return self.node(kind, values, (), module) if values else _Named(kind)

    def attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, _Module):
            path = f"{base.path}.{name}" if base.path else name
            if path in self.modules:
                return _Module(path)
            if path in self.tensors:
                return _Value(path)
            module = self.modules[base.path]
            state = module.state if isinstance(module.state, dict) else {}
            finals = self.code.finals(module.name)
            found = state.get(name, finals.get(name))
            is_plain = isinstance(found, bool | int | float | str) or found is None
            return _Known(found) if is_plain else _Named(path)
        if isinstance(base, _Named):
            path = f"{base.name}.{name}"
            return _Value(path) if path in self.tensors else _Named(path)
        return base

    def called(self, expression: ast.Call, scope: dict[str, Any], module: str) -> Any:
        function = expression.func
        args = [self.value(each, scope, module) for each in expression.args]
        named = [
            (each.arg or "", self.value(each.value, scope, module)) for each in expression.keywords
        ]
        if isinstance(function, ast.Attribute):
            base = self.value(function.value, scope, module)
            if isinstance(base, _Module):
                made = self.modules[base.path]
                method = self.code.method(made.name, function.attr)
                if method is not None:
                    return self.call(method, [base, *args], base.path)
            elif isinstance(base, _Value):
                return self.operation(function.attr, [base, *args], named, module)
        name = self.value(function, scope, module)
        name = name.name if isinstance(name, _Named) else ast.unparse(function)[:100]
        if name == "getattr" and len(args) == 2 and isinstance(args[1], _Known):
            return self.attribute(args[0], str(args[1].value))
        if name in ("annotate", "unchecked_cast", "uninitialized") and args:
            return args[-1]
        own = self.code.function(name)
        if own is not None:
            return self.call(own, args, module)
        return self.operation(name, args, named, module)

    def operation(self, name: str, args: list[Any], named: list[tuple[str, Any]], module: str):
        op = name.removeprefix("ops.").removeprefix("torch.").removeprefix("aten.")
        if op in ("__is__", "__isnot__") and all(isinstance(each, _Known) for each in args):
            return _Known((args[0].value is args[1].value) == (op == "__is__"))
        if op == "__isnot__" and args[1:] == [_NOTHING]:
            return _Known(True)
        if op == "__is__" and args[1:] == [_NOTHING]:
            return _Known(False)
        every = [*args, *(value for _, value in named)]
        values = [value for each in every for value in _names(each)]
        told = [("", each) for each in args] + named
        attributes = tuple(
            (name or str(place), text)
            for place, (name, each) in enumerate(told)
            if (text := _text(each))
        )
        return self.node(op, values, attributes, module)

    def item(self, base: Any, index: Any, module: str) -> Any:
        if isinstance(base, _Several) and isinstance(index, _Known):
            place = index.value
            if isinstance(place, int) and -len(base.items) <= place < len(base.items):
                return base.items[place]
        values = [*_names(base), *_names(index)]
        return self.node("getitem", values, (), module) if values else _Named("getitem")

    def node(
        self, op: str, inputs: list[str], attributes: tuple[tuple[str, str], ...], module: str
    ) -> _Value:
        if len(self.nodes) >= MAX_NODES:
            raise _TooLarge
        op = plain(op, 200)
        stem = op.rpartition(".")[2] or "value"
        number = self.used[stem] = self.used.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}_{number - 1}"
        inputs = list(dict.fromkeys(inputs))
        self.nodes.append(
            ProgramNode(name, op, module, tuple(inputs), (ProgramValue(name),), attributes)
        )
        return _Value(name)


def graph_of(modules: dict[str, Made], code: ScriptCode, tensors: set[str]) -> ProgramGraph:
    """The graph of the whole program's forward, without what its result does not need."""
    whole = modules[""]
    forward = code.method(whole.name, "forward")
    if forward is None:
        return ProgramGraph(note="Its code has no forward: no graph is shown.")
    names = [plain(each.arg, 200) for each in forward.args.args[1:]]
    walk = _Walk(modules, code, tensors, used={name: 1 for name in names})
    try:
        result = walk.call(forward, [_Module(""), *map(_Value, names)], "")
    except (_TooLarge, RecursionError):
        return ProgramGraph(note="Its code is too large, or calls itself: no graph is shown.")
    ends = tuple(dict.fromkeys(_names(result)))
    nodes = _needed(walk.nodes, set(ends))
    paths = {node.module for node in nodes}
    paths |= {path[:at] for path in paths for at in range(len(path)) if path[at] == "."}
    return ProgramGraph(
        inputs=tuple(
            ProgramValue(name, None, _type(each.annotation))
            for name, each in zip(names, forward.args.args[1:], strict=True)
        ),
        outputs=tuple(ProgramValue(name) for name in ends),
        modules=tuple(
            ProgramModule(path, code.class_name(modules[path].name))
            for path in sorted({"", *paths})
            if path in modules
        ),
        nodes=tuple(nodes),
        note=_NOTE if walk.has_loop or any(node.op == "if" for node in nodes) else "",
    )


def _needed(nodes: list[ProgramNode], wanted: set[str]) -> list[ProgramNode]:
    """The nodes that lead to these values, and those that write in place."""
    found = []
    for node in reversed(nodes):
        in_place = node.op.endswith("_") and not node.op.endswith("__")
        if in_place or any(value.name in wanted for value in node.outputs):
            wanted |= set(node.inputs)
            found.append(node)
    return found[::-1]


def _names(value: Any) -> list[str]:
    """The values in what an expression gives."""
    if isinstance(value, _Value):
        return [value.name]
    if isinstance(value, _Several):
        return [name for each in value.items for name in _names(each)]
    return []


def _text(value: Any) -> str:
    """A constant argument in words; "" for a value."""
    if isinstance(value, _Known):
        return plain(repr(value.value), 200)
    if isinstance(value, _Several) and not _names(value):
        return f"[{', '.join(_text(each) for each in value.items[:20])}]"
    return ""


def _type(annotation: ast.expr | None) -> str:
    return "" if annotation is None else plain(ast.unparse(annotation), 200)
