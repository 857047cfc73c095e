"""The predictions and targets that reach torch's losses, whichever code calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...recording.compiled import only_calls_compiled

CLASSES = (F.cross_entropy, F.nll_loss)
NUMBERS = (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
SHARES = (F.binary_cross_entropy, F.binary_cross_entropy_with_logits)


class LossSeen(NamedTuple):
    """One call of a loss, before it runs: so that a target that it refuses is seen too."""

    func: Callable
    prediction: Tensor
    target: Tensor
    ignored: int = -100

    @property
    def labels(self) -> Tensor | None:
        """Class labels that count; None for other targets."""
        if self.func not in CLASSES or self.target.is_floating_point():
            return None
        return self.target[self.target != self.ignored]

    @property
    def classes(self) -> int:
        return self.prediction.shape[1 if self.prediction.ndim > 1 else 0]


class LossesSeen(TorchFunctionMode):
    """`with LossesSeen() as seen:` collects the calls in `seen.calls`."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[LossSeen] = []

    @only_calls_compiled
    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (*CLASSES, *NUMBERS, *SHARES):
            given = dict(zip(("input", "target"), args[:2], strict=False)) | kwargs
            ignored = given.get("ignore_index", -100)
            self.calls.append(
                LossSeen(func, given["input"].detach(), given["target"].detach(), ignored)
            )
        return func(*args, **kwargs)
