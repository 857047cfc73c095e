"""Writes backward passes as a Python script that leaves the same bits in `.grad`.

The script is plain PyTorch. It has the cells that computed the roots, or the model and its batch;
a backward for each pass, with pre-hooks for edits; and the cells and zero_grad() calls in between.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from ...console.journal import Cell, Journal, Pass
from ...errors import LabError
from ...models.forward import ForwardPass
from ...random_states import States, restoring_line
from .cells import (
    Entry,
    cell_code,
    draws,
    edited_names,
    future_imports,
    modules_of,
    names_of,
    needed,
    rebind,
    runs,
)
from .hooks import HELPERS
from .model_script import ModelScript, packed
from .pass_lines import PassWriter
from .text import joined, words

MAX_PRINTED = 6
"""Tensors whose `.grad` the script prints."""

_IMPORTS = {  # in the order in which formatters put them
    "random": "import random",
    "traceback": "import traceback",
    "suppress": "from contextlib import suppress",
    "Path": "from pathlib import Path",
    "np": "import numpy as np",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
    "get_gradient_edge": "from torch.autograd.graph import get_gradient_edge",
}

_RENAMED_IMPORTS = ("suppress", "traceback", "Path", "get_gradient_edge")
"""Imports of the script's own use: the console defines the others."""


def write_script(journal: Journal, current: Pass, owner: object) -> tuple[str, bytes]:
    """The script of the passes of `owner` (a forward pass, or the console's namespace) up to and
    with `current`, and the file that it loads (empty if none). Raises LabError with the cause for
    what no script can do."""
    return _Script(journal, current, owner).text()


def code_behind(journal: Journal, current: Pass, owner: object) -> str:
    """The cells on which the graph of a pass may depend, in order; empty for a pass of the
    model."""
    entries = _in_order(journal, current, owner, owner)
    cells = [entry for entry in entries if isinstance(entry, Cell) and not entry.error]
    found = needed([*cells, current], [current])
    return "\n\n".join(e.source.strip("\n") for e in found if isinstance(e, Cell))


def _in_order(journal: Journal, current: Pass, owner: object, console: object) -> Iterator[Entry]:
    """The passes of `owner` and the cells of `console`. A cell that ran during a pass comes after
    it."""
    for entry in [*journal.entries, current]:
        cells = entry.cells if isinstance(entry, Pass) else [entry]
        if isinstance(entry, Pass) and entry.owner() is owner:
            yield entry
        yield from (cell for cell in cells if cell.owner() is console and runs(cell))


