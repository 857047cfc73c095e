"""The texts and numbers on the boxes and links of a graph's picture."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from engine.protocol import GraphNode, GraphSnapshot, StaleTensor
from widgets.boxes.boxes import Box, VisibleGraph
from widgets.boxes.graph_words import leaves_of, words_of
from widgets.boxes.numbers import GraphNumbers, Shown
from widgets.boxes.operation_words import CUTS, rule
from widgets.boxes.sums import WAITING, BoxSums
from widgets.text import format_bytes, format_shape


def node_title(node: GraphNode) -> str:
    """The name of a leaf's parameter, or torch's name of an operation's grad_fn."""
    return node.label if node.kind == "leaf" and node.label else node.name


def node_words(node: GraphNode, is_autograd: bool = True) -> str:
    """The second line: the code that made the node, or the leaf's shape. Leaves of a program have
    the name of what they are to it: parameter, buffer, input."""
    shape = format_shape(node.outputs[0].shape) if node.outputs else ""
    if node.kind == "leaf":
        return " · ".join(filter(None, ("leaf" if is_autograd else node.name, shape)))
    return node.block or shape


def variable_of(node: GraphNode) -> str:
    """The names of an operation's result: its label is `h = mul`."""
    return node.label.rpartition(" = ")[0] if node.kind == "operation" else ""


def _equation(node: GraphNode, value: Shown) -> str:
    """`z = 5`: the variable that holds what a node's operation returned, or a leaf, and the
    numbers in it."""
    if node.kind == "leaf":
        return f"leaf = {value.text}"
    return f"{variable_of(node) or node.op} = {value.text}"


def count_of(nodes: int) -> str:
    return f"{nodes:,} node{'s' * (nodes != 1)}"


