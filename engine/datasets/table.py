"""Tables: CSV files, read by pandas. Rows are numbered as a spreadsheet does, the header is row 1.

Missing values stay NaN here: what fills them is learnt from the training samples alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..project.document import Column
from .samples import DataProblem, Samples, Source
from .source import Faults, decoded, labelled, require_size, whole

if TYPE_CHECKING:
    from pandas import DataFrame

_MAX_BYTES = 256 * 2**20
_MAX_TEXTS = 256
"""The most different texts of a column: one-hot makes a column of each."""
_MAX_LABELS = 20
"""A target of at most this many different whole numbers counts as classes, unless its type is
set."""
_EXACT = 2**53
"""Below it float64, as which cells are read, has every whole number."""
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "#n/a")


def read(
    path: Path,
    columns: Mapping[str, Column],
    separator: str,
    header: bool,
    encoding: str,
    missing: str,
    faults: str,
) -> Samples:
    """A table with its target column, the last one unless `columns` has another.

    Texts become one-hot columns. Rows with a missing value are refused, dropped, or filled later,
    by `missing`; other faults are refused or skipped. Raises DataProblem.
    """
    found = Faults(faults == "skip")
    table = _table(path, separator, header, encoding, found)
    roles = _roles(table, columns, path.name)
    target = next(name for name, column in roles.items() if column.role == "target")
    features = [name for name, column in roles.items() if column.role == "feature"]
    if not features:
        raise DataProblem(f"{path.name} has no feature: every other column is ignored.")
    parsed = {n: _parsed(table[n], n, roles[n].type, n == target) for n in (*features, target)}
    good = np.ones(len(table), bool)
    dropped = Faults(missing == "drop" or faults == "skip")
    for name, (_, gaps, bad) in parsed.items():
        for row in np.flatnonzero(bad & good).tolist():
            text = str(table[name].iloc[row])[:40]
            found.add(f"Row {table.index[row]}, column “{name}”: “{text}” is not a finite number.")
            good[row] = False
        if missing == "drop" or name == target:
            for row in np.flatnonzero(gaps & good).tolist():
                dropped.add(f"Row {table.index[row]}, column “{name}”: the value is missing.")
                good[row] = False
        elif missing == "refuse" and (gaps & good).any():
            row = int(np.argmax(gaps & good))
            raise DataProblem(
                f"Row {table.index[row]}, column “{name}”: the value is missing.",
                hint="Set missing to drop such rows, or to fill them.",
            )
    if not good.any():
        raise DataProblem(f"{path.name} has no row without a fault.")
    skipped = found.skipped + dropped.skipped
    used = tuple((n, _used(column, parsed.get(n))) for n, column in roles.items())
    x, sources = _features({n: parsed[n][0][good] for n in features}, path.name)
    y = parsed[target][0][good]
    if y.dtype.kind == "f" and not _are_labels(y, roles[target].type):
        _require_float32(y, path.name)
        return Samples(x, y[:, None], (), (target,), sources, used, skipped=skipped)
    if y.dtype.kind == "f":
        if np.abs(y).max() >= _EXACT:
            raise DataProblem(
                f"The target “{target}” has whole numbers from 2⁵³ on, which are not told apart.",
                hint="Set its type to category.",
            )
        y = y.astype(np.int64)
    labels, classes = labelled(y)
    if len(classes) < 2:
        raise DataProblem(f"The target “{target}” has one value only: {', '.join(classes)}.")
    return Samples(x, labels, classes, (target,), sources, used, skipped=skipped)


def _table(path: Path, separator: str, header: bool, encoding: str, faults: Faults) -> DataFrame:
    """The cells as texts; the index has the numbers of the rows."""
    import pandas

    text = decoded(whole(path, _MAX_BYTES), encoding, path.name)
    sep = _SEPARATORS.get(separator) or _separator(text)
    names, rows = _structure(text, sep, header, path.name, faults)
    if not rows:
        raise DataProblem(f"{path.name} has no rows" + (" below its header." if header else "."))
    last = rows[-1]
    table = pandas.read_csv(
        io.StringIO(_plain_row_ends(text, sep), newline=""),
        sep=sep,
        header=None,
        names=names,
        index_col=False,
        dtype=str,
        na_filter=False,
        skip_blank_lines=False,
        nrows=len(rows),
        skiprows=sorted(set(range(last)) - {row - 1 for row in rows}),
    )
    table.index = rows
    return table


def _plain_row_ends(text: str, sep: str) -> str:
    """The same table without rows that end in a carriage return alone: before an empty cell, or a
    row with none, pandas takes such an end for none."""
    if not re.search("\r(?!\n)", text):
        return text
    plain = io.StringIO(newline="")
    writer = csv.writer(plain, delimiter=sep, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows(csv.reader(io.StringIO(text, newline=""), delimiter=sep))
    return plain.getvalue()


def _structure(
    text: str, sep: str, header: bool, name: str, faults: Faults
) -> tuple[list[str], list[int]]:
    """The names of the columns, and the numbers of the rows that have a cell for each."""
    names: list[str] = []
    rows: list[int] = []
    number = 0
    try:
        for number, cells in enumerate(
            csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True), 1
        ):
            if not cells:
                continue
            if not names:
                names = _names(cells, name) if header else [f"{i}" for i in range(len(cells))]
                if header:
                    continue
            if len(cells) != len(names):
                cells_text = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
                faults.add(f"Row {number} has {cells_text}; there are {len(names)} columns.")
            else:
                rows.append(number)
    except csv.Error as error:
        raise DataProblem(f"{name}, row {number + 1}: {error}.") from error
    if not names:
        raise DataProblem(f"{name} is empty.")
    if len(names) < 2:
        raise DataProblem(
            f"{name} has one column only: “{names[0][:40]}”.", hint="Set its separator."
        )
    return names, rows


def _names(cells: list[str], name: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    for i, each in enumerate(names):
        if not each:
            raise DataProblem(f"{name}: column {i + 1} has no name in the header.")
        if each in names[:i]:
            raise DataProblem(f"{name}: two columns are named “{each}”.")
    return names


def _separator(text: str) -> str:
    """The one that the first line has most of."""
    first = text.lstrip().partition("\n")[0]
    return max(_SEPARATORS.values(), key=first.count)


def _roles(table: DataFrame, columns: Mapping[str, Column], name: str) -> dict[str, Column]:
    """The role of each column; exactly one is the target."""
    names = [str(column) for column in table.columns]
    for each in columns:
        if each not in names:
            raise DataProblem(
                f"{name} has no column “{each}”.", hint="Give its columns their roles again."
            )
    roles = {each: columns.get(each, Column()) for each in names}
    targets = [each for each, column in roles.items() if column.role == "target"]
    if len(targets) > 1:
        raise DataProblem(f"There are two targets: “{targets[0]}” and “{targets[1]}”.")
    if not targets:
        last = next((each for each in reversed(names) if roles[each].role == "feature"), None)
        if last is None:
            raise DataProblem(f"{name} has no target: every column is ignored.")
        roles[last] = Column("target", roles[last].type)
    return roles


def _parsed(
    cells: Any, name: str, kind: str, is_target: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of a column (a pandas Series), where they are missing, and where they are wrong.
    Values are float64, NaN where missing, for numbers; texts, "" where missing, for a category."""
    import pandas

    texts = cells.str.strip()
    gaps = texts.str.lower().isin(_MISSING).to_numpy(bool)
    numbers = np.array(pandas.to_numeric(texts, errors="coerce"), np.float64)
    numbers[gaps] = np.nan
    bad = ~np.isfinite(numbers) & ~gaps
    # A few cells that are no numbers are faults of a column of numbers; many make it a category.
    is_number = kind == "number" or (kind == "auto" and bad.sum() <= 0.1 * (~gaps).sum())
    if is_number and not (kind == "auto" and gaps.all()):
        return numbers, gaps, bad
    values = np.where(gaps, "", texts.to_numpy(object)).astype(str)
    if not is_target and (count := len(np.unique(values[~gaps]))) > _MAX_TEXTS:
        raise DataProblem(
            f"Column “{name}” has {count:,} different texts: one-hot would make as many columns.",
            hint="Set its role to ignore.",
        )
    return values, gaps, np.zeros(len(values), bool)