class _Script:
    def __init__(self, journal: Journal, current: Pass, owner: Any) -> None:
        self._journal, self._current = journal, current
        self._entries = self._needed(owner)
        self._cells = [entry for entry in self._entries if isinstance(entry, Cell)]
        self._passes = [entry for entry in self._entries if isinstance(entry, Pass)]
        self._used_names = {*_IMPORTS, *HELPERS, "stop"}.union(*map(names_of, self._entries))
        self._own_names = {
            name: self._fresh(name)
            for name in ("find_node", "Stop", "stop", *_RENAMED_IMPORTS)
            if rebind(self._cells, name, _IMPORTS.get(name, ""))
        }
        self._data_name = self._fresh("data")
        self._data: dict[str, Any] = {}
        self._random: States = {}
        self._model = None
        if isinstance(owner, ForwardPass):
            self._model = ModelScript(owner, self._fresh, self._data_name)
            self._data = self._model.values()
        self._writer = PassWriter(
            self._fresh,
            self._own_name,
            self._model,
            set(self._cells),
            self._renamed_starts(),
            self._restoring,
        )

    # -- the entries -----------------------------------------------------------------------------

    def _needed(self, owner: object) -> list[Entry]:
        """The passes of `owner`, and the cells on which they may depend."""
        is_model = isinstance(owner, ForwardPass)
        entries = [*self._journal.entries, self._current]
        console = owner
        if is_model:
            cells = [cell for e in entries for cell in (e.cells if isinstance(e, Pass) else [e])]
            console = cells[-1].owner() if cells else None
        found = list(_in_order(self._journal, self._current, owner, console))
        passes = [entry for entry in found if isinstance(entry, Pass)]
        if is_model:
            passes = _since_the_last_start(passes)
            use_cells = any(map(names_of, passes))
            found = [e for e in found if (use_cells if isinstance(e, Cell) else e in passes)]
        self._check_names(found)
        return needed(found, [p for p in passes if is_model or p.start is self._current.start])

    def _check_names(self, entries: list[Entry]) -> None:
        cells = [entry for entry in entries if isinstance(entry, Cell)]
        bound = frozenset[str]().union(*map(names_of, cells))
        passes = [entry for entry in entries if isinstance(entry, Pass)]
        for name in frozenset[str]().union(*map(edited_names, passes)) - bound:
            if "*" not in bound:
                raise LabError(
                    f"No script can bring `{name}`, which an edit uses: no cell has made it.",
                    hint=f"Make {name} in the console, and edit again.",
                )

    def _renamed_starts(self) -> set[Pass]:
        """The starts of passes with a cell between the start and the end of their last pass."""
        found = set[Pass]()
        for p in self._passes:
            between = self._entries[self._entries.index(p.start) : self._entries.index(p)]
            if not set(self._cells).isdisjoint([*between, *p.cells]):
                found.add(p.start)
        return found

    def _fresh(self, name: str) -> str:
        """An unused name: `name`, or `name` with the lowest number that is free."""
        free = next(
            n for i in count(1) if (n := f"{name}_{i}" if i > 1 else name) not in self._used_names
        )
        self._used_names.add(free)
        return free

    def _own_name(self, name: str) -> str:
        """The name in the script of one of its own imports or helpers."""
        return self._own_names.get(name, name)

    def _helper(self, code: str) -> str:
        return re.sub(r"\w+", lambda match: self._own_name(match[0]), code)

    # -- as text ---------------------------------------------------------------------------------

    def text(self) -> tuple[str, bytes]:
        blocks: list[list[str]] = []
        if self._model:
            blocks += self._model.blocks()
        inside = {cell for p in self._passes for cell in p.cells}  # written as hooks of the pass
        for entry in self._entries:
            if isinstance(entry, Pass):
                blocks.append(self._restoring(entry))
                blocks += self._writer.blocks(entry, is_last=entry is self._current)
            elif entry not in inside:
                blocks += [
                    self._restoring(entry),
                    [f"# {entry.title}", cell_code(entry, self._own_name)],
                ]
        blocks += self._print_blocks()
        body = ["\n".join(lines) for lines in blocks]
        opening = self._opening()
        used = set(words("\n".join([opening, *body])))
        helpers = [
            self._helper(code) for name, code in HELPERS.items() if self._own_name(name) in used
        ]
        used.update(*map(words, helpers))
        imports = [
            line if self._own_name(name) == name else f"{line} as {self._own_name(name)}"
            for name, line in _IMPORTS.items()
            if self._own_name(name) in used
        ]
        own = [line for line in imports if line.split()[1] in sys.stdlib_module_names]
        others = [line for line in imports if line not in own]
        head = [self._title(), "\n".join(future_imports(self._cells))]
        head += ["\n".join(own), "\n".join(others), opening]
        return joined([*head, *helpers, *body]), packed(self._data)

    def _title(self) -> str:
        lines = ["Backward passes of Tensor Lab in plain PyTorch, to the last bit of each .grad."]
        if self._data:
            lines += ["", "The file saved beside it, of the same name with .pt, is loaded."]
        if files := self._own_files():
            lines += ["", f"Put beside it what it imports of yours: {', '.join(files)}."]
        if len(lines) == 1:
            return f'"""{lines[0]}"""'
        return '"""' + "\n".join(lines) + '\n"""'

    def _opening(self) -> str:
        lines = [
            f"torch.set_num_threads({self._journal.threads})"
            "  # as in the lab: it decides the last bits of sums"
        ]
        if self._data:
            path = f'{self._own_name("Path")}(__file__).with_suffix(".pt")'
            lines.append(f"{self._data_name} = torch.load({path}, weights_only=True)")
        return "\n".join(lines)

    def _restoring(self, entry: Entry) -> list[str]:
        """The lines that restore each random number generator that the entry draws from, unless it
        is in the right state already."""
        lines = []
        for generator in sorted(draws(entry)):
            state = entry.before.get(generator)
            if state is not None and self._random.get(generator) != state:
                lines.append(restoring_line(generator, state, self._data, self._data_name))
        self._random.update({k: v for k, v in entry.after.items() if entry.before.get(k) != v})
        return ["# Random numbers as they were in the lab.", *lines] if lines else []

    def _print_blocks(self) -> list[list[str]]:
        if self._model and not self._current.inputs:
            parameter = self._fresh("parameter")
            return [[
                f"for name, {parameter} in {self._model.model}.named_parameters():",
                f"    grad = {parameter}.grad",
                '    print(name, "no gradient" if grad is None else grad.norm().item())',
            ]]  # fmt: skip
        results = self._writer.results(self._current)[:MAX_PRINTED]
        return [[f'print("{title}:", {text})' for title, text in results]]

    def _own_files(self) -> list[str]:
        """The files or folders of the user's own modules that the cells import."""
        found = set()
        installed = [Path(p).resolve() for p in sysconfig.get_paths().values()]
        for name in modules_of(self._cells):
            file = getattr(sys.modules.get(name), "__file__", None)
            if file and not any(Path(file).resolve().is_relative_to(p) for p in installed):
                path = Path(file)
                found.add(f"{path.parent.name}/" if path.stem == "__init__" else path.name)
        return sorted(found)


def _since_the_last_start(passes: list[Pass]) -> list[Pass]:
    """The model's passes from the last one that began with every `.grad` None."""
    starts = [i for i, p in enumerate(passes) if p.clears and not p.roots.of]
    return passes[starts[-1] :] if starts else passes
