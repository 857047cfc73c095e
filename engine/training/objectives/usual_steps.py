"""Steps for the usual tasks, written as Python for a model and its first batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import LabError
from ...signatures import required_parameters
from ...trial import on_trial
from .batches import tensors_in
from .compared_steps import compared

_WRITE = "Write the step yourself: def step(batch): ... return loss."
MANY_CLASSES = 10
_TARGETS = ("labels", "label", "target", "targets", "y")
"""A batch that is a dict has its target under one of these keys."""


_R2 = """

class R2:
    # The share of the variance of y that is explained, over a whole epoch
    sums = 0

    def reset(self):
        self.sums = 0

    def update(self, prediction, y):
        y, error = y.cpu().double(), (prediction - y).cpu().double()
        self.sums = self.sums + torch.stack([torch.ones_like(y), y, y**2, error**2]).sum(1)

    def compute(self):
        count, total, squares, errors = self.sums
        return (1 - errors / (squares - total**2 / count)).mean()


r2 = R2()
"""


@dataclass(frozen=True)
class UsualStep:
    """`task` is its name ("classification"), `source` the Python of `def step(batch)`."""

    task: str
    source: str


@dataclass(frozen=True)
class _Parts:
    """A batch taken apart: the line that does it in source ("" if none is needed), the model's
    arguments in source and as values, and the target (None without one)."""

    line: str
    call: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    target: Any


def write_step(model: nn.Module, batch: Any) -> UsualStep:
    """The step of the task that the batch and the model's prediction on it fit.

    The model runs once, in eval mode and without gradients, and is left as it was. Raises LabError
    if no usual task fits, or the model cannot take the batch.
    """
    if _is_triplet(batch) and isinstance(_predicted(model, (batch[0],), {}), Tensor):
        lines = [
            "anchor, positive, negative = batch",
            "loss = F.triplet_margin_loss(model(anchor), model(positive), model(negative))",
            'return {"loss": loss}',
        ]
        return UsualStep("triplets", _source(lines))
    if _takes(model) == 1:
        found = compared(batch, lambda x: _predicted(model, (x,), {}))
        if found is not None:
            return UsualStep(found[0], _source(found[1]))
    parts = _taken_apart(batch, _takes(model))
    prediction = _predicted(model, parts.args, parts.kwargs)
    if isinstance(prediction, Exception):
        raise LabError(
            f"`model({parts.call})` raised {type(prediction).__name__}: {prediction}. The batch is"
            f" {described(batch)}.",
            hint=_WRITE,
        ) from prediction
    found = _with_target(prediction, parts.target) or _without_target(prediction, parts.args)
    if found is None:
        raise LabError(
            f"No usual task fits: the batch is {described(batch)}, the prediction is"
            f" {described(prediction)}.",
            hint=_WRITE,
        )
    task, lines = found
    source = _source([parts.line, f"prediction = model({parts.call})", *lines])
    return UsualStep(task, source + (_R2 if "r2." in source else ""))


def usual_call(model: nn.Module, batch: Any) -> Callable[[], object]:
    """Runs the model on the batch as the usual steps do; a triplet one by one."""
    takes = _takes(model)
    if _is_triplet(batch) and takes == 1:
        return lambda: [model(part) for part in batch]
    parts = _taken_apart(batch, takes)
    return lambda: model(*parts.args, **parts.kwargs)


def described(value: Any) -> str:
    """`(float32 (8, 3), int64 (8,))`: the value with the dtype and shape of its tensors."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {described(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list):
        return f"({', '.join(described(item) for item in value)})"
    return type(value).__name__


def _source(lines: list[str]) -> str:
    return "def step(batch):\n" + "".join(f"    {line}\n" for line in lines if line)


def _is_triplet(batch: Any) -> bool:
    return (
        isinstance(batch, tuple | list)
        and len(batch) == 3
        and all(isinstance(part, Tensor) and part.is_floating_point() for part in batch)
        and batch[0].ndim > 1
        and batch[0].shape == batch[1].shape == batch[2].shape
    )


def _takes(model: nn.Module) -> int:
    """How many arguments the model needs."""
    signature = getattr(model, "__signature__", None)  # that of a function
    return len(required_parameters(model.forward if signature is None else model))


def _taken_apart(batch: Any, takes: int) -> _Parts:
    """A model that takes as many arguments as the batch has parts takes the target too."""
    if isinstance(batch, Mapping):
        target = next((name for name in _TARGETS if name in batch), None)
        inputs = {key: value for key, value in batch.items() if key != target}
        call = ", ".join(f'{key}=batch["{key}"]' for key in inputs)
        line = f'y = batch["{target}"]' if target else ""
        return _Parts(line, call, (), inputs, batch[target] if target else None)
    if not isinstance(batch, tuple | list):
        return _Parts("x = batch", "x", (batch,), {}, None)
    if len(batch) == 1:
        return _Parts("(x,) = batch", "x", tuple(batch), {}, None)
    if takes == len(batch):
        names = ", ".join(f"x{n}" for n in range(1, takes + 1))
        return _Parts(f"{names} = batch", names, tuple(batch), {}, None)
    inputs = len(batch) - 1
    call = "x" if inputs == 1 else ", ".join(f"x{n}" for n in range(1, inputs + 1))
    return _Parts(f"{call}, y = batch", call, tuple(batch[:-1]), {}, batch[-1])


