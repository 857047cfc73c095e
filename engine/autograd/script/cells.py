"""The console's cells in a script: which are needed, and how each is written."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import textwrap
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from ...console.journal import Cell

STANDING = frozenset(("torch", "nn", "F", "np")) | frozenset(dir(builtins))
"""Names that stand ready in the console and in any script."""

_REACHES_ALL = frozenset(("exec", "eval", "globals", "locals", "vars", "gc", "setattr"))
_CHANGES_TORCH = re.compile(
    r"\b(set_\w+|manual_seed\w*|seed|use_\w+|enable_\w+|disable_\w+|backends|import \*)"
)
_READERS = frozenset((
    "print", "len", "type", "repr", "str", "float", "int", "bool",
    "abs", "round", "sum", "min", "max", "list", "tuple", "dict",
    "sorted", "id", "item", "tolist", "norm", "mean", "std", "var",
    "shape", "size", "numel", "any", "all", "isnan", "isfinite", "argmax",
    "argmin", "detach", "clone", "equal", "allclose", "named_parameters", "parameters", "items",
    "keys", "values", "dim", "stride", "next_functions", "name", "is_contiguous", "storage_offset",
    "data_ptr",
))  # fmt: skip
"""Functions and methods that change nothing."""


class Part(Protocol):
    """What a script may consist of: `own` names tie it to others, `imported` are names that it
    imports, `names` all that it uses. It has drawn random numbers from the generators `draws`, and
    begins by seeding `seeds`. Parts that are `always` there need no tie."""

    @property
    def own(self) -> frozenset[str]: ...
    @property
    def imported(self) -> frozenset[str]: ...
    @property
    def names(self) -> frozenset[str]: ...
    @property
    def draws(self) -> frozenset[str]: ...
    @property
    def seeds(self) -> frozenset[str]: ...
    @property
    def always(self) -> bool: ...


class CellText:
    """A cell of the journal as a Part. `is_empty`: it did nothing that a script must do."""

    def __init__(self, cell: Cell) -> None:
        self.done = self.cell = cell
        try:
            self.tree = ast.parse(cell.source)
        except (SyntaxError, ValueError):
            self.tree = ast.Module([], [])

    @cached_property
    def is_empty(self) -> bool:
        never_ran = bool(self.cell.error) and not self.cell.line
        return never_ran or all(map(_only_looks, self.tree.body))

    @cached_property
    def imported(self) -> frozenset[str]:
        """Names that it binds by imports."""
        return frozenset(
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        )

    @cached_property
    def modules(self) -> frozenset[str]:
        """The modules that it imports, without what is inside them."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
        return frozenset(found)

    @cached_property
    def _symbols(self) -> symtable.SymbolTable | None:
        try:
            return symtable.symtable(self.cell.source, "<cell>", "exec")
        except (SyntaxError, ValueError):
            return None

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Names of the console that it binds, or declares global in its functions."""
        symbols = self._symbols.get_symbols() if self._symbols else ()
        bound = (s.get_name() for s in symbols if s.is_assigned() or s.is_imported())
        return self.assigned_inside.union(bound)

    @cached_property
    def assigned_inside(self) -> frozenset[str]:
        """Names that its functions bind in the console when they are called."""
        return _globals_inside(self._symbols) if self._symbols else frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in it."""
        found = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        return self.assigned | found

    @cached_property
    def own(self) -> frozenset[str]:
        """The names that tie it to other cells: neither torch's nor Python's."""
        return self.names - STANDING - self.imported

    @cached_property
    def always(self) -> bool:
        """Whether it may change anything: modes of torch, or variables that it does not name."""
        if _REACHES_ALL & self.names or _CHANGES_TORCH.search(self.cell.source):
            return True
        imports = (ast.Import, ast.ImportFrom)
        return not self.own and not all(isinstance(s, imports) for s in self.tree.body)

    @cached_property
    def draws(self) -> frozenset[str]:
        """The generators that it has drawn from, those that it seeds first left out."""
        drawn = {k for k, v in self.cell.after.items() if self.cell.before.get(k) != v}
        return frozenset(drawn - self.seeds)

    @cached_property
    def seeds(self) -> frozenset[str]:
        """The generators that it seeds before it does anything else."""
        known = {
            "torch.manual_seed": {"torch", "cuda"},
            "np.random.seed": {"numpy"},
            "numpy.random.seed": {"numpy"},
            "random.seed": {"random"},
        }
        found: set[str] = set()
        for statement in self.tree.body:
            if isinstance(
                statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
            ) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                continue
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or ast.unparse(call.func) not in known:
                break
            if not all(isinstance(a, ast.Constant) for a in call.args):
                break
            found |= known[ast.unparse(call.func)]
        return frozenset(found)

    # -- as text

    def lines(self) -> str:
        """Its code, without what only looks at its end; the statement that failed is tried."""
        statements = list(self.tree.body)
        if self.cell.error:
            return self._until_the_error(statements)
        while statements and _only_looks(statements[-1]):
            statements.pop()
        if not statements:
            return ""
        end = statements[-1].end_lineno
        return self._without_future_imports("\n".join(self._source[:end]))

    @property
    def starts_with_definition(self) -> bool:
        return bool(self.tree.body) and isinstance(self.tree.body[0], _DEFINITIONS)

    def _until_the_error(self, statements: list[ast.stmt]) -> str:
        failed = next(s for s in statements if _first(s) <= self.cell.line <= (s.end_lineno or 0))
        before = "\n".join(self._source[: _first(failed) - 1])
        text = "\n".join(self._source[_first(failed) - 1 : failed.end_lineno])
        holds_text = any(
            isinstance(n, ast.Constant | ast.JoinedStr) and n.lineno != n.end_lineno
            for n in ast.walk(failed)
            if isinstance(n, ast.expr)
        )
        one_line = [s for s in statements if s is not failed and _shares_line(s, failed)]
        if holds_text or one_line:
            text = ast.unparse(failed)
            before = "\n".join(
                [before, *(ast.unparse(s) for s in one_line if s.lineno < failed.lineno
                           or s.col_offset < failed.col_offset)]
            )  # fmt: skip
        kind = "SystemExit" if self.cell.error == "SystemExit" else "Exception"
        tried = (
            f"try:\n{textwrap.indent(text, '    ')}\n"
            f"except {kind} as error:  # as in the lab: {self.cell.error}\n"
            '    print(f"{type(error).__name__}: {error}")'
        )
        return self._without_future_imports(f"{before}\n{tried}".strip("\n"))

    @cached_property
    def _source(self) -> list[str]:
        return self.cell.source.splitlines()

    def _without_future_imports(self, text: str) -> str:
        kept = (line for line in text.splitlines() if not _is_future(line))
        return "\n".join(kept).strip("\n")

    @property
    def future_imports(self) -> list[str]:
        return [line.strip() for line in self._source if _is_future(line)]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def needed(parts: Sequence[Part]) -> list[Part]:
    """The parts that are always there, and those on which they may depend: that have a name in
    common with them, or with each other; who imports what these use; and who has drawn random
    numbers before they draw."""
    wanted, chosen = set[str](), set[Part]()
    count = -1
    while len(chosen) > count:
        count = len(chosen)
        for part in parts:
            if part.always or part.own & wanted or part.imported & wanted:
                chosen.add(part)
                wanted |= part.names - STANDING
        drawn_later: frozenset[str] = frozenset()
        for part in reversed(parts):
            if drawn_later & part.draws:
                chosen.add(part)
                wanted |= part.names - STANDING
            if part in chosen:
                drawn_later = (drawn_later | part.draws) - part.seeds
    return [part for part in parts if part in chosen]


def names_in(expression: str) -> frozenset[str]:
    """The names in an expression; none if it is not one."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _only_looks(statement: ast.stmt) -> bool:
    """Whether a statement only shows what is there."""
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Expr):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name not in _READERS:
                return False
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
    return True


def _globals_inside(table: symtable.SymbolTable) -> frozenset[str]:
    """Names that functions declare global."""
    found: set[str] = set()
    for child in table.get_children():
        found.update(
            s.get_name() for s in child.get_symbols() if s.is_declared_global() and s.is_assigned()
        )
        found |= _globals_inside(child)
    return frozenset(found)


def _first(statement: ast.stmt) -> int:
    """Its first line, decorators included."""
    lines = [d.lineno for d in getattr(statement, "decorator_list", ())]
    return min([statement.lineno, *lines])


def _shares_line(one: ast.stmt, other: ast.stmt) -> bool:
    return _first(one) <= (other.end_lineno or 0) and _first(other) <= (one.end_lineno or 0)


def _is_future(line: str) -> bool:
    return line.strip().startswith("from __future__ import")
