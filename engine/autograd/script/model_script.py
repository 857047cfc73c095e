"""The part of a script that computes the model's loss: the model's code, batch and weights."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import LabError
from ...models.code import write
from ...models.forward import ForwardPass
from ...project import catalogue
from ...training.components.losses import loss_source, target_source

_MAIN = 'if __name__ == "__main__":'


class ModelScript:
    """Writes the code that computes the loss of `forward`. `fresh` returns an unused name in the
    script, `data` is the variable of the loaded file. Raises LabError for a loss that cannot be
    written as code."""

    def __init__(self, forward: ForwardPass, fresh: Callable[[str], str], data: str) -> None:
        self._forward, self._data = forward, data
        self._class, self.model = fresh("Model"), fresh("model")
        self._x, self._y, self._device = fresh("x"), fresh("y"), fresh("device")
        self.loss = f"{fresh('run_forward')}()"

    def blocks(self) -> list[list[str]]:
        """The model's class, the model with its batch, and the function that computes the loss."""
        file = write(self._forward.document, {}).text
        body = file.partition("class Model")[2].partition(_MAIN)[0].rstrip()
        on, device = "", self._forward.x.device.type
        made = []
        if device != "cpu":
            on = f".to({self._device})"
            chosen = f'"{device}" if torch.{device}.is_available() else "cpu"'
            made = [
                f"# The passes ran on {device}; on another device the last bits differ.",
                f"{self._device} = torch.device({chosen})",
            ]
        made += [
            f"{self.model} = {self._class}(){on}",
            f'{self._x} = {self._data}["x"]{on}',
            f'{self._y} = {self._data}["y"]{on}',
        ]
        run = [
            f"def {self.loss}:",
            '    """The loss, each time from the same weights, buffers and random numbers."""',
            f'    {self.model}.load_state_dict({self._data}["weights"])',
            f"    torch.manual_seed({self._forward.seed})",
            *(f"    {line}" for line in self._loss_lines()),
        ]
        return [[f"class {self._class}{body}"], made, run]

    def parameter(self, name: str) -> str:
        """The expression of a parameter."""
        if all(part.isidentifier() for part in name.split(".")):
            return f"{self.model}.{name}"
        return f'{self.model}.get_parameter("{name}")'

    def holds(self, names: Iterable[str]) -> bool:
        """Whether `names` are the names of all parameters of the model."""
        return set(names) == dict(self._forward.module.named_parameters()).keys()

    def values(self) -> dict[str, object]:
        """The data that the script loads: weights, the buffers before forward, and the batch. All
        are on the CPU, so that they load on any machine."""
        state = self._forward.module.state_dict()
        state.update({k: b for k, b in self._forward.buffers_before().items() if k in state})
        return {
            "weights": {name: tensor.detach().cpu() for name, tensor in state.items()},
            "x": self._forward.x.cpu(),
            "y": self._forward.y.cpu(),
        }

    def _loss_lines(self) -> list[str]:
        function, prediction = self._forward.loss_function, f"{self.model}({self._x})"
        if isinstance(function, nn.CrossEntropyLoss) and function.weight is None:
            given = _arguments(function, ignore_index=-100, reduction="mean", label_smoothing=0.0)
            return [f"return F.cross_entropy({prediction}, {self._y}{given})"]
        kind = f"nn.{type(function).__name__}"
        if kind in catalogue.losses():
            schema = catalogue.losses()[kind].params
            params = {p.name: _plain(getattr(function, p.name)) for p in schema}
            given = {p.name: params[p.name] for p in schema if params[p.name] != p.default}
            return [
                f"prediction, target = {prediction}, {self._y}",
                *target_source(kind, self._forward.y.is_floating_point()),
                f"return {loss_source(kind, given)}(prediction, target)",
            ]
        name = getattr(function, "__name__", "")
        if getattr(functional, name, None) is function:
            return [f"return F.{name}({prediction}, {self._y})"]
        raise LabError(
            "This loss cannot be written as Python.", hint="Use a loss of the catalogue."
        )


def _arguments(function: object, **defaults: object) -> str:
    """The arguments that differ from their defaults: `, reduction="sum"`."""
    values = {name: getattr(function, name) for name in defaults}
    return "".join(
        f', {name}="{value}"' if isinstance(value, str) else f", {name}={value!r}"
        for name, value in values.items()
        if value != defaults[name]
    )


def packed(values: dict[str, object]) -> bytes:
    """The bytes of a file that torch.load reads with weights_only; empty for no values."""
    buffer = io.BytesIO()
    if values:
        torch.save(values, buffer)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    """A weight of a loss as numbers."""
    return tuple(value.tolist()) if isinstance(value, Tensor) else value
