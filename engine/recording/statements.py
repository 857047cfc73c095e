"""The statements of a source file: where each begins, and the names that stand in it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass

MAX_NAMES = 24
"""The most names of one line that are looked at."""

_BRANCHING = (
    ast.If, ast.While, ast.For, ast.AsyncFor, ast.Match, ast.match_case, ast.ExceptHandler,
)  # fmt: skip
_WITH = (ast.With, ast.AsyncWith)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Statement:
    """The names in the statement that begins on a line, such as `x` or `ctx.needs_input_grad`.

    Several statements with `;` count as one. `reads` are names that it looks up, `stores` names
    that it binds, `inner` names of its comprehensions and lambdas, which have a scope of their
    own. With `binds`, all of `stores` are bound once it has run without an error. `branches`: it
    decides which line is next. `returns`: it contains a `return`.
    """

    line: int
    reads: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    binds: bool = False
    branches: bool = False
    returns: bool = False


class Statements:
    """The statements of a file, by line. Where the file cannot be parsed, each line is a statement
    without names."""

    def __init__(self, file: str) -> None:
        self._first_lines: dict[int, int] = {}
        self._nodes: dict[int, list[ast.AST]] = {}
        self._made: dict[int, Statement] = {}
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):  # the file has changed since it was read
            return
        for node in ast.walk(tree):  # outer statements come before those inside them
            if isinstance(node, ast.match_case):
                first, last = node.pattern.lineno, node.pattern.end_lineno
            elif isinstance(node, ast.stmt | ast.ExceptHandler):
                first, last = node.lineno, node.end_lineno
            else:
                continue
            decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
            lines = range(min((first, *decorators)), (last or first) + 1)
            self._first_lines.update(dict.fromkeys(lines, first))
            self._nodes.setdefault(first, []).append(node)

    def first_line(self, line: int) -> int:
        """The line at which the innermost statement that contains `line` begins."""
        return self._first_lines.get(line, line)

    def at(self, line: int) -> Statement:
        """The statement that begins on this line."""
        if line not in self._made:
            self._made[line] = _statement(line, self._nodes.get(line, []))
        return self._made[line]


def _statement(line: int, nodes: list[ast.AST]) -> Statement:
    reads: dict[str, None] = {}
    stores: dict[str, None] = {}
    inner: dict[str, None] = {}
    for node in nodes:
        for part in _own_parts(node):
            for name, is_stored in _names(part, inner):
                (stores if is_stored else reads)[name] = None
        for name in _made_names(node):
            stores[name] = None
        if isinstance(node, ast.AugAssign) and (name := _dotted(node.target)):
            reads[name] = None
    return Statement(
        line,
        tuple(reads)[:MAX_NAMES],
        tuple(stores)[:MAX_NAMES],
        tuple(inner)[:MAX_NAMES],
        binds=bool(nodes) and not any(isinstance(node, (*_BRANCHING, *_WITH)) for node in nodes),
        branches=any(isinstance(node, _BRANCHING) for node in nodes),
        returns=any(isinstance(node, ast.Return) for node in nodes),
    )


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions that the statement itself runs, without its body and its annotations."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (*node.decorator_list, *node.args.defaults)
        yield from (each for each in node.args.kw_defaults if each is not None)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield from (node.target, node.value)
    elif isinstance(node, ast.match_case):
        yield from (each for each in (node.pattern, node.guard) if each is not None)
    else:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield child


def _names(part: ast.AST, inner: dict[str, None]) -> Iterator[tuple[str, bool]]:
    """The names in an expression, in the order in which they are written, and whether each is
    bound. Those of inner scopes go to `inner`."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _SCOPES):
            inner.update(dict.fromkeys(name for name, _ in _names_inside(node)))
            if not isinstance(node, ast.Lambda):
                waiting.append(node.generators[0].iter)  # runs in the scope outside
            continue
        if isinstance(node, ast.NamedExpr):  # it may not run at all, so its names count as read
            yield node.target.id, False
            waiting.append(node.value)
            continue
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, True
        if isinstance(node, ast.Name):
            yield node.id, isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Attribute) and (name := _dotted(node)):
            root, *attributes = name.split(".")
            for end in range(len(attributes)):
                yield ".".join((root, *attributes[:end])), False
            yield name, isinstance(node.ctx, ast.Store)
            continue
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _names_inside(scope: ast.AST) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(scope):
        yield from _names(child, {})


def _made_names(node: ast.AST) -> Iterator[str]:
    """The names that def, class, import, except and match bind."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name.partition(".")[0] for each in node.names)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _dotted(node: ast.AST) -> str:
    """The text of a chain of attributes, such as `self.mix.weight`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
