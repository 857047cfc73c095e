"""Which samples are for training and which for validation."""

from __future__ import annotations

import numpy as np

from .samples import DataProblem, Samples


def split(
    samples: Samples, fraction: float, seed: int, stratified: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers for training and for validation, drawn with `seed`.

    Stratified, each class has the same share on both sides; numbers and characters have no
    classes to keep. A part that the source itself holds out is the validation data, in its order.
    Raises DataProblem.
    """
    rows = np.arange(len(samples.y))
    if samples.held_out:
        return rows[: -samples.held_out], rows[-samples.held_out :]
    if not 0 <= fraction < 1:
        raise DataProblem(
            f"The validation fraction is {fraction:g}; "
            "it must be at least 0 and less than 1, for example 0.2."
        )
    if fraction == 0:
        return rows, rows[:0]

    from sklearn.model_selection import train_test_split

    labels = samples.y if stratified and samples.y.ndim == 1 else None
    try:
        train, val = train_test_split(
            rows, test_size=fraction, stratify=labels, random_state=seed % 2**32
        )
    except ValueError as error:
        needs = "every class needs samples" if labels is not None else "there must be samples"
        raise DataProblem(
            f"{len(rows):,} samples cannot be split with a validation fraction of "
            f"{fraction:g}: {needs} on both sides.",
            hint="Use more samples, another fraction, or a split that is not stratified.",
        ) from error
    return np.asarray(train), np.asarray(val)
