"""All that was done in backward passes as a Python script, which leaves the same bits in `.grad`.

The script is plain PyTorch: the cells that made the roots, or the model and its batch; backward for
each pass, with pre-hooks in place of edits; and what was done between them.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from ...console.journal import Cell, Journal
from ...errors import LabError
from ...models.forward import ForwardPass
from ...random_states import States, restoring_line
from ..backward.pass_record import Pass
from .cells import STANDING, CellText, names_in, needed
from .hooks import FIND_NODE, STOP
from .model_script import ModelScript, packed
from .pass_lines import PassWriter
from .text import joined

MAX_PRINTED = 6
"""Tensors whose `.grad` the script prints."""

_IMPORTS = {
    "random": "import random",
    "suppress": "from contextlib import suppress",
    "Path": "from pathlib import Path",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "get_gradient_edge": "from torch.autograd.graph import get_gradient_edge",
}
_HELPERS = {"find_node": FIND_NODE, "Stop": STOP}


def write_script(journal: Journal, current: Pass, world: object) -> tuple[str, bytes]:
    """What was done in `world` (a forward pass, or the console's namespace) up to the pass
    `current`, and that to its end; and the file that the script loads, empty for none. Raises
    LabError, naming the cause, for what no script can do."""
    return _Script(journal, current, world).written()


def code_behind(journal: Journal, current: Pass, world: object) -> str:
    """The cells on which the graph of a pass may depend, in order; empty for a model's."""
    cells = [CellText(e) for e in journal.entries if isinstance(e, Cell) and e.world() is world]
    ran = [cell for cell in cells if not cell.is_empty and not cell.cell.error]
    parts: list[Any] = [*ran, _PassPart(current, always=True, in_console=True)]
    found = (part for part in needed(parts) if isinstance(part, CellText))
    return "\n\n".join(part.cell.source.strip("\n") for part in found)


class _PassPart:
    """A pass as a part of a script: see script_cells.Part."""

    imported = seeds = frozenset[str]()

    def __init__(self, p: Pass, always: bool, in_console: bool) -> None:
        self.done, self.always, self.draws = p, always, p.draws
        texts = [g.text for g in p.roots.gradients]
        if in_console:
            texts += [*p.roots.expressions, *p.inputs, *p.leaves]
        self.edited = {n for e in p.edits for edit in e.edits for n in edit.names}
        names = self.edited.union(*map(names_in, texts))
        self.names = self.own = frozenset(names) - STANDING


class _Script:
    def __init__(self, journal: Journal, current: Pass, world: Any) -> None:
        self._journal, self._current = journal, current
        self._is_model = isinstance(world, ForwardPass)
        parts = self._needed(world)
        self._entries = [part.done for part in parts]
        cells = {part.done: part for part in parts if isinstance(part, CellText)}
        self._cells: dict[Cell, CellText] = cells
        self._taken = set(_IMPORTS) | set(_HELPERS) | {"stop", "error"}
        for part in parts:
            self._taken |= part.names
        self._data_name = self._fresh("data")
        self._data: dict[str, Any] = {}
        self._random: States = {}
        self._model = None
        if self._is_model:
            self._model = ModelScript(world, self._fresh, self._data_name)
            self._data = self._model.values()
        chains = self._chains()
        rebound = {start: self._rebound(chain) for start, chain in chains.items()}
        self._passes = PassWriter(self._fresh, cells, self._model, rebound, chains, self._restored)

    # -- what is in it ---------------------------------------------------------------------------

    def _needed(self, world: object) -> list[Any]:
        """The passes of this world, and the cells on which they may depend."""
        current, entries = self._current, self._journal.entries
        passes = [e for e in entries if isinstance(e, Pass) and e.world() is world]
        if self._is_model:
            passes = _since_the_last_start(passes)
        chain = {p for p in passes if p.start is current.start}
        always = set(passes) if self._is_model else chain
        parts = {p: _PassPart(p, p in always, not self._is_model) for p in passes}
        self._check_names(parts.values())
        console = world
        if self._is_model:
            cells = [e for e in entries if isinstance(e, Cell)]
            uses_console = cells and any(part.own for part in parts.values())
            console = cells[-1].world() if uses_console else None
        found: list[Any] = []
        for entry in entries:
            if isinstance(entry, Pass):
                found += [parts[entry]] if entry in parts else []
            elif console is not None and entry.world() is console:
                text = CellText(entry)
                found += [] if text.is_empty else [text]
        return needed(found)

    def _check_names(self, parts: Iterable[_PassPart]) -> None:
        bound = set[str]()
        for entry in self._journal.entries:
            if isinstance(entry, Cell):
                text = CellText(entry)
                bound |= text.assigned | text.imported
                if "*" in text.imported:
                    return
        for part in parts:
            for name in part.edited - bound:
                raise LabError(
                    f"No script can bring `{name}`, which an edit uses: no cell has made it.",
                    hint=f"Make {name} in the console, and edit again.",
                )

    def _chains(self) -> dict[Pass, list[Pass]]:
        """The passes that start from another's roots or gradients, by the first of them."""
        found: dict[Pass, list[Pass]] = {}
        for entry in self._entries:
            if isinstance(entry, Pass):
                found.setdefault(entry.start, []).append(entry)
        return found

    def _rebound(self, chain: list[Pass]) -> frozenset[str]:
        """Names that cells bind between these passes, or in their midst."""
        begin, end = self._entries.index(chain[0]), self._entries.index(chain[-1])
        between = [e for e in self._entries[begin:end] if isinstance(e, Cell)]
        between += [c for p in chain for c in p.cells if c in self._cells]
        texts = [self._cells[cell] for cell in between]
        called = [
            text.assigned_inside
            for text in self._cells.values()
            if any(text.assigned & each.names for each in texts)
        ]
        return frozenset().union(*(text.assigned for text in texts), *called)

    def _fresh(self, name: str) -> str:
        """The name, or the first with a number that is free."""
        free = next(
            n for i in count(1) if (n := f"{name}_{i}" if i > 1 else name) not in self._taken
        )
        self._taken.add(free)
        return free

    # -- as text ---------------------------------------------------------------------------------

    def written(self) -> tuple[str, bytes]:
        blocks: list[str] = []
        if self._model:
            blocks += [self._model.class_code, self._model.made, self._model.forward_code]
        for entry in self._entries:
            inside = isinstance(entry, Cell) and entry.inside
            if inside and inside in self._entries:
                continue  # the pass writes it
            blocks += self._restored(entry)
            if isinstance(entry, Pass):
                blocks += self._passes.blocks(entry, is_last=entry is self._current)
            else:
                blocks.append(self._cell(entry))
        blocks += self._printed()
        used = _names_used(blocks)
        helpers = [code for name, code in _HELPERS.items() if name in used]
        blocks = [self._opening(used), *helpers, *blocks]
        used = _names_used(blocks)
        imports = [line for name, line in _IMPORTS.items() if name in used]
        future = {line for text in self._cells.values() for line in text.future_imports}
        head = [self._title(), "\n".join(sorted(future)), _sorted_imports(imports)]
        kept = [_without(block, imports) for block in blocks]
        return joined([*head, *kept]), packed(self._data)

    def _title(self) -> str:
        lines = ["Backward passes of Tensor Lab in plain PyTorch, to the last bit of each .grad."]
        if self._data:
            lines += ["", "The file saved beside it, of the same name with .pt, is loaded."]
        if files := self._own_files():
            lines += ["", f"Put beside it what it imports of yours: {', '.join(files)}."]
        if len(lines) == 1:
            return f'"""{lines[0]}"""'
        return '"""' + "\n".join(lines) + '\n"""'

    def _opening(self, used: set[str]) -> str:
        lines = [
            f"torch.set_num_threads({self._journal.threads})"
            "  # as in the lab: it decides the last bits of sums"
        ]
        if self._data:
            path = 'Path(__file__).with_suffix(".pt")'
            lines.append(f"{self._data_name} = torch.load({path}, weights_only=True)")
        return "\n".join(lines)

    def _cell(self, cell: Cell) -> str:
        if cell.error == "KeyboardInterrupt":
            raise LabError(
                f"No script can repeat {cell.title}: it was stopped while it ran.",
                hint="Run in a new console what should be in the script.",
            )
        lines = self._cells[cell].lines()
        return f"# {cell.title}\n{lines}" if lines else ""

    def _restored(self, entry: Cell | Pass) -> list[str]:
        """A line for each generator that does not stand where it stood before the entry, if that
        draws from it."""
        lines = []
        draws = self._cells[entry].draws if isinstance(entry, Cell) else entry.draws
        for generator in draws:
            state = entry.before.get(generator)
            if state is not None and self._random.get(generator) != state:
                lines.append(restoring_line(generator, state, self._data, self._data_name))
        self._random.update({k: v for k, v in entry.after.items() if entry.before.get(k) != v})
        return ["\n".join(["# Random numbers as they were in the lab.", *lines])] if lines else []

    def _printed(self) -> list[str]:
        if self._model and not self._current.inputs:
            parameter = self._fresh("parameter")
            return [
                f"for name, {parameter} in {self._model.model}.named_parameters():\n"
                f"    grad = {parameter}.grad\n"
                '    print(name, "no gradient" if grad is None else grad.norm().item())'
            ]
        results = self._passes.results(self._current)[:MAX_PRINTED]
        return ["\n".join(f'print("{title}:", {text})' for title, text in results)]

    def _own_files(self) -> list[str]:
        """Modules of the user's own that the cells import, as files or folders."""
        found = set()
        installed = [Path(p).resolve() for p in sysconfig.get_paths().values()]
        for name in {m for text in self._cells.values() for m in text.modules}:
            file = getattr(sys.modules.get(name), "__file__", None)
            if file and not any(Path(file).resolve().is_relative_to(p) for p in installed):
                path = Path(file)
                found.add(f"{path.parent.name}/" if path.stem == "__init__" else path.name)
        return sorted(found)


def _since_the_last_start(passes: list[Pass]) -> list[Pass]:
    """Passes of the model from the last on that began with every `.grad` None."""
    starts = [i for i, p in enumerate(passes) if p.clears and not p.roots.of]
    return passes[starts[-1] :] if starts else passes


def _names_used(blocks: Iterable[str]) -> set[str]:
    trees = [ast.parse(block) for block in blocks]
    words = {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
    # Comments may hold a hook to switch on.
    return words | {name for name in _HELPERS if any(f"{name}(" in block for block in blocks)}


def _sorted_imports(lines: list[str]) -> str:
    """Python's own first."""
    own = [line for line in lines if line.split()[1] in sys.stdlib_module_names]
    others = [line for line in lines if line not in own]
    plain = [line for line in others if line.startswith("import")]
    named = [line for line in others if line not in plain]
    return "\n\n".join(filter(None, ["\n".join(own), "\n".join([*plain, *named])]))


def _without(block: str, imports: list[str]) -> str:
    """A block without lines that the head of the script has."""
    return "\n".join(line for line in block.splitlines() if line not in imports)
