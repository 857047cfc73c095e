"""A model's predictions for many samples, and how far each is from its target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ...restoring.module_kept import modes_kept
from ...system.errors import LabError

MAX_SAMPLES, MAX_BYTES = 10_000, 1 << 30
"""The most samples that are predicted, and of how many bytes; the others are left out."""

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for N samples, on the CPU: `x` (N, ...) and `y` as the data has them, and the
    mean `loss` of each sample, float64 (N,).

    For classes, `predicted` has their numbers, in the shape of `y`, and `chances` the probability
    of each by softmax; for numbers `predicted` is float (N, T), and `chances` is None.
    """

    x: Tensor
    y: Tensor
    predicted: Tensor
    chances: Tensor | None
    losses: Tensor

    @property
    def worst(self) -> Tensor:
        """The samples with the largest loss first, int64 (N,); NaN comes first of all."""
        return self.losses.nan_to_num(torch.inf).sort(descending=True, stable=True).indices

    def confusion(self, classes: int) -> Tensor:
        """How often class i was predicted as class j: int64 (classes, classes)."""
        pairs = self.y.flatten() * classes + self.predicted.flatten()
        return pairs.bincount(minlength=classes**2).view(classes, classes)


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """The model in eval mode, without gradients; afterwards its modes are as before."""
    with modes_kept(model), torch.no_grad():
        model.eval()
        yield


def predictions_of(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], loss: nn.Module | None
) -> Predictions:
    """Predict batches (x, y) until there are MAX_SAMPLES, or MAX_BYTES of them. `y` has labels
    (B, ...) for scores (B, C, ...), or numbers of the prediction's shape. The loss of a sample is
    that of `loss` without its reduction; without one, it is cross-entropy or the squared error.
    Batches that are padded to lengths of their own are padded to one length here.

    Raises LabError for predictions that fit neither, and what the model raises.
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    parts: list[tuple[Tensor, ...]] = []
    samples = size = 0
    with at_rest(model):
        for batch in batches:
            x, y = (part[: MAX_SAMPLES - samples] for part in _pair(batch))
            samples, size = samples + len(y), size + x.nbytes
            output, target = model(x.to(device)), y.to(device)
            parts.append((x.cpu(), y.cpu(), *_judged(output, target, loss)))
            if samples >= MAX_SAMPLES or size >= MAX_BYTES:
                break
    if not parts:
        raise LabError("There is no sample to predict.", hint="Hold some out for validation.")
    inputs, *others = zip(*parts, strict=True)
    y, predicted, chances, losses = map(torch.cat, others)
    x = _joined(list(inputs))
    return Predictions(x, y, predicted, None if y.is_floating_point() else chances, losses)


def _joined(parts: list[Tensor]) -> Tensor:
    if len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    return pad_sequence([row for part in parts for row in part], batch_first=True)


def _pair(batch: object) -> tuple[Tensor, Tensor]:
    pair = batch if isinstance(batch, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(part, Tensor) for part in pair):
        raise LabError(
            "Predictions are shown for batches that are pairs of tensors, inputs and targets.",
            hint="Plots and parameters show such a run.",
        )
    return pair[0], pair[1]


def _judged(output: object, y: Tensor, loss: nn.Module | None) -> tuple[Tensor, Tensor, Tensor]:
    """The prediction, its probability and the loss of each sample, on the CPU."""
    if isinstance(output, Tensor):
        if not y.is_floating_point() and output.ndim == y.ndim + 1:
            chances, predicted = output.float().softmax(1).max(1)
            losses = _sample_losses(loss or nn.CrossEntropyLoss(), output, y)
            return predicted.cpu(), chances.cpu(), losses
        if y.is_floating_point() and output.shape == y.shape:
            losses = _sample_losses(loss or nn.MSELoss(), output, y)
            return output.float().cpu(), torch.zeros(len(y)), losses
    shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    raise LabError(
        f"Predictions of {shape} cannot be set beside targets of shape {tuple(y.shape)},"
        f" {str(y.dtype).removeprefix('torch.')}.",
        hint="Shown are class scores (B, C, ...) for labels (B, ...), and numbers of the targets'"
        " shape.",
    )


def _sample_losses(loss: nn.Module, output: Tensor, y: Tensor) -> Tensor:
    """The mean loss of each sample, float64 (B,): by the loss's own reduction of one sample."""
    if type(loss) is nn.CrossEntropyLoss and loss.weight is None and loss.reduction == "mean":
        # The usual one, all at once.
        each = F.cross_entropy(output, y, reduction="none", label_smoothing=loss.label_smoothing)
        return each.double().view(len(y), -1).mean(1).cpu()
    single = [loss(output[i : i + 1], y[i : i + 1]).double() for i in range(len(y))]
    return torch.stack(single).cpu()
