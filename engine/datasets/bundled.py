"""Digits, read from `assets/data`, and the tables that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .samples import Samples, number_sources

_DIGITS = Path(__file__).resolve().parents[2] / "assets" / "data" / "digits.csv.gz"


def digits() -> Samples:
    """1,797 handwritten digits of 8 x 8 pixels, scaled from 0..16 to 0..1: x (1797, 1, 8, 8).

    Source: Alpaydin & Kaynak, Optical Recognition of Handwritten Digits (UCI).
    """
    table = np.loadtxt(_DIGITS, np.float32, delimiter=",")  # 64 pixels and the label
    x = table[:, :64].reshape(-1, 1, 8, 8) / 16
    return Samples(x, table[:, 64].astype(np.int64), tuple("0123456789"))


def iris() -> Samples:
    """150 flowers of three species, by the length and width of sepals and petals in cm."""
    from sklearn.datasets import load_iris

    return _table(load_iris())


def wine() -> Samples:
    """178 wines of three growers, by 13 chemical measurements."""
    from sklearn.datasets import load_wine

    return _table(load_wine())


def breast_cancer() -> Samples:
    """569 tumours, malignant or benign, by 30 measurements of their cells."""
    from sklearn.datasets import load_breast_cancer

    return _table(load_breast_cancer())


def diabetes() -> Samples:
    """442 patients by age, sex, body mass index, blood pressure and six serum measurements; the
    target is how far the disease progressed in a year, 25 to 346: y (442, 1)."""
    from sklearn.datasets import load_diabetes

    return _table(load_diabetes())


def _table(bunch: Any) -> Samples:
    """The table of scikit-learn's `bunch`, with labels if it names classes, else with numbers."""
    x = np.asarray(bunch["data"], np.float64)
    sources = number_sources(bunch["feature_names"])
    if "target_names" in bunch:
        classes = tuple(map(str, bunch["target_names"]))
        return Samples(x, np.asarray(bunch["target"], np.int64), classes, sources=sources)
    y = np.asarray(bunch["target"], np.float64)[:, None]
    return Samples(x, y, targets=("progression",), sources=sources)
