"""The parameters of a model in groups, as a set-up has them: options of their own, or frozen."""

from __future__ import annotations

from torch import nn

from ...project import catalogue
from ...project.document import ParamGroup, ParamValue, TrainingSetup
from ...system.errors import LabError
from ...system.private_torch import NormBase
from ..components.optimizers import Group

_NORMS = (
    NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)
_ONE_RATE = ("lr_scheduler.OneCycleLR", "lr_scheduler.CyclicLR")
"""Schedulers that set the rate of all groups."""


class Groups:
    """Which parameters of `model` have which options. `named` are those that learn, by name; a
    set-up may freeze some of them.

    Of the modules of a set-up that hold a parameter, the innermost decides.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def of(self, setup: TrainingSetup) -> list[Group]:
        """The groups of a set-up, in the order of torch's `param_groups`: first the parameters
        without options of their own. Frozen ones are among them. Raises LabError for a module that
        the model does not have, or if nothing would learn."""
        self._check(setup)
        return list(self._sorted(setup).values())

    def modules(self, setup: TrainingSetup) -> list[str]:
        """The modules of these groups, in the same order; "" for that of all other parameters."""
        places = (place for place, _ in self._sorted(setup))
        return [setup.groups[place - 1].module if place else "" for place in places]

    def _sorted(self, setup: TrainingSetup) -> dict[tuple[int, bool], Group]:
        """The groups by (1 + place among those of the set-up, whether without decay)."""
        known = catalogue.optimizers().get(setup.optimizer, ())
        has_decay = any(option.name == "weight_decay" for option in known)
        found: dict[tuple[int, bool], Group] = {}
        for name, parameter in self.named.items():
            place, group = _group_of(name, setup)
            bare = setup.decay == "weights" and has_decay and self._has_no_decay(name)
            options: dict[str, ParamValue] = {} if group is None else dict(group.params)
            if bare:
                options.setdefault("weight_decay", 0.0)
            found.setdefault((place, bare), Group(options, [])).parameters.append(parameter)
        return {key: found[key] for key in sorted(found)}

    def frozen(self, setup: TrainingSetup) -> list[str]:
        """The names of the frozen parameters of a set-up."""
        groups = {name: _group_of(name, setup)[1] for name in self.named}
        return [name for name, group in groups.items() if group is not None and group.frozen]

    def freeze(self, setup: TrainingSetup) -> None:
        """Let the frozen parameters of a set-up get no gradient, and all others one."""
        frozen = set(self.frozen(setup))
        for name, parameter in self.named.items():
            parameter.requires_grad_(name not in frozen)
            if name in frozen:
                parameter.grad = None

    def thaw(self) -> None:
        """Let all parameters get a gradient again, as before the first `freeze`."""
        for parameter in self.named.values():
            parameter.requires_grad_(True)

    def _has_no_decay(self, name: str) -> bool:
        """Whether it is a bias, or of a norm."""
        path, _, last = name.rpartition(".")
        return "bias" in last or isinstance(self._model.get_submodule(path), _NORMS)

    def _check(self, setup: TrainingSetup) -> None:
        paths = {name for name, _ in self._model.named_modules()}
        for group in setup.groups:
            if group.module not in paths:
                raise LabError(
                    f"The model has no module “{group.module}” to have options of its own.",
                    hint="Remove it from the modules with their own options.",
                )
            if group.params.keys() & {"lr"} and setup.schedule.kind in _ONE_RATE:
                raise LabError(
                    f"{setup.schedule.kind.partition('.')[2]} sets one rate for all parameters:"
                    f" “{group.module}” cannot have its own.",
                    hint="Choose another schedule, or remove that lr.",
                )
        if self.named and len(self.frozen(setup)) == len(self.named):
            raise LabError("All parameters are frozen: nothing would learn.", hint="Unfreeze one.")


def _group_of(name: str, setup: TrainingSetup) -> tuple[int, ParamGroup | None]:
    """(1 + place among the groups, group) of a parameter; (0, None) if it has none."""
    best: tuple[int, ParamGroup | None] = (0, None)
    for place, group in enumerate(setup.groups, 1):
        inside = not group.module or name.startswith(f"{group.module}.")
        if inside and (best[1] is None or len(group.module) >= len(best[1].module)):
            best = place, group
    return best
