"""The roots of a backward pass: the loss of the model's batch, or tensors of the console."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from ...models.forward import ForwardPass
from ...protocol import WrittenBy
from ...recording.compiled import own_modules
from ...recording.threads import shared_below
from ...system.errors import LabError
from ..graph.provenance import Provenance, origins
from ..graph.reading import Graph, Node, read_graph
from .root_expressions import checked_gradient, checked_root, split_expressions
from .undo import leaves_held

if TYPE_CHECKING:
    from ...console.namespace import Namespace
    from ...system.control import Control


class Subject:
    """Roots with their gradients, and what the tensors under them are called.

    `shown` are the tensors whose `.grad` the window shows, by name: the leaves under the roots, and
    `retained`, the tensors on which `retain_grad()` was called. `names` maps names to tensors.
    """

    root = ""
    """The expression that the window asked for; empty for the model's loss."""
    path: str | None = None
    """The path of the subject's module in recordings; None for tensors of the console."""
    starts_empty = True
    """Whether a pass that does not accumulate begins with every `.grad` None."""
    roots: list[Tensor]
    gradient: list[Tensor | None] | None = None
    names: dict[str, Tensor]
    shown: dict[str, Tensor]
    retained: dict[str, Tensor]
    unreached: Mapping[str, Tensor] = MappingProxyType({})
    """Parameters and leaves that belong to the code or the modules of the roots and get no
    gradient: no path leads to them from a root, or they do not require grad."""
    results: Mapping[str, Tensor] = MappingProxyType({})
    """The named tensors that require grad and are not leaves."""
    provenance: Provenance
    starts: Sequence[tuple[str, str]] = ()
    """Each root and the gradient that backward starts with there, as Python; empty if the roots are
    not expressions of the console."""

    def defaults(self) -> AbstractContextManager[None]:
        """Sets the default dtype and device with which the user's code runs during a pass."""
        return nullcontext()

    def name_nodes(self, graph: Graph) -> None:
        """Label the nodes whose results have a name. Leaves have labels already."""
        for name, t in self.results.items():
            node = graph.get(get_gradient_edge(t).node)
            if node is not None:
                node.label = f"{node.label}, {name}" if node.label else name

    def held(self) -> dict[Any, Tensor]:
        """Tensors of forward that live: the results with a name, and the roots."""
        return {**self.results, **dict(enumerate(self.roots))}

    def results_of(self, node: Node) -> dict[str, Tensor]:
        """The tensors with a name that the node's operation returned in forward."""
        results = self.results.items()
        return {name: t for name, t in results if get_gradient_edge(t).node == node.fn}

    def blocks(self, graph: Graph) -> dict[int, str]:
        """Node id -> the block whose forward made it."""
        return {}

    def plain(self) -> tuple[list[Tensor], list[Tensor | None] | None]:
        """Roots and gradients for plain `torch.autograd.backward`, the reference. Their graph is
        one that the steps have not freed."""
        return self.roots, self.gradient

    def input(self, name: str) -> Tensor:
        """A tensor whose gradient alone is wanted. Raises LabError."""
        tensor = self.names.get(name)
        if tensor is None:
            raise LabError(
                f"There is no tensor named `{name}` for this pass.",
                hint=f"Choose some of {', '.join(list(self.shown)[:8])}.",
            )
        if not tensor.requires_grad:
            raise LabError(
                f"`{name}` does not require grad, so it has no gradient.",
                hint=f"Set {name}.requires_grad_() before it is used.",
            )
        return tensor

    def last_write(self, t: Tensor) -> WrittenBy | None:
        """The last recorded write into the storage of `t`."""
        return None


