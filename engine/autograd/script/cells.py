"""The console's cells in a script: which are needed, and how each is written, whole."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Sequence

from ...console.journal import Cell, Pass
from ...errors import LabError

_REACHES_ALL = frozenset(("exec", "eval", "globals", "locals", "vars", "gc", "setattr", "*"))
"""Names through which code reaches variables that it does not name; of `import *`, too."""
_STANDING = frozenset(("torch", "nn", "F", "np")).union(dir(builtins)) - _REACHES_ALL
"""Names that stand ready in the console and in any script: they tie no cells together."""
_CHANGES_TORCH = ("set_", "use_", "enable_", "disable_", "manual_seed", "seed", "backends")
"""How the attributes begin that change what later cells do."""
_SEEDS = {
    "torch.manual_seed": ("torch", "cuda"),
    "np.random.seed": ("numpy",),
    "numpy.random.seed": ("numpy",),
    "random.seed": ("random",),
}

STOPPED = KeyboardInterrupt.__name__

Entry = Cell | Pass


def needed(entries: Sequence[Entry], passes: Collection[Pass]) -> list[Entry]:
    """These passes, and the entries on which they may depend: those that have a variable in common
    with them or with each other, that draw random numbers, or that may change anything."""
    names = {entry: names_of(entry) for entry in entries}
    chosen = {e for e in entries if e in passes or _may_matter(e, names[e])}
    more = chosen
    while more:
        wanted = frozenset[str]().union(*(names[entry] for entry in chosen))
        more = {entry for entry in entries if entry not in chosen and names[entry] & wanted}
        chosen = chosen | more
    return [entry for entry in entries if entry in chosen]


def runs(cell: Cell) -> bool:
    """Whether any of a cell ran: its syntax is right."""
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
    """The names in code, without those that stand ready everywhere; none if it is no code."""
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
    return frozenset(found) - _STANDING


def draws(entry: Entry) -> frozenset[str]:
    """The generators of random numbers from which a pass draws, cells in its midst too; or a cell
    that does not seed them first."""
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
    """Whether an entry draws random numbers, or may change variables that it does not name, or
    modes of torch. A cell that was stopped cannot be repeated: what it drew is left out."""
    if isinstance(entry, Pass):
        return bool(draws(entry))
    if not names or names & _REACHES_ALL or (draws(entry) and entry.error != STOPPED):
        return True
    nodes = ast.walk(ast.parse(entry.source))
    attributes = (node.attr for node in nodes if isinstance(node, ast.Attribute))
    return any(name.startswith(_CHANGES_TORCH) for name in attributes)


def modules_of(cells: Sequence[Cell]) -> set[str]:
    """The modules that cells import, without what is inside them."""
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    found = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    found |= {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level}
    return {name.partition(".")[0] for name in found}


# -- as text ---------------------------------------------------------------------------------------


def future_imports(cells: Sequence[Cell]) -> list[str]:
    """The lines `from __future__ import ...` of all cells, which stand first in a script."""
    return sorted({ast.unparse(statement) for cell in cells for statement in _futures(cell)})


def written(cell: Cell) -> str:
    """A cell as its user typed it. A cell that an exception ended runs in `try`."""
    if cell.error:
        return executed(cell)
    above = {n for s in _futures(cell) for n in range(s.lineno, (s.end_lineno or 0) + 1)}
    lines = enumerate(cell.source.splitlines(), 1)
    return "\n".join(line for number, line in lines if number not in above).strip("\n")


def executed(cell: Cell, indent: str = "") -> str:
    """A cell as a text that is executed among the script's variables, wherever that stands. Raises
    LabError for a cell that was stopped."""
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
        f"{indent}    traceback.print_exc()"
    )


def _quoted(source: str) -> str:
    for quotes in ('"""', "'''"):
        if quotes not in source:
            return f"r{quotes}\n{source.strip(chr(10))}\n{quotes}"
    return repr(source)


def _futures(cell: Cell) -> list[ast.ImportFrom]:
    body = ast.parse(cell.source).body
    return [s for s in body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
