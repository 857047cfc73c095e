"""The model of blocks as a subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, fx, nn
from torch.optim import Optimizer

from ...datasets.load import load_dataset
from ...models.check import check, require_runnable
from ...models.live import LiveModel
from ...project import catalogue
from ...project.document import Model
from ...project.edits import loss_call
from ...protocol import StepSnapshot
from ...system.errors import LabError
from ...training.objectives.catalogue_data import CatalogueData
from ...training.objectives.objective import CatalogueObjective, Objective
from .subject import Drawn, Subject, make_modules_current, require_agreement

if TYPE_CHECKING:
    from ...exporting.examples import Example
    from ...exporting.loader_lines import LoaderLines
    from ...exporting.package import Code
    from ...models.forward import ForwardPass

SAMPLES = 4
"""Batch size of the inputs that stand for those of a model of blocks."""


@dataclass
class CanvasModel(Subject):
    """The blocks of `model`. Without an `own` model it is the live one."""

    model: Model
    own: LiveModel | None = None
    _python: str = field(default="", init=False)

    @property
    def live(self) -> LiveModel:
        if self.own is not None:
            return self.own
        return self.lab.models.live_model(self.model, self.training.seed)

    @property
    def module(self) -> fx.GraphModule:
        return self.live.module

    def take(self) -> nn.Module:
        return self.lab.canvas.take()

    def check(self) -> None:
        self._python = require_runnable(self.model, self.training).code

    def forget_weights(self) -> None:
        self.live.reset(self.model, self.training.seed)

    def fresh(self) -> CanvasModel:
        return replace(self, own=LiveModel(self.model, self.training.seed))

    def on_trial(self) -> CanvasModel:
        return self.fresh()

    @property
    def saved_beside(self) -> bool:
        return True

    def forward(self) -> ForwardPass:
        return self.lab.models.require_forward()

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.lab.console.namespace.variables

    def optimizers(self) -> dict[str, Optimizer]:
        """Those that cells have made for it: without any, Train's own feeds it."""
        own = set(map(id, self.module.parameters()))
        return {
            name: optimizer
            for name, optimizer in super().optimizers().items()
            if any(id(p) in own for group in optimizer.param_groups for p in group["params"])
        }

    def console_names(self) -> tuple[list[str], str]:
        return list(self.training.data.loading.given.values()), ""

    def value(self, expression: str, is_look: bool = False) -> object:
        require_agreement(self.lab, expression)
        make_modules_current(self.lab, expression)  # the canvas has none of its own
        return super().value(expression, is_look)

    @property
    def has_data(self) -> bool:
        return True

    def data(self) -> CatalogueData:
        return CatalogueData(self.training, self.given_objects())

    def objective(self, *, is_look: bool = False) -> CatalogueObjective:
        loss = loss_call(self.model, self.training)
        return CatalogueObjective(self.module, self.training, *loss, self.given_objects())

    def usual_step(self) -> StepSnapshot:
        raise LabError("The canvas has its own data set and loss.", hint="Set them under Train.")

    @property
    def python(self) -> str:
        return self._python or check(self.model, self.training).code

    def example(self) -> Example:
        from ...exporting.examples import example_of

        return example_of(tuple(example_inputs(self.live)), {})

    def package_code(self, still: nn.Module, example: Example) -> tuple[Code, str]:
        from ...exporting import package

        return package.of_blocks(self.python), ""

    def script(self, objective: Objective, drawn: Drawn, path: Path) -> tuple[str, dict[str, Any]]:
        from ...exporting.train_script import data_of, script_of

        loss, params = loss_call(self.model, self.training)
        dataset, loader = load_dataset(self.training.data), self._loader(objective)
        text = script_of(
            self.python, self.training, loss, params, dataset, path, self.module, loader
        )
        return text, data_of(dataset)

    def _loader(self, objective: Objective) -> LoaderLines | None:
        """The DataLoader with objects of the console, for a script; None without any. Raises
        LabError if the cells that ran do not tell how they are made."""
        if not self.training.data.loading.given:
            return None
        from ...exporting.loader_lines import loader_lines

        found = self.given_objects()
        samplers = {"sampler": found.sampler, "batch_sampler": found.batch_sampler}
        made = {name: not isinstance(value, Iterable) for name, value in samplers.items()}
        cells = self.lab.console.namespace.journal.sources
        return loader_lines(self.training, cells, made, objective.batches_per_epoch)

    def prove(self, script: str, path: Path) -> None:
        from ...exporting.code_export import proved

        proved(script, self.module, example_inputs(self.live), path)


def example_inputs(live: LiveModel) -> list[Tensor]:
    """One tensor (SAMPLES, *shape) for each input of the model, in the order of its arguments. They
    hold normal numbers, or 0 and 1 for integers, drawn from a seed of their own."""
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for block_id in live.blocks.order:
        block = live.model.block(block_id)
        if block.kind != "Input":
            continue
        values = catalogue.arguments(block)
        assert isinstance(values["shape"], tuple)
        shape = (SAMPLES, *(int(n) for n in values["shape"]))
        dtype = getattr(torch, str(values["dtype"]))
        if dtype.is_floating_point:
            inputs.append(torch.randn(shape, generator=generator, dtype=dtype))
        else:
            inputs.append(torch.randint(2, shape, generator=generator, dtype=dtype))
    return inputs
