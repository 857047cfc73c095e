"""Checks of the data: inputs, samples in both parts, labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ...protocol import Check
from ..objectives.batches import tensors_in
from ..objectives.objective import Objective
from .losses_seen import SHARES, LossSeen

MAX_SAMPLES = 200_000
"""The most samples of each part that are compared."""
FAR, WIDE, NARROW = 2.0, 10.0, 0.1
"""Inputs count as standardised with a mean of at most FAR deviations from 0, and a deviation from
NARROW to WIDE."""


def inputs(batches: Sequence[Any]) -> Check:
    """Whether the numbers of the first tensor of each batch are near mean 0 and deviation 1."""
    tensors = [tensor for tensor in map(_first_tensor, batches) if tensor is not None]
    if not tensors or not tensors[0].is_floating_point():
        return Check("inputs", "note", "The inputs are no real numbers: they need no scale.")
    x = torch.cat([tensor.detach().double().flatten(1) for tensor in map(_rows, tensors)])
    bad = int(torch.isfinite(x).logical_not().any(1).sum())
    if bad:
        return Check(
            "inputs",
            "error",
            f"{bad:,} of {len(x):,} samples have NaN or infinite numbers.",
            fix="Mend or leave out these samples.",
        )
    mean, std = float(x.mean()), float(x.std())
    evidence = (
        f"mean {mean:.4g}, deviation {std:.4g}, from {float(x.min()):.4g} to {float(x.max()):.4g}"
        f" in {len(x):,} samples"
    )
    if std == 0:
        return Check("inputs", "error", "All input numbers are the same.", evidence)
    spread = x.std(0)
    spread = spread[spread > 0]
    if x.shape[1] > 1 and float(spread.max() / spread.min()) > 1000:
        ratio = float(spread.max() / spread.min())
        return Check(
            "inputs",
            "warning",
            "The inputs' elements have very different scales.",
            f"{evidence}; the largest deviation of an element is {ratio:,.0f} times the smallest",
            "Standardise each element by the training part.",
        )
    if abs(mean) > FAR * std or not NARROW <= std <= WIDE:
        return Check(
            "inputs",
            "warning",
            "The inputs are not standardised: most initial weights are made for mean 0 and"
            " deviation 1.",
            evidence,
            f"x = (x - {mean:.4g}) / {std:.4g}",
        )
    return Check("inputs", "good", "The inputs have a usual scale.", evidence)


def leaks(objective: Objective) -> Iterator[Check | None]:
    """Samples of the validation part that are in the training part too, bit for bit. Yields None
    between batches, then the check."""
    if not objective.validation_samples:
        yield Check(
            "leaks", "note", "There is no validation part, so no overfitting can be seen.",
            fix="Hold some samples out under Data, or name validation data.",
        )  # fmt: skip
        return
    known: dict[bytes, bytes] = {}
    repeated = counted = 0
    for batch in objective.batches(0, 0):
        for sample, target in _digests(batch):
            repeated += sample in known
            known[sample] = target
        yield None
        if len(known) >= MAX_SAMPLES:
            break
    leaked = same = 0
    for batch in objective.validation_batches():
        for sample, target in _digests(batch):
            counted += 1
            leaked += sample in known
            same += known.get(sample) == target
        yield None
        if counted >= MAX_SAMPLES:
            break
    evidence = f"{leaked:,} of {counted:,} validation samples, {same:,} with the same target"
    if repeated:
        evidence += f"; {repeated:,} samples of the training part are there more than once"
    if leaked:
        yield Check(
            "leaks",
            "warning",
            "Samples of the validation part are in the training part too: validation looks better"
            " than it is.",
            evidence,
            "Remove repeated samples before the split.",
        )
    else:
        yield Check("leaks", "good", "No sample is in both parts.", evidence)


def labels(calls: Sequence[LossSeen]) -> Check:
    """Whether the labels are classes that the prediction has."""
    of_classes = [call for call in calls if call.labels is not None]
    if not of_classes:
        shares = [call.target for call in calls if call.func in SHARES]
        outside = sum(int(((t < 0) | (t > 1)).sum()) for t in shares)
        if outside:
            return Check(
                "labels", "error", f"{outside:,} targets of the binary cross-entropy are not from"
                " 0 to 1.", fix="Scale them, or use another loss.",
            )  # fmt: skip
        return Check("labels", "note", "There are no class labels to check.")
    classes = of_classes[0].classes
    found = torch.cat([call.labels.flatten() for call in of_classes if call.labels is not None])
    low, high = int(found.min()), int(found.max())
    counts = torch.bincount(found[(found >= 0) & (found < classes)], minlength=classes)
    evidence = f"labels from {low} to {high}, {classes} outputs, {len(found):,} samples"
    outside = int(((found < 0) | (found >= classes)).sum())
    if outside:
        return Check(
            "labels",
            "error",
            f"{outside:,} labels are no class of the prediction, which has 0 to {classes - 1}.",
            evidence,
            f"Give the last layer {high + 1} outputs, or number the classes from 0.",
        )
    absent = int((counts == 0).sum())
    if absent:
        return Check(
            "labels",
            "note",
            f"{absent} of {classes} classes have no sample here.",
            evidence,
            "More outputs than classes do no harm, but learn nothing.",
        )
    rarest, most = int(counts.min()), int(counts.max())
    evidence += f"; {rarest:,} of the rarest class, {most:,} of the most frequent"
    return Check("labels", "good", "Every label is a class of the prediction.", evidence)


def _first_tensor(batch: Any) -> Tensor | None:
    return next(iter(tensors_in(batch)), None)


def _rows(tensor: Tensor) -> Tensor:
    return tensor if tensor.ndim > 1 else tensor[:, None]


def _digests(batch: Any) -> Iterable[tuple[bytes, bytes]]:
    """For each sample a digest of its input, and one of its other tensors."""
    tensors = [tensor.detach().cpu() for tensor in tensors_in(batch) if tensor.ndim]
    if not tensors:
        return
    for row in range(len(tensors[0])):
        yield (
            _digest(tensors[0][row]),
            b"".join(_digest(t[row]) for t in tensors[1:] if row < len(t)),
        )


def _digest(tensor: Tensor) -> bytes:
    return hashlib.blake2b(
        tensor.contiguous().view(torch.uint8).numpy().tobytes()
        if tensor.ndim
        else repr(tensor.item()).encode(),
        digest_size=16,
    ).digest()