class ModelSubject(Subject):
    """The loss of a finished forward pass. Raises LabError when the pass is not at its end, or the
    loss has no graph."""

    def __init__(self, forward: ForwardPass) -> None:
        if forward.loss is None:
            raise LabError(
                "The forward pass has not reached the loss yet.", hint="Run it to its end."
            )
        if not forward.loss.requires_grad:
            raise LabError(
                "The loss has no graph to step through: nothing in the model can learn.",
                hint="Add a block with parameters, for example a Linear.",
            )
        self.forward, self.path = forward, ""
        self.roots = [forward.loss]
        self.names = dict(forward.state.named_parameters())
        self.shown, self.retained = self.names, {}
        self.unreached = without_gradient(self.names, leaves_of(read_graph(self.roots)))
        known = {id(p): name for name, p in self.names.items()}
        data = {id(forward.x): "x", id(forward.y): "y"}
        data.update({id(b): name for name, b in forward.state.named_buffers()})
        self.provenance = Provenance(
            [forward.recording],
            name_of=lambda t: known.get(id(t)) or data.get(id(t), ""),
            owner_of=lambda t: known.get(id(t), "").rpartition(".")[0],
        )

    def blocks(self, graph: Graph) -> dict[int, str]:
        return origins(graph, self.forward.sequence_ranges)

    def held(self) -> dict[Any, Tensor]:
        """As in `Subject`, with the tensors that the blocks returned."""
        ran = self.forward.values.items()
        return {**super().held(), **{(block, i): t for block, ts in ran for i, t in enumerate(ts)}}

    def plain(self) -> tuple[list[Tensor], None]:
        return [self.forward.plain()], None


class ConsoleSubject(Subject):
    """Tensors of the console. `root` holds one expression or several, separated by commas;
    `gradient` holds one for each, or none. They are evaluated once, like a cell.

    Raises LabError for a root that is not a tensor or has no graph, and for a gradient that does
    not fit; also what the expressions raise.
    """

    def __init__(
        self, namespace: Namespace, control: Control, root: str, gradient: str = ""
    ) -> None:
        self.root, self.starts_empty = root, False
        self._namespace = namespace
        self._expressions = split_expressions(root)
        values = [namespace.evaluate(text, control) for text in self._expressions]
        self.roots = [
            checked_root(v, text) for v, text in zip(values, self._expressions, strict=True)
        ]
        texts = split_expressions(gradient) if gradient.strip() else ()
        given = self._root_gradients(texts, [namespace.evaluate(text, control) for text in texts])
        self.gradient = [grad for grad, _ in given] if texts else None
        self.starts = [(r, code) for r, (_, code) in zip(self._expressions, given, strict=True)]
        self.name_tensors()

    def name_tensors(self) -> None:
        """Find names for the tensors under the roots, and the calls that made the graph."""
        namespace = self._namespace
        held = namespace.reached().tensors()
        self.names = dict(reversed(held.items()))  # a tensor's shortest name comes last and wins
        name_of = {id(t): name for name, t in self.names.items()}
        owners = _owners(namespace.variables)
        self.provenance = Provenance(
            namespace.recordings.kept,
            name_of=lambda t: name_of.get(id(t), ""),
            owner_of=lambda t: owners.get(id(t), ""),
            shared_below=shared_below(),
        )
        named = {name_of[id(t)]: t for t in held.values()}
        self.results = {n: t for n, t in named.items() if t.requires_grad and not t.is_leaf}
        graph = read_graph(self.roots, names=self.names)
        retaining = ((name, t) for name, t in self.results.items() if t.retains_grad)
        self.retained = {n: t for n, t in retaining if graph.get(get_gradient_edge(t).node)}
        within = {name_of.get(id(t), ""): t for t in _checkpoint_leaves(graph)}
        within.pop("", None)
        self.shown = {**leaves_of(graph), **within, **self.retained}
        self.unreached = self._unreached(graph, named, owners)

    def _unreached(
        self, graph: Graph, named: dict[str, Tensor], owners: dict[int, str]
    ) -> dict[str, Tensor]:
        """Parameters of the modules that have some under the roots, and leaves whose names stand in
        the cells that made the graph."""
        reached = {id(t) for t in self.shown.values()}
        others = {
            name: t
            for name, t in named.items()
            if t.is_leaf
            and (t.requires_grad or isinstance(t, nn.Parameter))
            and id(t) not in reached
        }
        if not others:
            return others
        modules = {owners[key].partition(".")[0] for key in reached if key in owners}
        calls = filter(None, map(self.provenance.call, graph.nodes))
        cells = {call.place[0] for call in calls if call.place is not None}
        words = {
            word
            for cell in cells
            for word in re.findall(r"[^\W\d]\w*", "".join(linecache.getlines(cell)))
        }
        return {
            name: t
            for name, t in others.items()
            if name in words or owners.get(id(t), "").partition(".")[0] in modules
        }

    def defaults(self) -> AbstractContextManager[None]:
        return self._namespace.users_defaults()

    def last_write(self, t: Tensor) -> WrittenBy | None:
        return self._namespace.writes.last_write(t)

    def _root_gradients(
        self, texts: tuple[str, ...], values: list[Any]
    ) -> list[tuple[Tensor | None, str]]:
        """The gradient that backward starts with at each root, and the same as Python."""
        if not texts:
            for root, text in zip(self.roots, self._expressions, strict=True):
                if root.numel() != 1:
                    raise LabError(
                        f"`{text}` has shape {tuple(root.shape)}: backward starts from one number, "
                        "or from a gradient for each of these.",
                        hint=f"Give the gradient torch.ones_like({text}), or take {text}.sum().",
                    )
            return [(None, "None")] * len(self.roots)
        if len(values) != len(self.roots):
            raise LabError(
                f"{len(self.roots)} roots need as many gradients; there are {len(values)}.",
                hint="Write one for each, with commas between; None for a scalar's 1.",
            )
        return list(map(checked_gradient, values, texts, self.roots, self._expressions))


