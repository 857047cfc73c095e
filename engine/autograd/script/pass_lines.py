"""One backward pass as lines of Python: roots, hooks in place of edits, backward, zero_grad."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...console.journal import Cell
from ...errors import LabError
from ..backward.pass_record import Pass, Place, Zeroing
from .cells import CellText, is_expression, names_in
from .hooks import CodeInside, given_text, hook_body, word_for
from .model_script import ModelScript
from .text import call, identifier, with_statement

MAX_NAMED = 4
"""Tensors that are named one by one; of more a loop speaks."""


class PassWriter:
    """Writes the passes of a script one after the other. `fresh` gives a name that nothing else
    has, `cells` are those that the script holds. `rebound`: names that cells bind anew before the
    last pass of those that have a `start` in common: the `chains`. `restored` are lines that
    put random numbers where they were before a cell. Raises LabError for what no script can do."""

    def __init__(
        self,
        fresh: Callable[[str], str],
        cells: dict[Cell, CellText],
        model: ModelScript | None,
        rebound: Mapping[Pass, frozenset[str]],
        chains: Mapping[Pass, Sequence[Pass]],
        restored: Callable[[Cell], list[str]],
    ) -> None:
        self._fresh, self._cells, self._model = fresh, cells, model
        self._rebound, self._chains, self._restored = rebound, chains, restored
        self._kept: dict[Pass, dict[str, str]] = {}
        self._loss = fresh("loss") if model else ""
        self._run = 0
        self._roots: dict[Pass, list[str]] = {}
        self._given: dict[Pass, list[str]] = {}
        self._found: dict[Pass, dict[str, str]] = {}
        self._hooks: dict[str, str] = {}
        self._nodes: dict[Pass, dict[Place, str]] = {}

    def blocks(self, p: Pass, is_last: bool) -> list[str]:
        """The code of a pass; of the last one all that is left, too."""
        if p.trouble:
            raise LabError(
                f"No script can repeat this: {p.trouble}.", hint="Run the code anew, and go on."
            )
        self._check(p)
        lines = [f"# {self._title(p)}"]
        if is_last and not p.is_at_end and p.position:
            lines.append(f"# In the lab it stood at node {p.position} of {p.size}.")
        run_before = self._run
        begun = self._begin(p) if p.first is None else []
        if p.clears and not (self._model and not run_before):  # a new model has none
            begun += self._emptied(p, list(p.leaves), set_to_none=True)
        end = p.size if is_last else p.position
        if p.inputs and not any(p.found) and not is_last:
            end = 0  # nothing comes of it
        before, inside, after = self._events(p, end)
        definitions, backward = self._backward(p, end, inside) if end else ([], [])
        if not (backward or before or p.clears or p.draws or self._chains[p.start][-1] is not p):
            self._run = run_before
            return after  # nothing has run
        lines += begun
        if not backward:
            return ["\n".join(begun), *before, *after]
        if before:
            return ["\n".join(lines), *before, *definitions, "\n".join(backward), *after]
        return [*definitions, "\n".join([*lines, *backward]), *after]

    def results(self, p: Pass) -> list[tuple[str, str]]:
        """What the pass has found: names of gradients, and their expressions."""
        if p.inputs:
            return [(f"gradient of {name}", text) for name, text in self._found[p].items()]
        return [(f"{name}.grad", f"{self._tensor(p, name)}.grad") for name in p.leaves]

    # -- where it starts -------------------------------------------------------------------------

    def _title(self, p: Pass) -> str:
        if p.first is not None:
            return "Once more, from the same roots."
        if p.roots.of:
            return f"Backward through the gradient of {p.roots.of}."
        what = ", ".join(p.roots.expressions) or "the loss of the batch"
        return f"The gradients of {what}." if p.inputs else f"Backward from {what}."

    def _begin(self, p: Pass) -> list[str]:
        """Lines that bind the roots."""
        lines: list[str] = []
        if p.roots.of:
            assert p.previous is not None
            made = self._gradient_of(p.previous, p.roots.of)
            root = made
            if not made.isidentifier():
                root = self._fresh(f"gradient_of_{identifier(p.roots.of)}")
                lines.append(f"{root} = {made}")
            roots = [root]
        elif self._model:
            roots = [self._loss]
            if p.roots.run != self._run:
                lines.append(f"{self._loss} = {self._model.loss}")
                self._run = p.roots.run
        else:
            lines += self._keep(p)
            roots = []
            for expression in p.roots.expressions:
                if expression.isidentifier() and not self._is_rebound(p, expression):
                    roots.append(expression)
                    continue
                roots.append(self._fresh("root"))
                lines.append(f"{roots[-1]} = {expression}")
        self._roots[p] = roots
        given = [given_text(g, r) for g, r in zip(p.roots.gradients, roots, strict=True)]
        again = self._chains[p.start][-1] is not p
        if any(g.text for g in p.roots.gradients) and (p.clears or p.cells or again):
            for place, text in enumerate(given):
                if text != "None":
                    given[place] = self._fresh("gradient")
                    lines.append(f"{given[place]} = {text}")
        self._given[p] = given
        return lines

    def _gradient_of(self, p: Pass, name: str) -> str:
        if p.inputs:
            return self._found[p][name]
        return f"{self._tensor(p, name)}.grad"

    def _tensor(self, p: Pass, name: str) -> str:
        """The expression of a tensor whose `.grad` a pass shows, or of an input."""
        if self._model:
            return self._model.parameter(name)
        kept = self._kept.get(p.start, {})
        if name in kept or is_expression(name):
            return kept.get(name, name)
        place, _ = p.leaves[name]
        assert place is not None and place.is_leaf  # a leaf without a name
        return f"{self._node(p, place)}.variable"

    def _keep(self, p: Pass) -> list[str]:
        """Lines that give a name to what is bound anew before the last of these passes."""
        chain = self._chains[p]
        names = dict.fromkeys(n for q in chain for n in (*q.inputs, *q.leaves))
        self._kept[p] = {
            name: self._fresh(f"{identifier(name)}_before")
            for name in names
            if self._is_rebound(p, name)
        }
        return [f"{kept} = {name}" for name, kept in self._kept[p].items()]

    def _is_rebound(self, p: Pass, text: str) -> bool:
        return bool(names_in(text) & self._rebound[p.start])

    def _node(self, p: Pass, place: Place) -> str:
        roots = ", ".join(self._roots[p.first or p])
        is_named = is_expression(place.label)
        if place.is_leaf and is_named:
            return f"get_gradient_edge({self._tensor(p, place.label)}).node"
        if is_named and p.roots.expressions and not _cells_since(p):
            return f"{place.label}.grad_fn"
        return f'find_node("{place.name}", {place.number}, {roots})'

    # -- what is changed -------------------------------------------------------------------------

    def _check(self, p: Pass) -> None:
        for cell in p.cells:
            if cell in self._cells and cell.lowest < cell.position:
                raise LabError(
                    f"No script can repeat this: {cell.title} ran while the pass stood at node "
                    f"{cell.position}, and the pass has gone back before that since.",
                    hint="Start the pass anew, and run the cell before it or in its midst.",
                )
        if p.went_back and p.draws:
            raise LabError(
                "No script can repeat this: the pass drew random numbers, and has gone back.",
                hint="Start the pass anew, and step it one way.",
            )

    def _events(self, p: Pass, end: int) -> tuple[list[str], list[CodeInside], list[str]]:
        """What was done in a pass: before its first node, in its midst, and after node `end`."""
        before: list[str] = []
        inside: list[CodeInside] = []
        after: list[str] = []
        for event in p.events:
            if isinstance(event, Cell):
                text = self._cells.get(event)
                title, code = event.title, "" if text is None else text.lines()
                bound = frozenset[str]() if text is None else text.assigned
            else:
                title, bound = "zero_grad()", frozenset[str]()
                names = _emptied_for_good(p, event)
                code = "\n".join(self._emptied(p, names, event.set_to_none)) if names else ""
            place = p.nodes_around.get(event.position, (None, None))[p.real_engine]
            if not code:
                continue
            early = event.position == 0 or place is None or not end
            if (late := 0 < end <= event.position) or early:
                blocks = after if late else before
                blocks += self._restored(event) if isinstance(event, Cell) else []
                blocks.append(f"# {title}\n{code}")
            elif place is not None:
                inside.append(CodeInside(place, self._fresh(identifier(title)), title, code, bound))
        return before, inside, after

    def _emptied(self, p: Pass, names: list[str], set_to_none: bool) -> list[str]:
        if self._model and self._model.holds(names):
            return [f"{self._model.model}.zero_grad({'' if set_to_none else 'set_to_none=False'})"]
        tensors = [self._tensor(p, name) for name in names]
        if set_to_none and len(tensors) <= MAX_NAMED:
            return [f"{tensor}.grad = None" for tensor in tensors]
        leaf, listed = self._fresh("leaf"), ", ".join(tensors)
        lines = [f"for {leaf} in [{listed}]:"]
        if len(lines[0]) > 88:
            lines = [f"for {leaf} in [", *(f"    {tensor}," for tensor in tensors), "]:"]
        if set_to_none:
            return [*lines, f"    {leaf}.grad = None"]
        emptied = f"{leaf}.grad = {leaf}.grad.detach().zero_()"
        return [*lines, f"    if {leaf}.grad is not None:", f"        {emptied}"]

    # -- backward --------------------------------------------------------------------------------

    def _backward(
        self, p: Pass, end: int, inside: Sequence[CodeInside]
    ) -> tuple[list[str], list[str]]:
        """Lines that run the first `end` nodes with all hooks, and with what was done in their
        midst; before them the definitions of the hooks."""
        to_end = end == p.size
        definitions: list[str] = []
        lines: list[str] = []
        items: list[str] = []
        nodes = self._nodes.setdefault(p.first or p, {})

        def at(place: Place) -> str:
            """The variable of a node."""
            if place not in nodes:
                nodes[place] = self._fresh(f"{word_for(place)}_node")
                lines.append(f"{nodes[place]} = {self._node(p, place)}")
            return nodes[place]

        breakpoints = p.breakpoints if self._chains[p.start][-1] is p else ()
        way = "register_prehook" if p.real_engine else "register_hook"
        for event in inside:
            definitions.append(event.definition())
            items.append(f"{at(event.place)}.{way}({event.name})")
        for edited in p.edits:
            if edited.turn >= end:
                continue
            body = hook_body(edited)
            name = self._hooks.get(body, "")
            if not name:
                name = self._hooks[body] = self._fresh(f"edit_{word_for(edited.place)}")
                definitions.append(f"def {name}(grads):\n{body}")
            items.append(f"{at(edited.place)}.register_prehook({name})")
        for words, place in breakpoints:
            lines.append(f"# Breakpoint: {words}.")
            if place is not None:
                hook = "register_prehook(lambda grads: breakpoint())"
                lines.append(f"# {self._node(p, place)}.{hook}")
        place = p.around[p.real_engine]
        if not to_end and not p.inputs and place is not None:
            items += ["suppress(Stop)", f"{at(place)}.{way}(stop)"]
        return definitions, [*lines, with_statement(items, self._call(p, to_end))]

    def _call(self, p: Pass, to_end: bool) -> str:
        first = p.first or p
        roots, given = self._roots[first], self._given[first]
        options = ["retain_graph=True"] if p.retain_graph and not p.create_graph else []
        options += ["create_graph=True"] if p.create_graph else []
        several = len(roots) > 1
        listed = [f"[{', '.join(roots)}]" if several else roots[0]]
        if any(text != "None" for text in given):
            listed.append(f"[{', '.join(given)}]" if several else given[0])
        if not p.inputs:
            if several:
                return call("torch.autograd.backward", [*listed, *options])
            return call(f"{roots[0]}.backward", [*listed[1:], *options])
        got = p.found if len(p.found) == len(p.inputs) else (False,) * len(p.inputs)
        wanted = [n for n, g in zip(p.inputs, got, strict=True) if g or to_end]
        if not (all(got) or not to_end):
            options.insert(0, "allow_unused=True")
        inputs = ", ".join(self._tensor(p, name) for name in wanted)
        arguments = [listed[0], f"[{inputs}]", *listed[1:], *options]
        names = [self._fresh(f"gradient_of_{identifier(name)}") for name in wanted]
        self._found[p] = dict(zip(wanted, names, strict=True))
        target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        if len(names) > MAX_NAMED:
            target = self._fresh("gradients")
            self._found[p] = {name: f"{target}[{i}]" for i, name in enumerate(wanted)}
        return call("torch.autograd.grad", arguments, f"{target} = ")


def _cells_since(p: Pass) -> bool:
    """Whether a cell has run since the roots of a pass were made."""
    return bool(p.cells) or p.cells_before != (p.first or p).cells_before


def _emptied_for_good(p: Pass, zeroing: Zeroing) -> list[str]:
    """The tensors whose `.grad` a zero_grad() has emptied. Where the pass has gone back over a leaf
    since, that has put its `.grad` back."""
    return [
        name
        for name, (_, turn) in p.leaves.items()
        if p.inputs or turn is None or not zeroing.lowest <= turn < zeroing.position
    ]
