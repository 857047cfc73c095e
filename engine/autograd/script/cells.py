"""The console's cells in a script: which of them it needs, and the code of each."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterator, Sequence

from ...console.journal import Cell, Pass
from ...errors import LabError

_REACH_EVERYTHING = frozenset(("exec", "eval", "globals", "locals", "vars", "gc", "setattr", "*"))
"""Names through which code reaches variables that it does not name; `*` stands for `import *`."""
_PREDEFINED = frozenset(("torch", "nn", "F", "np")).union(dir(builtins)) - _REACH_EVERYTHING
"""Names that the console and every script define: they do not make one cell depend on another."""
_CHANGES_TORCH = ("set_", "use_", "enable_", "disable_", "manual_seed", "seed", "backends")
"""The first letters of attributes that change what later cells do."""
_SEEDS = {
    "torch.manual_seed": ("torch", "cuda"),
    "np.random.seed": ("numpy",),
    "numpy.random.seed": ("numpy",),
    "random.seed": ("random",),
}

STOPPED = KeyboardInterrupt.__name__

Entry = Cell | Pass
Own = Callable[[str], str]
"""The name in the script of one of its own imports or helpers: another if a cell binds it."""


def needed(entries: Sequence[Entry], passes: Collection[Pass]) -> list[Entry]:
    """The entries on which `passes` may depend, and the passes, in order. An entry is needed if it
    shares a variable with a needed entry, draws random numbers, or may change anything."""
    names = {entry: names_of(entry) for entry in entries}
    chosen = {e for e in entries if e in passes or _may_matter(e, names[e])}
    more = chosen
    while more:
        wanted = frozenset[str]().union(*(names[entry] for entry in chosen))
        more = {entry for entry in entries if entry not in chosen and names[entry] & wanted}
        chosen = chosen | more
    return [entry for entry in entries if entry in chosen]


def runs(cell: Cell) -> bool:
    """Whether the code of a cell ran at all: it did if its syntax is right."""
    try:
        compile(cell.source, cell.title, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def names_of(entry: Entry) -> frozenset[str]:
    """The variables of the console that a cell or a pass names."""
    if isinstance(entry, Cell):
        return names_in(entry.source)
    texts = [given.text for given in entry.roots.gradients]
    if entry.start.roots.expressions:  # else its leaves are the model's
        texts += [*entry.roots.expressions, *entry.inputs, *entry.leaves]
    return edited_names(entry).union(*map(names_in, texts))


def edited_names(p: Pass) -> frozenset[str]:
    """The variables that the edits of a pass use."""
    return frozenset(name for edit in p.edits for name in edit.names)


def names_in(code: str) -> frozenset[str]:
    """The names in `code` that not every script defines; none if it is not Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return frozenset()
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return frozenset(found) - _PREDEFINED


def rebind(cells: Sequence[Cell], name: str, imported: str) -> bool:
    """Whether a cell may bind `name` to something else than the import `imported` does."""
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    return any(name == bound for node in nodes for bound in _bound(node, imported))


def _bound(node: ast.AST, imported: str) -> Iterator[str | None]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler():
            yield node.name
        case ast.MatchAs() | ast.MatchStar():
            yield node.name
        case ast.MatchMapping(rest=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if f"{start}import {alias.name}" != imported or alias.asname:
                    yield alias.asname or alias.name.partition(".")[0]


def draws(entry: Entry) -> frozenset[str]:
    """The random number generators from which a pass draws (with the cells that ran during it), or
    from which a cell draws without seeding them first."""
    spans = [entry] if isinstance(entry, Cell) else [entry, *entry.cells]
    moved = {k for each in spans for k, v in each.after.items() if each.before.get(k) != v}
    return frozenset(moved.difference(_seeds(entry) if isinstance(entry, Cell) else ()))


def _seeds(cell: Cell) -> Iterator[str]:
    """The generators that a cell seeds before it does anything else."""
    for statement in ast.parse(cell.source).body:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
                continue
            case ast.Expr(ast.Constant()):
                continue
            case ast.Expr(ast.Call(function, [ast.Constant()], [])):
                if ast.unparse(function) not in _SEEDS:
                    return
                yield from _SEEDS[ast.unparse(function)]
            case _:
                return


def _may_matter(entry: Entry, names: frozenset[str]) -> bool:
    """Whether an entry draws random numbers, or may change modes of torch or variables that it does
    not name. What a stopped cell drew does not count: no script can repeat it."""
    if isinstance(entry, Pass):
        return bool(draws(entry))
    if not names or names & _REACH_EVERYTHING or (draws(entry) and entry.error != STOPPED):
        return True
    nodes = ast.walk(ast.parse(entry.source))
    attributes = (node.attr for node in nodes if isinstance(node, ast.Attribute))
    return any(name.startswith(_CHANGES_TORCH) for name in attributes)


def modules_of(cells: Sequence[Cell]) -> set[str]:
    """The top-level modules that cells import."""
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    found = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    found |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    return {name.partition(".")[0] for name in found}


# -- as text ---------------------------------------------------------------------------------------


def future_imports(cells: Sequence[Cell]) -> list[str]:
    """The lines `from __future__ import ...` of all cells, for the head of a script."""
    return sorted({ast.unparse(statement) for cell in cells for statement in _futures(cell)})


def cell_code(cell: Cell, own: Own) -> str:
    """The code of a cell as the user typed it; in `try` if an exception ended the cell."""
    if cell.error:
        return exec_call(cell, own)
    above = {n for s in _futures(cell) for n in range(s.lineno, (s.end_lineno or 0) + 1)}
    lines = enumerate(cell.source.splitlines(), 1)
    return "\n".join(line for number, line in lines if number not in above).strip("\n")


def exec_call(cell: Cell, own: Own, indent: str = "") -> str:
    """An `exec` of a cell's code with the script's global variables, for use inside of functions,
    too. Raises LabError for a cell that was stopped."""
    if cell.error == STOPPED:
        raise LabError(
            f"No script can repeat {cell.title}: it was stopped while it ran.",
            hint="Run in a new console what should be in the script.",
        )
    run = f"exec({_quoted(cell.source)}, globals())"
    if not cell.error:
        return f"{indent}{run}"
    return (
        f"{indent}try:\n{indent}    {run}\n"
        f"{indent}except (Exception, SystemExit):  # {cell.error}, as in the lab\n"
        f"{indent}    {own('traceback')}.print_exc()"
    )


def _quoted(source: str) -> str:
    for quotes in ('"""', "'''"):
        if quotes not in source:
            return f"r{quotes}\n{source.strip(chr(10))}\n{quotes}"
    return repr(source)


def _futures(cell: Cell) -> list[ast.ImportFrom]:
    body = ast.parse(cell.source).body
    return [s for s in body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