class GradientSubject(Subject):
    """The gradient that a pass with `create_graph` has computed for the tensor `name`, with a graph
    of its own. `value` is the gradient that backward starts with (ones if None), `text` its
    expression. Raises LabError if the gradient has no graph, or `value` does not fit."""

    def __init__(
        self,
        before: Subject,
        name: str,
        gradient: Tensor | None,
        value: Any = None,
        text: str = "",
    ) -> None:
        if gradient is None or not gradient.requires_grad:
            raise LabError(
                f"The gradient of {name} has no graph of its own."
                if gradient is not None
                else f"{name} has no gradient yet.",
                hint="Start the pass with create_graph, and run it until the gradient is there.",
            )
        self.root = f"gradient of {name}"
        self.roots = [gradient]
        grad: Tensor | None = torch.ones_like(gradient, requires_grad=False)
        if value is not None:
            grad, _ = checked_gradient(value, text, gradient, name)
        self.gradient = [grad]
        self._before, self.path = before, before.path
        self.names, self.provenance = before.names, before.provenance
        graph = read_graph(self.roots, names=self.names)
        self.shown, self.retained = leaves_of(graph), {}

    def defaults(self) -> AbstractContextManager[None]:
        return self._before.defaults()


def _checkpoint_leaves(graph: Graph) -> list[Tensor]:
    """The leaves used inside of reentrant checkpoints. They are not in the graph: the checkpoint's
    own backward adds to their `.grad`."""
    known = {id(node.variable) for node in graph.nodes if node.is_leaf}
    held = [t for node in graph.nodes if node.is_custom for t in leaves_held(node.fn)]
    return [t for t in held if id(t) not in known]


def leaves_of(graph: Graph) -> dict[str, Tensor]:
    """The leaves of a graph by name."""
    leaves = [(n.label or f"leaf {n.id}", n.variable) for n in graph.nodes if n.is_leaf]
    return {name: t for name, t in leaves if t is not None}


def without_gradient(
    parameters: Mapping[str, Tensor], leaves: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The parameters that are not among the leaves of a graph."""
    reached = {id(t) for t in leaves.values()}
    return {name: p for name, p in parameters.items() if id(p) not in reached}


def _owners(variables: dict[str, Any]) -> dict[int, str]:
    """id of a parameter -> the path of the module that holds it: `net.layers.0`."""
    found: dict[int, str] = {}
    for name, value in list(variables.items()):
        if isinstance(value, nn.Module) and isinstance(name, str) and not name.startswith("_"):
            for path, module, _ in own_modules(value):
                for parameter in module.parameters(recurse=False):
                    found.setdefault(id(parameter), f"{name}.{path}" if path else name)
    return found
