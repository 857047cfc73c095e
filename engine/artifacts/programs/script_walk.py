"""A walk through the text of a TorchScript program: its forward is followed, module by module.

Of an `if` whose test is known (`self.training`) one side is followed, else both; a loop is followed
once. Shapes are not worked out.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...protocol import ProgramNode, ProgramValue
from ..contents.artifact import plain
from ..contents.descriptions import OtherObject, TensorOf
from .script_code import ScriptCode
from .script_values import (
    NOTHING,
    Known,
    ModuleAt,
    Named,
    Several,
    TooLargeError,
    Value,
    constant_text,
    names_in,
)

MAX_NODES = 20_000
MAX_CALLS = 80
MAX_EXPRESSIONS = 500_000


@dataclass
class Walk:
    modules: dict[str, OtherObject]
    code: ScriptCode
    tensors: Collection[str]
    nodes: list[ProgramNode] = field(default_factory=list)
    has_loop: bool = False
    unsure: int = 0  # how many loops and undecided branches surround what is followed
    depth: int = 0
    left: int = MAX_EXPRESSIONS
    used: dict[str, int] = field(default_factory=dict)

    # -- calls -------------------------------------------------------------------------------------

    def call(self, function: ast.FunctionDef, args: list[Any], module: str) -> Any:
        """The result of a function of the code for these arguments."""
        if self.depth >= MAX_CALLS:
            raise TooLargeError
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
        return NOTHING if returned is None else returned

    def body(self, statements: list[ast.stmt], scope: dict[str, Any], module: str) -> Any:
        """Follow the statements; what is returned, None without a return."""
        for statement in statements:
            match statement:
                case ast.Return(value=value):
                    return NOTHING if value is None else self.value(value, scope, module)
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
                    self.bind(target, self.value(iterated, scope, module), scope)
                    self.loop(body, scope, module)
                case ast.While(test=test, body=body):
                    self.value(test, scope, module)
                    self.loop(body, scope, module)
                case ast.With(body=body):
                    returned = self.body(body, scope, module)
                    if returned is not None:
                        return returned
        return None

    def loop(self, body: list[ast.stmt], scope: dict[str, Any], module: str) -> None:
        self.has_loop = True
        self.unsure += 1
        self.body(body, scope, module)
        self.unsure -= 1

    def branch(
        self,
        test: ast.expr,
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        scope: dict[str, Any],
        module: str,
    ) -> Any:
        decided = self.value(test, scope, module)
        if isinstance(decided, Known):
            return self.body(body if decided.value else orelse, scope, module)
        sides = [dict(scope), dict(scope)]
        self.unsure += 1
        returned = [
            self.body(part, side, module) for part, side in zip((body, orelse), sides, strict=True)
        ]
        self.unsure -= 1
        for name in [name for name in sides[0] if name in sides[1]]:
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
        values = [name for each in (test, one, two) for name in names_in(each)]
        return self.node("if", values, (), module) if values else one

    def bind(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items: Sequence[Any] = [value] * len(target.elts)
            if isinstance(value, Several):
                items = value.items
            for each, item in zip(target.elts, items, strict=False):
                self.bind(each, item, scope)

    # -- expressions -------------------------------------------------------------------------------

    def value(self, expression: ast.expr, scope: dict[str, Any], module: str) -> Any:
        self.left -= 1
        if self.left < 0:
            raise TooLargeError
        match expression:
            case ast.Constant(value=value):
                return Known(value)
            case ast.Name(id="inf" | "nan" as name):
                return Known(float(name))
            case ast.Name(id=name):
                return scope.get(name, Named(name))
            case ast.Attribute(value=base, attr=name):
                return self.attribute(self.value(base, scope, module), name)
            case ast.Call():
                return self.called(expression, scope, module)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return Several.of([self.value(each, scope, module) for each in items])
            case ast.Dict(values=items):
                return Several.of([self.value(each, scope, module) for each in items])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.value(operand, scope, module)
                known = isinstance(inner, Known)
                return Known(not inner.value) if known else inner
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.value(operand, scope, module)
                is_number = isinstance(inner, Known) and isinstance(inner.value, int | float)
                return Known(-inner.value) if is_number else inner
            case ast.Subscript(value=base, slice=index):
                return self.item(
                    self.value(base, scope, module), self.value(index, scope, module), module
                )
        inner = [
            self.value(each, scope, module)
            for each in ast.iter_child_nodes(expression)
            if isinstance(each, ast.expr)
        ]
        values = [name for each in inner for name in names_in(each)]
        kind = type(expression).__name__.lower()
        return self.node(kind, values, (), module) if values else Named(kind)

    def attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, ModuleAt):
            path = f"{base.path}.{name}" if base.path else name
            if path in self.modules:
                return ModuleAt(path)
            if path in self.tensors:
                return Value(path)
            module = self.modules[base.path]
            state = module.state if isinstance(module.state, dict) else {}
            finals = self.code.finals(module.name)
            found = state.get(name, finals.get(name))
            if tensors := _tensors_of(found):
                return Several.of([self.same_tensor(state, each, base.path) for each in tensors])
            is_plain = isinstance(found, bool | int | float | str) or found is None
            return Known(found) if is_plain else Named(path)
        if isinstance(base, Named):
            path = f"{base.name}.{name}"
            return Value(path) if path in self.tensors else Named(path)
        return base

    def same_tensor(self, state: dict[Any, Any], tensor: TensorOf, path: str) -> Any:
        """The parameter of a module that an item of a list of it is."""
        names = [
            f"{path}.{name}" if path else str(name)
            for name, each in state.items()
            if each == tensor
        ]
        return next((Value(name) for name in names if name in self.tensors), Named("tensor"))

    def called(self, expression: ast.Call, scope: dict[str, Any], module: str) -> Any:
        function = expression.func
        args = [self.value(each, scope, module) for each in expression.args]
        named = [
            (each.arg or "", self.value(each.value, scope, module)) for each in expression.keywords
        ]
        if isinstance(function, ast.Attribute):
            base = self.value(function.value, scope, module)
            if isinstance(base, ModuleAt):
                made = self.modules[base.path]
                method = self.code.method(made.name, function.attr)
                if method is not None:
                    return self.call(method, [base, *args], base.path)
            elif isinstance(base, Value):
                return self.operation(function.attr, [base, *args], named, module)
        name = self.value(function, scope, module)
        name = name.name if isinstance(name, Named) else ast.unparse(function)[:100]
        if name == "getattr" and len(args) == 2 and isinstance(args[1], Known):
            return self.attribute(args[0], str(args[1].value))
        if name in ("annotate", "unchecked_cast", "uninitialized") and args:
            return args[-1]
        own = self.code.function(name)
        if own is not None:
            return self.call(own, args, module)
        if name.rpartition(".")[2] in _CHANGES_LIST and args and isinstance(args[0], Several):
            return self.changed_list(name, expression.args[0], args, scope, module)
        return self.operation(name, args, named, module)

    def changed_list(
        self, name: str, target: ast.expr, args: list[Any], scope: dict[str, Any], module: str
    ) -> Any:
        """The result of a method that changes a list; the changed list has the name of the old."""
        items = list(args[0].items)
        if self.unsure or not isinstance(target, ast.Name):
            returned = changed = self.operation(name, args, [], module)
        elif name.endswith("append") and len(args) == 2:
            returned = changed = Several.of([*items, args[1]])
        elif name.endswith("pop") and items and len(args) == 1:
            returned, changed = items[-1], Several.of(items[:-1])
        else:
            returned = changed = self.operation(name, args, [], module)
        if isinstance(target, ast.Name):
            scope[target.id] = changed
        return returned

    def operation(self, name: str, args: list[Any], named: list[tuple[str, Any]], module: str):
        op = name.removeprefix("ops.").removeprefix("torch.").removeprefix("aten.")
        if op in ("__is__", "__isnot__") and all(isinstance(each, Known) for each in args):
            return Known((args[0].value is args[1].value) == (op == "__is__"))
        if op == "__isnot__" and args[1:] == [NOTHING]:
            return Known(True)
        if op == "__is__" and args[1:] == [NOTHING]:
            return Known(False)
        every = [*args, *(value for _, value in named)]
        values = [value for each in every for value in names_in(each)]
        told = [("", each) for each in args] + named
        attributes = tuple(
            (name or str(place), text)
            for place, (name, each) in enumerate(told)
            if (text := constant_text(each))
        )
        return self.node(op, values, attributes, module)

    def item(self, base: Any, index: Any, module: str) -> Any:
        if isinstance(base, Several) and isinstance(index, Known):
            place = index.value
            if isinstance(place, int) and -len(base.items) <= place < len(base.items):
                return base.items[place]
        values = [*names_in(base), *names_in(index)]
        return self.node("getitem", values, (), module) if values else Named("getitem")

    def node(
        self,
        op: str,
        inputs: list[str],
        attributes: tuple[tuple[str, str], ...],
        module: str,
    ) -> Value:
        """The result of a new node."""
        if len(self.nodes) >= MAX_NODES:
            raise TooLargeError
        op = plain(op, 200)
        stem = op.rpartition(".")[2] or "value"
        number = self.used[stem] = self.used.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}_{number - 1}"
        inputs = list(dict.fromkeys(inputs))
        outputs = (ProgramValue(name),)
        self.nodes.append(ProgramNode(name, op, module, tuple(inputs), outputs, attributes))
        return Value(name)


_CHANGES_LIST = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "reverse",
        "sort",
        "_set_item",
        "Delete",
    ]
)


def _tensors_of(value: Any) -> list[TensorOf]:
    """The tensors of a typed list of tensors, as `_flat_weights` of a recurrent module is one."""
    is_list = (
        isinstance(value, OtherObject) and isinstance(value.state, tuple) and bool(value.state)
    )
    items = value.state[0] if is_list else None
    are = isinstance(items, list) and all(isinstance(each, TensorOf) for each in items)
    return list(items) if items and are else []