def _used(column: Column, parsed: tuple[np.ndarray, ...] | None) -> Column:
    """The column with the type that it has now; one that is ignored keeps what was asked."""
    if parsed is None:
        return column
    return Column(column.role, "number" if parsed[0].dtype.kind == "f" else "category")


def _are_labels(numbers: np.ndarray, kind: str) -> bool:
    if kind == "number":
        return False
    return bool((numbers == numbers.round()).all()) and len(np.unique(numbers)) <= _MAX_LABELS


def _require_float32(numbers: np.ndarray, name: str) -> None:
    if (np.abs(numbers) > np.finfo(np.float32).max).any():
        raise DataProblem(f"{name} has numbers too large for float32.")


def _features(
    columns: Mapping[str, np.ndarray], name: str
) -> tuple[np.ndarray, tuple[Source, ...]]:
    """x float64 (N, F) with NaN for missing values, and where each column is in it."""
    parts: list[np.ndarray] = []
    sources: list[Source] = []
    start = 0
    for column, values in columns.items():
        texts: tuple[str, ...] = ()
        if values.dtype.kind == "f":
            part = values[:, None]
        else:
            texts = tuple(text for text in np.unique(values).tolist() if text)
            part = (values[:, None] == np.array(texts)).astype(np.float64)
            part[values == ""] = np.nan
        if not part.shape[1]:
            raise DataProblem(
                f"Column “{column}” of {name} has no values.", hint="Set its role to ignore."
            )
        stop = start + part.shape[1]
        sources.append(Source(column, start, stop, texts))
        parts.append(part)
        start = stop
    require_size(4 * len(parts[0]) * start, name)
    x = np.concatenate(parts, axis=1)
    _require_float32(x, name)
    return x, tuple(sources)