class GraphFacts(BoxSums):
    """The sums of a picture's boxes, and their texts. `numbers` are those of the nodes."""

    def __init__(
        self, graph: GraphSnapshot, visible: VisibleGraph, names: Mapping[str, str]
    ) -> None:
        """`names` are the blocks' names by id."""
        super().__init__(graph, visible)
        self._names = names
        self.words = words_of(graph)
        self._is_autograd = graph.of == "autograd"
        self.numbers = GraphNumbers()

    # -- words -----------------------------------------------------------------------------------

    def title(self, index: int) -> str:
        box = self.visible.boxes[index]
        if box.kind == "node":
            return self._node_title(box)
        return self._names.get(box.title, box.title)

    def _node_title(self, box: Box) -> str:
        """The title of a node; a leaf's path is relative to the module around its box."""
        node, title = self._node(box), node_title(self._node(box))
        around = self._module_around(box)
        if node.kind != "leaf" or not around or not _is_in(node.module, around):
            return title
        inner = node.module.removeprefix(around).removeprefix(".")
        return ".".join(filter(None, (inner, title.rpartition(".")[2])))

    def _module_around(self, box: Box) -> str:
        """The path of the innermost module whose open box is around a box."""
        while box.parent is not None:
            box = self.visible.boxes[box.parent]
            if box.kind == "module":
                return box.key.partition("@")[0]
        return ""

    def second_line(self, index: int) -> str:
        """The code that made a node (unless a box around it shows that) or the node's shape; a
        module's class; the item that is repeated."""
        box = self.visible.boxes[index]
        return self._node_line(box) if box.kind == "node" else box.subtitle

    def third_line(self, index: int) -> str:
        """The numbers of nodes and saved bytes in a closed box, in words."""
        box = self.visible.boxes[index]
        kept = self.saved_bytes[index]
        words = (count_of(box.nodes), f"keeps ≤ {format_bytes(kept)}" if kept else "")
        return "" if self.atom[index] else " · ".join(filter(None, words))

    def _node_line(self, box: Box) -> str:
        node = self._node(box)
        value = self.numbers.value(node.id)
        if value is not None and value.norm is None:
            return _equation(node, value)
        if box.parent is not None and node.kind != "leaf" and node.outputs:
            words = format_shape(node.outputs[0].shape)
        else:
            words = node_words(node, self._is_autograd)
            words = self._names.get(words, words)
        return " · ".join(filter(None, (variable_of(node), words)))

    def tells_value(self, index: int) -> bool:
        """Whether the second line tells all numbers of what a node's operation returned."""
        value = self._number(index, self.numbers.value)
        return value is not None and value.norm is None

    def value(self, index: int) -> Shown | None:
        """The norm of what a node's operation returned; a tiny tensor is in the second line."""
        value = self._number(index, self.numbers.value)
        return value if value is not None and value.norm is not None else None

    def gradient(self, index: int) -> Shown | None:
        """A leaf's `.grad`, or the gradient that another node is given."""
        box = self.visible.boxes[index]
        if box.kind != "node":
            return None
        grad = self._number(index, self.numbers.grad)
        if grad is not None:
            return grad
        waits = self.states[self._node(box).id] == WAITING
        return None if waits else self._number(index, self.numbers.incoming)

    def gradient_word(self, index: int) -> str:
        """`.grad` or `grad`, to stand before `gradient`; nothing before a norm, which has a
        mark."""
        if self._number(index, self.numbers.grad) is not None:
            return ".grad"
        gradient = self._number(index, self.numbers.incoming)
        return "grad" if gradient is not None and gradient.norm is None else ""

    def link_gradient(self, link: int) -> Shown | None:
        """The gradient that has gone along a link of one edge."""
        edges = self.visible.links[link].edges
        if len(edges) != 1 or not self.passed[link]:
            return None
        edge = self.graph.edges[edges[0]]
        return self.numbers.outgoing(edge.source, edge.input)

    def numbered(self, boxes: Collection[int], links: Collection[int]) -> frozenset[int]:
        """The nodes whose numbers are on these boxes and links."""
        nodes = {self.visible.boxes[box].node for box in boxes if self.atom[box]}
        for link in links:
            edges = self.visible.links[link].edges
            if len(edges) == 1:
                nodes.add(self.graph.edges[edges[0]].source)
        return frozenset(node for node in nodes if node is not None)

    def _number(self, index: int, of: Callable[[int], Shown | None]) -> Shown | None:
        box = self.visible.boxes[index]
        return of(box.node) if box.kind == "node" and box.node is not None else None

    def badge(self, index: int) -> str:
        """`×12` on a repeat, else nothing."""
        repeat = self.visible.boxes[index].repeat
        return f"×{repeat:,}" if repeat > 1 else ""

    def frame_words(self, index: int) -> str:
        """The words beside an open box's title."""
        box = self.visible.boxes[index]
        nodes = count_of(box.nodes)
        if box.kind == "repeat":
            return f"{self.badge(index)} · {nodes}"
        return " · ".join(filter(None, (box.subtitle, nodes)))

    def link_text(self, link: int) -> str:
        """The shape of the gradient on a link, the output it leads to if there are several, and the
        number of edges that it bundles."""
        found = self.visible.links[link]
        count = f"×{len(found.edges)}" if len(found.edges) > 1 else ""
        return "  ".join(filter(None, (self.link_output(link), found.text, count)))

    def link_output(self, link: int) -> str:
        """The output of forward that a link leads to, if its node has several."""
        found = self.visible.links[link]
        target = self.visible.boxes[found.target]
        if target.kind != "node" or not found.edges or len(self._node(target).outputs) < 2:
            return ""
        numbers = sorted({self.graph.edges[edge].output for edge in found.edges})
        return "output " + ", ".join(map(str, numbers))

    def _node(self, box: Box) -> GraphNode:
        assert box.node is not None
        return self.graph.nodes[box.node]

    def spoken(self, index: int) -> str:
        """A box in one line, for screen readers and the status."""
        words = [self.title(index), self.second_line(index), self.third_line(index)]
        gradient = self.gradient(index)
        if gradient is not None:
            words.append(f"{self.gradient_word(index) or 'gradient'} {gradient.text}")
        return ", ".join(filter(None, words))

    def tooltip(self, index: int) -> str:
        """The tooltip of a box: its name, its operation, its saved tensors."""
        box = self.visible.boxes[index]
        if box.kind == "node":
            return self._node_tooltip(index, self._node(box))
        if box.kind == "cut":
            return self._cut_tooltip(box)
        return self._module_tooltip(index, box)

    def _node_tooltip(self, index: int, node: GraphNode) -> str:
        lines = [f"{self.title(index)} · {self.second_line(index)}", rule(node, self.graph)]
        shapes = ", ".join(
            f"{format_shape(o.shape)} {o.dtype}" for o in node.outputs if o.dtype != "unknown"
        )
        if shapes:
            lines.append(f"{self.words.gives} {shapes} {node.device}".rstrip())
        lines += self.numbers.lines(node.id)
        if node.saved_bytes:
            lines.append(f"Keeps {format_bytes(node.saved_bytes)} from forward")
        lines += [stale_words(save) for save in self.graph.stale if save.node == node.id]
        if node.freed:
            lines.append(FREED)
        if node.sequence >= 0 and self._is_autograd:
            lines.append(f"Sequence number {node.sequence:,}")
        if node.module:
            made = "Belongs to" if node.kind == "leaf" else "Made in"
            lines.append(f"{made} {node.module}{self._class_of(node.module)}")
        if node.aten:
            lines.append(f"torch ran {node.aten}")
        if node.source:
            lines.append(f"{node.source.file}, line {node.source.line}: {node.source.text}")
        return "\n".join(lines)

    def _cut_tooltip(self, box: Box) -> str:
        place = box.key.removeprefix("!").split(".")
        cut = next(
            (c for c in self.graph.cuts if [str(c.node), str(c.input)] == place),
            None,
        )
        is_data = cut is not None and cut.reason in ("input", "integer")
        lines = ["Data" if is_data else "Cut: the gradient goes no further on this way"]
        if cut is not None:
            lines.append(CUTS[cut.reason])
            if cut.label and not is_data:
                lines.append(f"It would have gone to {cut.label}")
            if cut.source:
                lines.append(f"{cut.source.file}, line {cut.source.line}: {cut.source.text}")
        return "\n".join(lines)

    def _module_tooltip(self, index: int, box: Box) -> str:
        lines = [f"{box.title} · {box.subtitle}" if box.subtitle else box.title]
        if box.kind == "module":
            lines.append(self.words.inside)
        elif box.kind == "repeat":
            lines.append(f"The same {box.repeat} times over, one after another")
        leaves = leaves_of(int(self.leaves[index]), self.words)
        lines.append(f"{count_of(box.nodes)} ({leaves})")
        if self.saved_bytes[index]:
            lines.append(
                f"They keep at most {format_bytes(self.saved_bytes[index])} from forward"
                " (what several keep is counted at each)"
            )
        if self.executed[index]:
            lines.append(f"{int(self.executed[index]):,} of {box.nodes:,} have run")
        if self.stale[index]:
            lines.append("Stale: a tensor that one of them kept was overwritten")
        if self.freed[index]:
            lines.append("Freed: a backward pass has let go of what some of them kept")
        lines.append("Double click or Enter closes it" if box.open else "Double click opens it")
        return "\n".join(lines)

    def _class_of(self, module: str) -> str:
        name = self.graph.modules.get(module)
        return f" ({name})" if name else ""


FREED = (
    "Freed: a backward pass has let go of what it kept, so another cannot run it. retain_graph=True"
    " would have kept it"
)


def stale_words(save: StaleTensor) -> str:
    """`Stale: y was saved at version 0 and is at 1: add_ wrote it, <cell 1>, line 4: y.add_(1)`"""
    text = (
        f"Stale: its saved tensor {save.saved!r} was saved at version {save.saved_version} and is"
        f" at {save.version}, so backward will refuse"
    )
    if save.source is not None:
        wrote = f"{save.op} wrote it" if save.op else "written"
        text += f". {wrote}: {save.source.file}, line {save.source.line}: {save.source.text}"
    return text


def _is_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}.")
