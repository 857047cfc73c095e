"""The loss of a run, and the targets that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...datasets.dataset import Dataset
from ...project import catalogue
from ...project.document import ParamValue
from ...system.errors import LabError
from .arguments import checked
from .class_weights import WEIGHTS, tensors, weighted

_LEAST = {"nn.PoissonNLLLoss": 0.0, "nn.KLDivLoss": 0.0}
"""Losses of numbers that have a least one."""


class FittedLoss(nn.Module):
    """A loss of torch's that compares a prediction with numbers of its shape, or with class labels
    (B, ...), int64, for a prediction (B, C, ...); `fitted_target` says how it takes labels. Of a
    `pos_weight` for each class, a prediction (B, 1) takes the last.

    Raises LabError where torch would broadcast.
    """

    kind = ""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        target = fitted_target(self.kind, input, target)
        if isinstance(weight := getattr(self, "pos_weight", None), Tensor):
            whole, self.pos_weight = weight, weight[-input.shape[1] :]
            try:
                return self._checked(input, target)
            finally:
                self.pos_weight = whole
        return self._checked(input, target)

    def _checked(self, input: Tensor, target: Tensor) -> Tensor:
        if input.shape != target.shape:
            title = catalogue.kind(self.kind).title
            title = title[:1].lower() + title[1:]
            raise LabError(
                f"The prediction has shape {tuple(input.shape)}, the target {tuple(target.shape)}:"
                f" {title} needs the same."
            )
        return super().forward(input, target)


def make_loss(
    kind: str, params: Mapping[str, ParamValue], dataset: Dataset | None = None
) -> nn.Module:
    """Return the loss of catalogue kind `kind` as `loss(prediction, target) -> scalar`. Weights are
    balanced by the training rows of the data set.

    Raises LabError for an unknown loss or a bad parameter.
    """
    losses = catalogue.losses()
    if kind not in losses:
        raise LabError(catalogue.no_loss(kind), hint=f"Choose one of {', '.join(losses)}.")
    arguments = weighted(checked(kind, losses[kind].params, params), dataset, kind)
    return _class(kind)(**tensors(arguments))


@lru_cache
def _class(kind: str) -> type[nn.Module]:
    """torch's class; one that fits labels keeps torch's name."""
    torchs = getattr(nn, kind.removeprefix("nn."))
    if catalogue.kind(kind).target == "labels":
        return torchs
    return type(torchs.__name__, (FittedLoss, torchs), {"kind": kind})


def fitted_target(kind: str, prediction: Tensor, target: Tensor) -> Tensor:
    """The target as torch's loss takes it, in the prediction's dtype.

    Numbers stay as they are. Class labels (B, ...) become 1 for the class and 0 for all others
    along dimension 1, or 1 and -1; a prediction (B, 1, ...) is compared with the label itself.
    MultiLabelMarginLoss takes lists of labels that end with -1.
    """
    how = catalogue.kind(kind).target
    if how == "labels" or target.is_floating_point():
        return target
    if how == "lists":
        return F.pad(target[:, None], (0, prediction.shape[1] - 1), value=-1)
    if prediction.shape[1] == 1 and how != "numbers":
        target = target.unsqueeze(1)
    else:
        target = F.one_hot(target, prediction.shape[1]).movedim(-1, 1)
    target = target.to(prediction.dtype)
    return 2 * target - 1 if how == "signs" else target


def check_numbers(kind: str, target: Tensor) -> None:
    """Raise LabError for targets that are numbers which the loss cannot compare with."""
    if not target.is_floating_point() or not target.numel():
        return
    found, how = catalogue.kind(kind), catalogue.kind(kind).target
    low, high = (float(number) for number in target.aminmax())
    expected = {"shares": "from 0 to 1", "signs": "1 or -1"}.get(how, "0 or more")
    fits = (
        low >= _LEAST.get(kind, low)
        and (how != "shares" or (low >= 0 and high <= 1))
        and (how != "signs" or bool((target.abs() == 1).all()))
    )
    if how in ("labels", "lists") or not fits:
        reason = "takes classes" if how in ("labels", "lists") else f"takes numbers {expected}"
        raise LabError(
            f"{found.title} {reason}; the targets are numbers from {low:.4g} to {high:.4g}.",
            hint="Choose a loss of numbers: mean squared error, L1 or Huber.",
        )


def class_scores(loss: nn.Module, prediction: Tensor) -> Tensor:
    """Scores (B, C, ...) whose largest is the class that is predicted: those that the model gives,
    or two made of its only one, which says class 1 above 0, and as a probability above 0.5."""
    if prediction.ndim < 2 or prediction.shape[1] != 1:
        return prediction
    least = 0.5 if isinstance(loss, nn.BCELoss) else 0.0
    return torch.cat([torch.full_like(prediction, least), prediction], 1)


def loss_source(kind: str, params: Mapping[str, ParamValue]) -> str:
    """Python that makes torch's loss: `nn.MSELoss(reduction='sum')`."""
    return (
        f"{kind}({', '.join(f'{name}={_source(name, value)}' for name, value in params.items())})"
    )


def _source(name: str, value: ParamValue) -> str:
    if name not in WEIGHTS or value is None:
        return repr(value)
    tensor = f"torch.tensor({value!r}, device=prediction.device)"
    return f"{tensor}[-prediction.shape[1] :]" if name == "pos_weight" else tensor


def target_source(kind: str, target_is_numbers: bool) -> list[str]:
    """Python statements that fit `target` for torch's loss, as `fitted_target` does."""
    how = catalogue.kind(kind).target
    if how == "labels" or target_is_numbers:
        return []
    if how == "lists":
        pad = "nn.functional.pad(target[:, None], (0, prediction.shape[1] - 1), value=-1)"
        return [f"target = {pad}  # the class, then none"]
    rows = "nn.functional.one_hot(target, prediction.shape[1]).movedim(-1, 1)"
    if how != "numbers":
        rows = f"target.unsqueeze(1) if prediction.shape[1] == 1 else {rows}"
    lines = [f"target = {rows}", "target = target.to(prediction.dtype)  # 1 for the class, else 0"]
    return [*lines, "target = 2 * target - 1"] if how == "signs" else lines
