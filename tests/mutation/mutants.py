"""Small wrong edits of Python source, as a person slips: `<=` for `<`, a call left out, a keyword
forgotten. What no test is to hold is left as it is: docstrings, annotations, words, `assert`,
`__repr__`, and how long something is waited for."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

_SWAPS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn], ast.NotIn: [ast.In], ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt], ast.Add: [ast.Sub], ast.Sub: [ast.Add],
    ast.Mult: [ast.Div], ast.Div: [ast.Mult], ast.FloorDiv: [ast.Mult], ast.Mod: [ast.FloorDiv],
    ast.Pow: [ast.Mult],
    ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip
_NO_MATTER = {"encoding", "strict", "daemon", "stacklevel", "timeout", "exist_ok", "parents"}
"""Keywords whose loss changes what only another machine would show."""
_UNSEEN_DECORATORS = (
    "cache", "lru_cache", "cached_property", "abstractmethod", "overload", "override", "final",
)  # fmt: skip
_FIXED_ORDER = ("isinstance", "issubclass", "getattr", "setattr", "hasattr", "map", "filter", "zip")
"""Calls that fail at once with swapped arguments, or give the same."""
_UNTESTED_CALLS = ("log", "logger", "logging", "warnings")


@dataclass(frozen=True)
class Mutant:
    path: str
    """Of the file, from the root, with `/`."""
    line: int
    function: str
    """That it is in; empty for what runs when the module is imported."""
    kind: str
    start: int
    end: int
    """Where in the file's bytes, and what stands there instead:"""
    text: str

    def applied(self, source: bytes) -> bytes:
        """The file with it. All other lines keep their numbers."""
        text = self.text.encode()
        missing = b"\n" * source[self.start : self.end].count(b"\n")
        text = text[:-1] + missing + b")" if text.endswith(b")") else text + missing
        return source[: self.start] + text + source[self.end :]

    def difference(self, source: bytes) -> str:
        """The lines that differ, as a unified diff writes them."""
        old, new = (text.decode().splitlines() for text in (source, self.applied(source)))
        lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[3:]
        return "\n".join(lines)


def _blocks(
    node: ast.AST, scope: str = "", function: str = ""
) -> Iterator[tuple[str, list[ast.stmt]]]:
    """Every list of statements, with the function that it is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = f"{scope}.{node.name}".lstrip(".")
        function = "" if isinstance(node, ast.ClassDef) else scope
    for statements in _lists(node):
        yield function, statements
        for statement in statements:
            yield from _blocks(statement, scope, function)


def _lists(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], _HANDLERS):
            for each in value:
                yield from _lists(each)


_HANDLERS = (ast.ExceptHandler, ast.match_case)


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its lines as far as blocks allow."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for function, statements in _blocks(ast.parse(source)):
        if "__repr__" in function:
            continue
        for statement in statements:
            if _is_left_out(statement):
                continue
            edits = [*_of_statement(statement)]
            for node in _expressions(statement):
                edits += _of_expression(node)
            for kind, node, text in edits:
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                yield Mutant(path, node.lineno, function, kind, start, end, text)


def _is_left_out(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.ClassDef():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.endswith(("_S", "_MS")) or name.startswith("__")
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name.lstrip("_") in _UNTESTED_CALLS
    return False


def _expressions(statement: ast.AST) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements in it, of annotations, of
    decorators, and of f-strings, whose places Python 3.11 does not tell."""
    for field, value in ast.iter_fields(statement):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.stmt | ast.JoinedStr | ast.ExceptHandler | ast.match_case):
                continue
            if isinstance(node, ast.AST):
                yield node
                yield from _expressions(node)


def _of_statement(statement: ast.stmt) -> Iterator[tuple[str, ast.AST, str]]:
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await() | ast.YieldFrom() | ast.Yield()):
            yield "statement dropped", statement, "pass"
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement dropped", statement, "pass"
        case ast.Delete() | ast.Raise():
            yield "statement dropped", statement, "pass"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "None returned", statement, "return None"
        case ast.Break():
            yield "break", statement, "continue"
        case ast.Continue():
            yield "continue", statement, "break"
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.NamedExpr):
            yield "condition forced", test, "(False)"
            if isinstance(statement, ast.If):
                yield "condition forced", test, "(True)"
        case ast.FunctionDef(decorator_list=[decorator]):
            name = ast.unparse(decorator).split("(")[0].split(".")[-1]
            if name not in _UNSEEN_DECORATORS:
                yield "decorator dropped", decorator, "(lambda function: function)"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _of_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    match node:
        case ast.Compare(ops=ops):
            for index, operator in enumerate(ops):
                for swap in _SWAPS[type(operator)]:
                    changed = [*ops[:index], swap(), *ops[index + 1 :]]
                    yield "comparison", node, _said(node, ops=changed)
        case ast.BinOp(op=operator) if type(operator) in _SWAPS and not _is_text(node):
            for swap in _SWAPS[type(operator)]:
                yield "arithmetic", node, _said(node, op=swap())
        case ast.BoolOp(op=operator, values=values):
            yield "and, or", node, _said(node, op=_SWAPS[type(operator)][0]())
            for index in range(len(values)) if len(values) > 2 else (0, 1):
                rest = [*values[:index], *values[index + 1 :]]
                yield (
                    "operand dropped",
                    node,
                    _said(node, values=rest) if len(rest) > 1 else f"({ast.unparse(rest[0])})",
                )
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "not, minus", node, f"({ast.unparse(operand)})"
        case ast.IfExp(body=body, orelse=other):
            yield "condition forced", node, f"({ast.unparse(body)})"
            yield "condition forced", node, f"({ast.unparse(other)})"
        case ast.Constant(value=bool() as value):
            yield "constant", node, str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", node, str(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", node, repr(value * 2 or 1.0)
        case ast.comprehension():
            pass
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _without_filters(node)
        case ast.Call(args=args, keywords=keywords):
            plain = len(args) > 1 and not any(isinstance(a, ast.Starred) for a in args[:2])
            plain = plain and ast.unparse(node.func) not in _FIXED_ORDER
            if plain and ast.dump(args[0]) != ast.dump(args[1]):
                yield "arguments swapped", node, _said(node, args=[args[1], args[0], *args[2:]])
            for index, keyword in enumerate(keywords):
                if keyword.arg and keyword.arg not in _NO_MATTER:
                    rest = [*keywords[:index], *keywords[index + 1 :]]
                    yield "keyword dropped", node, _said(node, keywords=rest)


def _without_filters(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    for index, each in enumerate(node.generators):
        if each.ifs:
            open_ = ast.comprehension(each.target, each.iter, [], each.is_async)
            changed = [*node.generators[:index], open_, *node.generators[index + 1 :]]
            yield "filter dropped", node, _said(node, generators=changed)


def _is_text(node: ast.BinOp) -> bool:
    """Whether it joins or formats words."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _said(node: ast.AST, **changed: object) -> str:
    """Source of the node with other fields, in brackets, so that it fits anywhere."""
    fields = dict(ast.iter_fields(node)) | changed
    return f"({ast.unparse(type(node)(**fields))})"
