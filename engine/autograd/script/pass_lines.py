"""One backward pass as lines of Python: roots, hooks in place of edits, backward, zero_grad."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ...console.journal import Cell, Event, Pass, Place, ZeroGrad
from ...errors import LabError
from .cells import Own, cell_code, exec_call
from .hooks import edit_body
from .model_script import ModelScript
from .text import identifier, is_expression, with_statement


class PassWriter:
    """Writes the passes of a script in order. `fresh` returns an unused name, `own` the name of a
    helper or import of the script's; `cells` are the cells in the script, and `restoring` returns
    the lines that restore the random numbers before a cell. `renamed` are starts of passes whose
    tensors get names of the script's own, since a cell may rebind the console's names before the
    last pass from there. Raises LabError for what no script can do."""

    def __init__(
        self,
        fresh: Callable[[str], str],
        own: Own,
        model: ModelScript | None,
        cells: Collection[Cell],
        renamed: Collection[Pass],
        restoring: Callable[[Cell], list[str]],
    ) -> None:
        self._fresh, self._own, self._model = fresh, own, model
        self._cells, self._restoring = cells, restoring
        self._renamed: dict[Pass, dict[str, str]] = {start: {} for start in renamed}
        self._loss = fresh("loss") if model else ""
        self._run: int | None = None
        self._roots: dict[Pass, list[str]] = {}
        self._gradients: dict[Pass, list[str]] = {}
        self._gradient_names: dict[Pass, dict[str, str]] = {}
        self._hooks: dict[str, str] = {}
        self._nodes: dict[Pass, dict[Place, str]] = {}
        self._start_lines: dict[Pass, list[str]] = {}

    def blocks(self, p: Pass, is_last: bool) -> list[list[str]]:
        """The code of a pass in blocks of lines. The last pass runs to its end."""
        self._check(p)
        title = f"# {_title(p)}"
        if is_last and 0 < p.position < p.size:
            title += f"\n# In the lab it stood at node {p.position} of {p.size}."
        lines = [title]
        if p.first is p:
            self._start_lines[p] = lines
            self._write_start(p, lines)
        if p.clears:
            lines += self._clear_lines(p, list(p.leaves), set_to_none=True)
        end = p.size if is_last else p.position
        if p.inputs and not any(p.found) and not is_last:
            end = 0  # no input's gradient was found, so the script need not run these nodes
        late = [e for e in p.events if 0 < end <= e.position]
        midst = [e for e in p.events if 0 < e.position < end and e.at is not None]
        early = [e for e in p.events if e not in late and e not in midst]
        definitions, backward = self._backward(p, end, midst) if end else ([], [])
        if is_last:
            backward = [*self._breakpoints(p), *backward]
        before, after = self._event_blocks(p, early), self._event_blocks(p, late)
        if before:
            return [*definitions, lines, *before, backward, *after]
        lines += backward
        return [*definitions, lines if len(lines) > 1 else [], *after]

    def results(self, p: Pass) -> list[tuple[str, str]]:
        """The names and expressions of the gradients that the pass has computed."""
        if p.inputs:
            return [(f"gradient of {name}", text) for name, text in self._gradient_names[p].items()]
        return [(f"{name}.grad", f"{self._tensor(p, name)}.grad") for name in p.leaves]

    def _check(self, p: Pass) -> None:
        if p.trouble:
            raise LabError(
                f"No script can repeat this: {p.trouble}.",
                hint="Run the code again, start a new pass, and step it one way.",
            )
        for event in p.events:
            if event.done in self._cells and event.lowest < event.position:
                raise LabError(
                    f"No script can repeat this: {event.done.title} ran while the pass stood at "
                    f"node {event.position}, and the pass has gone back before that since.",
                    hint="Restart the pass, and run the cell before it or in its midst.",
                )

    # -- where it starts -------------------------------------------------------------------------

    def _write_start(self, p: Pass, lines: list[str]) -> None:
        """Add the lines that define the roots and their gradients."""
        is_renamed = p.start in self._renamed
        roots = self._roots[p] = []
        if p.roots.of:
            assert p.parent is not None
            made = self._gradient_of(p.parent, p.roots.of)
            roots.append(made)
            if not made.isidentifier():
                roots[0] = self._fresh(f"gradient_of_{identifier(p.roots.of)}")
                lines.append(f"{roots[0]} = {made}")
        elif self._model:
            roots.append(self._loss)
            if p.roots.run != self._run:
                lines.append(f"{self._loss} = {self._model.loss}")
                self._run = p.roots.run
        for expression in p.roots.expressions:
            roots.append(expression)
            if is_renamed or not expression.isidentifier():
                roots[-1] = self._fresh("root")
                lines.append(f"{roots[-1]} = {expression}")
        gradients = zip(p.roots.gradients, roots, strict=True)
        given = self._gradients[p] = [g.code.format(root=r, text=g.text) for g, r in gradients]
        for place, text in enumerate(given):
            if text != "None" and (is_renamed or not text.isidentifier()):
                given[place] = self._fresh("gradient")
                lines.append(f"{given[place]} = {text}")

    def _gradient_of(self, p: Pass, name: str) -> str:
        return self._gradient_names[p][name] if p.inputs else f"{self._tensor(p, name)}.grad"

    def _tensor(self, p: Pass, name: str) -> str:
        """The expression of a tensor whose `.grad` a pass shows, or of an input."""
        if self._model:
            return self._model.parameter(name)
        if not is_expression(name):  # a leaf without a name
            place = p.leaves[name].place
            assert place is not None
            return f"{self._node(p, place)}.variable"
        names = self._renamed.get(p.start)
        if names is None:
            return name
        if name not in names:
            names[name] = self._fresh(f"{identifier(name)}_before")
            self._start_lines[p.start].insert(len(names), f"{names[name]} = {name}")
        return names[name]

    def _node(self, p: Pass, place: Place) -> str:
        roots = ", ".join(self._roots[p.first])
        return f'{self._own("find_node")}("{place.name}", {place.number}, {roots})'

    # -- what is changed -------------------------------------------------------------------------

    def _event_blocks(self, p: Pass, events: Sequence[Event]) -> list[list[str]]:
        """The code of cells and zero_grad() calls that ran before a pass or after it."""
        blocks = []
        for event in events:
            if isinstance(event.done, ZeroGrad):
                lines = self._zero_grad_lines(p, event, event.done)
                blocks.append([f"# {event.done.title}", *lines] if lines else [])
            elif event.done in self._cells:
                blocks += [self._restoring(event.done)]
                blocks += [[f"# {event.done.title}", cell_code(event.done, self._own)]]
        return blocks

    def _event_hook(self, p: Pass, event: Event) -> tuple[str, str]:
        """A hook for a cell or zero_grad() that ran during a pass: its name, and its definition
        (empty if it does nothing)."""
        title, indent = event.done.title, " " * 8
        if isinstance(event.done, ZeroGrad):
            code = "\n".join(indent + line for line in self._zero_grad_lines(p, event, event.done))
        else:
            code = exec_call(event.done, self._own, indent) if event.done in self._cells else ""
            runs_backward = any(call in code for call in (".backward(", "autograd.grad("))
            if runs_backward:  # it would call the hooks, too
                raise LabError(
                    f"No script can repeat this: {title} runs backward in the midst of a pass.",
                    hint="Do that before the pass, or at its end.",
                )
        name = self._fresh(identifier(title))
        head = f'def {name}(*_):\n    """{title}, in the midst of the pass."""\n'
        return name, f"{head}    with torch.enable_grad():\n{code}" if code else ""

    def _zero_grad_lines(self, p: Pass, event: Event, done: ZeroGrad) -> list[str]:
        """The lines of a zero_grad(). Leaves over which the pass has gone back since are left out:
        going back restored their `.grad`."""
        back = range(event.lowest, event.position)
        names = [name for name, leaf in p.leaves.items() if p.inputs or leaf.position not in back]
        return self._clear_lines(p, names, done.set_to_none) if names else []

    def _clear_lines(self, p: Pass, names: list[str], set_to_none: bool) -> list[str]:
        if self._model and self._model.holds(names):
            return [f"{self._model.model}.zero_grad({'' if set_to_none else 'set_to_none=False'})"]
        tensors = [self._tensor(p, name) for name in names]
        if set_to_none:
            return [f"{tensor}.grad = None" for tensor in tensors]
        leaf = self._fresh("leaf")
        return [
            f"for {leaf} in [{', '.join(tensors)}]:",
            f"    if {leaf}.grad is not None:",
            f"        {leaf}.grad = {leaf}.grad.detach().zero_()",
        ]

    # -- backward --------------------------------------------------------------------------------

    def _backward(
        self, p: Pass, end: int, midst: Sequence[Event]
    ) -> tuple[list[list[str]], list[str]]:
        """The definitions of hooks, and the lines that run the first `end` nodes with them."""
        definitions: list[list[str]] = []
        lines: list[str] = []
        items: list[str] = []
        nodes = self._nodes.setdefault(p.first, {})

        def at(place: Place) -> str:
            """The script's variable for a node."""
            if place not in nodes:
                nodes[place] = self._fresh(f"{identifier(place.word)}_node")
                lines.append(f"{nodes[place]} = {self._node(p, place)}")
            return nodes[place]

        way = "register_prehook" if p.real_engine else "register_hook"
        for event in midst:
            name, definition = self._event_hook(p, event)
            if definition and event.at is not None:
                definitions.append([definition])
                items.append(f"{at(event.at)}.{way}({name})")
        for edit in p.edits:
            body = edit_body(edit)
            if body not in self._hooks:
                self._hooks[body] = self._fresh(f"edit_{identifier(edit.place.word)}")
                definitions.append([f"def {self._hooks[body]}(grads):\n{body}"])
            items.append(f"{at(edit.place)}.register_prehook({self._hooks[body]})")
        if end < p.size and not p.inputs and p.at is not None:
            suppress, stop_error, stop = map(self._own, ("suppress", "Stop", "stop"))
            items += [f"{suppress}({stop_error})", f"{at(p.at)}.{way}({stop})"]
        return definitions, [*lines, with_statement(items, self._call(p, end == p.size))]

    def _breakpoints(self, p: Pass) -> Iterator[str]:
        for words, place in p.breakpoints:
            yield f"# Breakpoint: {words}."
            if place is not None:
                hook = "register_prehook(lambda grads: breakpoint())"
                yield f"# {self._node(p, place)}.{hook}"

    def _call(self, p: Pass, to_end: bool) -> str:
        roots, given = self._roots[p.first], self._gradients[p.first]
        options = ["retain_graph=True"] if p.retain_graph and not p.create_graph else []
        options += ["create_graph=True"] if p.create_graph else []
        several = len(roots) > 1
        listed = [f"[{', '.join(roots)}]" if several else roots[0]]
        if any(text != "None" for text in given):
            listed.append(f"[{', '.join(given)}]" if several else given[0])
        if not p.inputs:
            if several:
                return f"torch.autograd.backward({', '.join([*listed, *options])})"
            return f"{roots[0]}.backward({', '.join([*listed[1:], *options])})"
        wanted = [n for n, found in zip(p.inputs, p.found, strict=True) if found or to_end]
        if to_end and not all(p.found):
            options.insert(0, "allow_unused=True")
        inputs = ", ".join(self._tensor(p, name) for name in wanted)
        arguments = ", ".join([listed[0], f"[{inputs}]", *listed[1:], *options])
        names = [self._fresh(f"gradient_of_{identifier(name)}") for name in wanted]
        self._gradient_names[p] = dict(zip(wanted, names, strict=True))
        target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        return f"{target} = torch.autograd.grad({arguments})"


def _title(p: Pass) -> str:
    if p.first is not p:
        return "Once more, from the same roots."
    if p.roots.of:
        return f"Backward through the gradient of {p.roots.of}."
    what = ", ".join(p.roots.expressions) or "the loss of the batch"
    return f"The gradients of {what}." if p.inputs else f"Backward from {what}."
