"""The root of a backward pass of a module of the user's code: the loss of one step."""

from __future__ import annotations

from torch import Tensor, nn

from ...recording.compiled import own_path, unwrapped
from ...recording.recording import Recording
from ...system.errors import LabError
from ..graph.provenance import Provenance
from ..graph.reading import read_graph
from .roots import Subject, leaves_of, without_gradient


class StepSubject(Subject):
    """The loss that a step of the module returned. `recording` has the step's calls. Names are
    those of `named_parameters`. Raises LabError for a loss without a graph."""

    root = "loss"

    def __init__(self, module: nn.Module, loss: Tensor, recording: Recording) -> None:
        if not loss.requires_grad:
            raise LabError(
                "The loss has no graph to step through: nothing that it depends on can learn.",
                hint="Do not detach it, and let some parameters require grad.",
            )
        self.roots, self.module = [loss], module
        self.path = module_names(module)[module]
        self.names = {own_path(name): p for name, p in module.named_parameters()}
        self.retained = {}
        owners = {
            id(p): name
            for part, name in module_names(module).items()
            for p in part.parameters(recurse=False)
        }
        known = {id(p): name for name, p in self.names.items()}
        known.update({id(b): own_path(name) for name, b in module.named_buffers()})
        self.provenance = Provenance(
            [recording],
            name_of=lambda t: known.get(id(t), ""),
            owner_of=lambda t: owners.get(id(t), ""),
        )
        self.shown = leaves_of(read_graph(self.roots, names=self.names))
        self.unreached = without_gradient(self.names, self.shown)


def module_names(module: nn.Module) -> dict[nn.Module, str]:
    """The names of the module and of those inside in the recording of a step: `Net`,
    `Net.layers.0`."""
    title = type(unwrapped(module)).__name__
    paths = ((own_path(path), part) for path, part in module.named_modules())
    return {part: f"{title}.{path}" if path else title for path, part in paths}
