"""The loss of a run."""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import LabError
from ...project import catalogue
from ...project.document import ParamValue
from .arguments import checked


class OneHotMSELoss(nn.MSELoss):
    """Mean squared error between a prediction and numbers of its shape, or class labels (B, ...),
    int64, for a prediction (B, C, ...).

    Labels become one-hot along dimension 1 in the prediction's dtype: 1 for the class, else 0.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        if not target.is_floating_point():
            target = F.one_hot(target, input.shape[1]).movedim(-1, 1).to(input.dtype)
        if input.shape != target.shape:  # torch would broadcast
            raise LabError(
                f"The prediction has shape {tuple(input.shape)}, the target {tuple(target.shape)}:"
                " mean squared error needs the same."
            )
        return super().forward(input, target)


def make_loss(kind: str, params: Mapping[str, ParamValue]) -> nn.Module:
    """Return the loss of catalogue kind `kind` as `loss(prediction, target) -> scalar`.

    Raises LabError for an unknown loss or a bad parameter.
    """
    makers = {"nn.CrossEntropyLoss": nn.CrossEntropyLoss, "nn.MSELoss": OneHotMSELoss}
    if kind not in makers:
        raise LabError(f"There is no loss {kind!r}.", hint=f"Choose one of {', '.join(makers)}.")
    arguments = checked(kind, catalogue.kind(kind).params, params)
    return makers[kind](**arguments)
