"""Answers why a tensor's `.grad` is None."""

from __future__ import annotations

from collections.abc import Iterator

from ..autograd.backward.roots import ConsoleSubject, Subject
from ..autograd.graph.missing import MissingGradients, why_of_itself
from ..autograd.graph.reading import read_graph
from ..lab import Lab
from ..lab.pass_control import namespace_of
from ..protocol import Snapshot, WhyNoGradientCommand, WhyNoGradientSnapshot


def why_no_gradient(lab: Lab, command: WhyNoGradientCommand) -> Iterator[Snapshot]:
    """Answer with a WhyNoGradientSnapshot. Raises LabError if the name is not that of a tensor, or
    the root has no graph."""
    namespace = lab.console.of(command.example) if command.example else namespace_of(lab)
    name, root = command.name.strip(), command.root.strip()
    shown = None if command.example or root else lab.backward.under_way
    named = {} if shown is None else shown.subject.names  # of a model, its parameters
    tensor = named[name] if name in named else namespace.tensor(name)
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        yield WhyNoGradientSnapshot(
            reason="has_gradient", text=f"`{name}.grad` is there.", hint=f"Look at {name}.grad."
        )
        return
    subject: Subject | None = None if shown is None else shown.subject
    answer = why_of_itself(name, tensor)
    if answer is None and root:
        subject = ConsoleSubject(namespace, lab.control, root, "0")
    if answer is None and subject is not None:
        graph = read_graph(subject.roots, names=subject.names)
        missing = MissingGradients(graph, subject.provenance, subject.names, subject.root or "loss")
        answer = missing.why(name, tensor)
    yield answer or WhyNoGradientSnapshot(
        reason="not_yet",
        text=f"`{name}` is a leaf that requires grad: backward from something computed from it"
        " will fill its .grad.",
        hint="Name the tensor that backward is called on, to see whether its graph has a path"
        f" to {name}.",
    )