def _predicted(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The model's prediction, or the exception that it raised."""
    with on_trial(model, training=False), torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            return model(*args, **kwargs)
        except Exception as error:  # told by the caller
            return error


def _with_target(prediction: Any, y: Any) -> tuple[str, list[str]] | None:
    """The task and the lines after the prediction; None if none fits."""
    if not isinstance(y, Tensor):
        return None
    if isinstance(prediction, tuple | list):
        return _pairs(prediction, y)
    if not isinstance(prediction, Tensor):
        return None
    p = prediction
    squeezed = ["prediction = prediction.squeeze(-1)"] if p.shape == (*y.shape, 1) else []
    same = bool(squeezed) or p.shape == y.shape
    if y.is_floating_point():
        return _of_floats(y, squeezed) if same else None
    if y.is_complex() or y.dtype == torch.bool:
        return None
    if p.ndim == y.ndim + 1 and p.shape[-1] > 1:
        if p.shape[0] == y.shape[0] and p.shape[2:] == y.shape[1:]:
            loss, classes = "loss = F.cross_entropy(prediction, y)", p.shape[1]
            if y.ndim == 1:
                return "classification", [loss, *_ranked(classes)]
            return "segmentation", [loss, *_overlapping(classes)]
        if p.shape[:-1] == y.shape:
            loss = "loss = F.cross_entropy(prediction.flatten(0, -2), y.flatten())"
            perplexity = 'figures = {"perplexity": loss.detach().exp()}'
            right = 'figures["accuracy"] = (prediction.argmax(-1) == y).float().mean()'
            return "language model", [loss, perplexity, right, 'return {"loss": loss, **figures}']
    if same:
        loss = "loss = F.binary_cross_entropy_with_logits(prediction, y.float())"
        return "binary classification", [*squeezed, loss, _with_accuracy("(prediction > 0)")]
    return None


def _of_floats(y: Tensor, squeezed: list[str]) -> tuple[str, list[str]]:
    if y.ndim == 2 and y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all()):
        loss = "loss = F.binary_cross_entropy_with_logits(prediction, y)"
        return "multi-label classification", [loss, _with_accuracy("(prediction > 0)")]
    loss = "loss = F.mse_loss(prediction, y)"
    if y.ndim > 2:
        return "regression", [loss, 'return {"loss": loss, "RMSE": loss.detach().sqrt()}']
    update = "r2.update(prediction.detach(), y)"
    figures = 'return {"loss": loss, "RMSE": loss.detach().sqrt(), "R2": r2}'
    return "regression", [*squeezed, loss, update, figures]


def _pairs(prediction: Any, y: Tensor) -> tuple[str, list[str]] | None:
    """Two embeddings (B, D), which are alike where y (B,) is 1 and unlike where it is 0."""
    parts = list(tensors_in(prediction))
    if len(parts) != 2 or parts[0].shape != parts[1].shape or y.shape != parts[0].shape[:1]:
        return None
    if not bool(((y == 0) | (y == 1)).all()):
        return None
    loss = "loss = F.cosine_embedding_loss(first, second, 2 * y - 1)"
    return "pairs", ["first, second = prediction", loss, 'return {"loss": loss}']


def _with_accuracy(classes: str) -> str:
    return f'return {{"loss": loss, "accuracy": ({classes} == y).float().mean()}}'


def _ranked(classes: int) -> list[str]:
    """The accuracy of a prediction (B, classes); with many classes also whether the right one is
    among the first five."""
    if classes <= MANY_CLASSES:
        return [_with_accuracy("prediction.argmax(1)")]
    return [
        "five = prediction.topk(5, dim=1).indices == y[:, None]",
        'figures = {"accuracy": five[:, 0].float().mean()}',
        'figures["top-5 accuracy"] = five.any(1).float().mean()',
        'return {"loss": loss, **figures}',
    ]


def _overlapping(classes: int) -> list[str]:
    """The accuracy of a prediction (B, classes, ...), and intersection over union, the mean over
    the classes that a batch has."""
    return [
        "found = prediction.argmax(1)",
        f"pairs = [(found == c, y == c) for c in range({classes})]",
        "overlap = torch.stack([(a & b).sum() / (a | b).sum() for a, b in pairs]).nanmean()",
        'return {"loss": loss, "accuracy": (found == y).float().mean(), "mean IoU": overlap}',
    ]


def _without_target(prediction: Any, args: tuple[Any, ...]) -> tuple[str, list[str]] | None:
    """As `_with_target`, for tasks whose target is the input x, or inside the model."""
    if isinstance(getattr(prediction, "loss", None), Tensor):
        return "a model with its own loss", ["return prediction.loss"]
    if isinstance(prediction, Tensor) and prediction.is_floating_point() and not prediction.ndim:
        return "a model that returns its loss", ["return prediction"]
    if len(args) != 1 or not isinstance(args[0], Tensor):
        return None
    x = args[0]
    if isinstance(prediction, Tensor) and prediction.shape == x.shape and x.is_floating_point():
        return "autoencoder", ["loss = F.mse_loss(prediction, x)", 'return {"loss": loss}']
    parts = list(tensors_in(prediction))
    if not isinstance(prediction, tuple | list) or len(parts) != 3:
        return None
    if parts[0].numel() != x.numel() or parts[1].shape != parts[2].shape:
        return None
    return "variational autoencoder", [
        "reconstruction, mean, log_variance = prediction",
        'error = F.mse_loss(reconstruction, x.view_as(reconstruction), reduction="sum") / len(x)',
        "spread = mean**2 + log_variance.exp() - log_variance - 1",
        "divergence = spread.sum() / (2 * len(x))  # Kingma and Welling 2014, appendix B",
        'return {"loss": error + divergence, "error": error, "divergence": divergence}',
    ]
