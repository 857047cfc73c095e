"""Makes split samples ready for a model: missing values are filled, columns are standardised, all
in the precision that the samples have.

Both take their statistics from the training samples only, so nothing of the validation data is
learnt from.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from .samples import DataProblem, Samples
from .stored.rows import StoredRows

Standardise = Literal["nothing", "features", "features and target"]
Fill = Literal["mean", "most frequent"]


def filled(samples: Samples, train: np.ndarray, how: Fill) -> np.ndarray | StoredRows:
    """`samples.x` (N, F) without NaN. A missing number becomes the mean, or the most frequent
    value, of the training samples; a missing category always their most frequent one. Raises
    DataProblem for a column that has no value in them."""
    x = samples.x
    if isinstance(x, StoredRows) or x.dtype.kind != "f" or not np.isnan(x).any():
        return x
    x = x.copy()
    for source in samples.sources:
        part = x[:, source.start : source.stop]  # a view
        missing = np.isnan(part[:, 0])
        if not missing.any():
            continue
        known = part[train][~missing[train]]
        if not len(known):
            raise DataProblem(
                f"Column “{source.name}” has no value in any training sample.",
                hint="Set its role to ignore.",
            )
        if how == "mean" and not source.texts:
            part[missing] = known.mean(dtype=np.float64)
        else:
            values, counts = np.unique(known, axis=0, return_counts=True)
            part[missing] = values[counts.argmax()]
    return x


def scale_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column of (N, F), float64 (F,); 1 for a deviation of 0,
    as scikit-learn's StandardScaler has it. They are counted from the first row on, so that a
    constant has a deviation of 0, and sums of large numbers lose nothing."""
    first = values[0].astype(np.float64)
    apart = values - first
    deviation = apart.std(0)
    return first + apart.mean(0), np.where(deviation > 0, deviation, 1.0)


def standardised(
    samples: Samples, x: np.ndarray | StoredRows, train: np.ndarray
) -> np.ndarray | StoredRows:
    """`x` (N, F) with mean 0 and variance 1 over the training samples in each column of numbers.
    Anything that is not a table stays as it is."""
    numbers = [source.start for source in samples.sources if not source.texts]
    if not numbers or isinstance(x, StoredRows):
        return x
    mean, deviation = scale_of(x[train][:, numbers])
    x = x.copy()
    x[:, numbers] = (x[:, numbers] - mean) / deviation
    return x
