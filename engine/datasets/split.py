"""Which samples are for training and which for validation."""

from __future__ import annotations

from math import ceil

import numpy as np

from .samples import DataProblem, Samples


def split(
    samples: Samples, fraction: float, seed: int, stratified: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers for training and for validation, drawn with `seed`: as `split_rows`. A part
    that the source itself holds out is the validation data, in its order. Raises DataProblem."""
    if samples.held_out:
        rows = np.arange(len(samples.y))
        return rows[: -samples.held_out], rows[-samples.held_out :]
    labels = samples.y if samples.y.ndim == 1 else None
    return split_rows(len(samples.y), labels, fraction, seed, stratified)


def split_rows(
    count: int, labels: np.ndarray | None, fraction: float, seed: int, stratified: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of so many rows in two parts, int64.

    Stratified, each class of the `labels` (N,) has the same share on both sides; without labels
    there are no classes to keep. The rows are those of scikit-learn's train_test_split, which takes
    two seconds to import. Raises DataProblem.
    """
    rows = np.arange(count)
    if not 0 <= fraction < 1:
        raise DataProblem(
            f"The validation fraction is {fraction:g}; "
            "it must be at least 0 and less than 1, for example 0.2."
        )
    if fraction == 0:
        return rows, rows[:0]

    val_count = ceil(fraction * len(rows))
    train_count = len(rows) - val_count
    random = np.random.RandomState(seed % 2**32)
    if stratified and labels is not None:
        _, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if min(train_count, val_count) < len(counts) or min(counts, default=0) < 2:
            raise _cannot_be_split(len(rows), fraction, "every class needs samples")
        return _stratified(labels, counts, train_count, val_count, random)
    if train_count == 0:
        raise _cannot_be_split(len(rows), fraction, "there must be samples")
    order = random.permutation(len(rows))
    return order[val_count:], order[:val_count]


def _cannot_be_split(count: int, fraction: float, needs: str) -> DataProblem:
    samples = "sample" if count == 1 else "samples"
    return DataProblem(
        f"{count:,} {samples} cannot be split with a validation fraction of "
        f"{fraction:g}: {needs} on both sides.",
        hint="Use more samples, another fraction, or a split that is not stratified.",
    )


def _stratified(
    labels: np.ndarray,
    counts: np.ndarray,
    train_count: int,
    val_count: int,
    random: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """`labels` (N,) are 0 to C - 1, `counts` (C,) how often each is there."""
    train_counts = _shares(counts, train_count, random)
    val_counts = _shares(counts - train_counts, val_count, random)
    train: list[int] = []
    val: list[int] = []
    for label, (of_train, of_val) in enumerate(zip(train_counts, val_counts, strict=True)):
        of_class = np.flatnonzero(labels == label)[random.permutation(counts[label])]
        train.extend(of_class[:of_train])
        val.extend(of_class[of_train : of_train + of_val])
    return random.permutation(train), random.permutation(val)


def _shares(counts: np.ndarray, total: int, random: np.random.RandomState) -> np.ndarray:
    """Divide `total` in proportion to `counts`, int64 (C,). Classes with the largest remainders get
    one more; among equal remainders it is drawn at random."""
    exact = counts / counts.sum() * total
    shares = np.floor(exact)
    rests = exact - shares
    left = int(total - shares.sum())
    for rest in np.unique(rests)[::-1]:
        if left == 0:
            break
        (classes,) = np.where(rests == rest)
        chosen = random.choice(classes, size=min(len(classes), left), replace=False)
        shares[chosen] += 1
        left -= len(chosen)
    return shares.astype(int)
