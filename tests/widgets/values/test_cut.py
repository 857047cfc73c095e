"""Which element a cell shows, compared with what torch has there."""

from __future__ import annotations

import itertools

import pytest
import torch

from engine.protocol import DimCut
from widgets.values import cut

X = torch.arange(3 * 4 * 5).reshape(3, 4, 5)


def part(size: int, text: str) -> DimCut:
    """The DimCut of an index or a slice."""
    if ":" not in text:
        at = int(text)
        return DimCut(size=size, start=at, step=1, count=1, fixed=True)
    taken = range(size)[slice(*(int(each) if each else None for each in text.split(":")))]
    return DimCut(size=size, start=taken.start, step=taken.step, count=len(taken))


CUTS = list(
    itertools.product(
        ("2", "0", ":", "1:", "::2"), ("3", ":", ":2", "1::2", "1:3:2"), ("4", ":", "2:3")
    )
)


@pytest.mark.parametrize("texts", CUTS, ids=", ".join)
def test_cells_show_the_elements_that_torch_has_there(texts) -> None:
    dims = tuple(part(size, text) for size, text in zip(X.shape, texts, strict=True))
    assert cut.slice_text(dims) == ", ".join(texts)
    y = eval(f"x[{cut.slice_text(dims)}]", {"x": X})
    assert cut.cut_shape(dims) == tuple(y.shape)
    kept = [number for number, text in enumerate(texts) if ":" in text]
    assert cut.free_dims(dims) == kept
    for position in itertools.product(*map(range, y.shape)):
        element = cut.element_at(dims, position)
        assert X[element] == y[position]
        assert cut.position_of(dims, element) == position
    table = y.reshape(-1, y.shape[-1]) if y.dim() else y.reshape(1, 1)
    for row, column in itertools.product(*map(range, table.shape)):
        element = cut.cell_element(dims, row, column)
        assert X[element] == table[row, column]
        assert cut.element_cell(dims, element) == (row, column)
        rest = [str(element[number]) for number in kept[:-1]]
        assert cut.row_label(dims, row) == ", ".join(rest)
        assert cut.column_label(dims, column) == (str(element[kept[-1]]) if kept else "")
    seen = {cut.element_at(dims, at) for at in itertools.product(*map(range, y.shape))}
    for element in itertools.product(*map(range, X.shape)):
        if element not in seen:
            assert cut.position_of(dims, element) is cut.element_cell(dims, element) is None


def test_an_element_of_another_tensor_is_not_in_the_cut() -> None:
    dims = (part(3, ":"), part(4, "1:"))
    assert cut.position_of(dims, (2,)) is None
    assert cut.position_of(dims, (2, 0)) is None
    assert cut.position_of(dims, (2, 4)) is None
    assert cut.element_cell((), ()) == (0, 0)


@pytest.mark.parametrize("step", [(1, 1), (2, 1), (1, 3)])
def test_a_picture_with_steps_leaves_elements_out(step) -> None:
    dims = tuple(part(size, text) for size, text in zip(X.shape, (":", "1:", ":"), strict=True))
    pictures = X[:, 1:, :][:, :: step[0], :: step[1]]
    for image, row, column in itertools.product(*map(range, pictures.shape)):
        element = cut.picture_element(dims, step, (image, row, column))
        assert X[element] == pictures[image, row, column]
    first = cut.picture_element((part(3, "2"), *dims[1:]), step, (1, 1))
    assert X[first] == pictures[2, 1, 1]
    assert cut.picture_element((part(5, "1:"),), step, (0, 1)) == (1 + step[1],)
    assert cut.picture_element((part(5, "3"),), step, (0, 0)) == (3,)


def test_the_images_of_a_picture_are_all_dimensions_but_two() -> None:
    dims = tuple(map(part, (3, 5, 4, 9), ("2", "1::2", ":", "8::3")))
    assert cut.slice_text(dims) == "2, 1::2, :, 8::3"
    for row in range(8):
        element = cut.cell_element(dims, row, 0)
        assert element == (2, 1 + 2 * (row // 4), row % 4, 8)
        assert cut.element_cell(dims, element) == (row, 0)
    assert cut.picture_element(dims, (2, 1), (1, 1, 0)) == (2, 3, 2, 8)


def test_a_slice_is_as_short_as_python_allows() -> None:
    texts = ("3", ":", "2:", ":4", "2:4", "::2", "1:4:3", "7:", "7:7")
    for text in texts:
        assert cut.dim_text(part(7, text)) == (text if text != "7:" else "7:7")
    assert cut.dim_text(DimCut(size=0, start=0, step=1, count=0)) == ":0"


def test_an_element_in_python() -> None:
    assert cut.element_text("x", (0, 2)) == "x[0, 2]" and cut.element_text("x.grad", ()) == "x.grad"
    assert cut.assignment("x", (0, 2), "1.5", False) == "x[0, 2] = 1.5"
    assert cut.assignment("x", (), "1.5", False) == "x.fill_(1.5)"
    assert cut.assignment("x", (1,), "2", True) == "with torch.no_grad(): x[1] = 2"
    for flat in range(24):
        assert cut.unravel(flat, (2, 3, 4)) == tuple(
            int(at) for at in torch.unravel_index(torch.tensor(flat), (2, 3, 4))
        )


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_whole_numbers_must_fit_the_dtype(dtype) -> None:
    info = torch.iinfo(getattr(torch, dtype))
    for number in (info.min, info.max, 7):
        assert cut.literal_for(dtype, f" {number} ") == str(number)
    for number in (info.min - 1, info.max + 1):
        with pytest.raises(ValueError) as refused:
            cut.literal_for(dtype, str(number))
        assert str(refused.value) == (
            f"{number:,} does not fit: {dtype} holds {info.min:,} to {info.max:,}."
        )
    assert cut.literal_for(dtype, "0x1F") == "31"
    with pytest.raises(ValueError, match=f"`1.5` is not a whole number: {dtype} holds no others"):
        cut.literal_for(dtype, "1.5")


@pytest.mark.parametrize(
    ("dtype", "typed", "literal"),
    [
        ("bool", "TRUE", "True"), ("bool", "1", "True"), ("bool", "false", "False"),
        ("bool", " 0", "False"), ("float32", "1e-3", "0.001"), ("float64", "3", "3.0"),
        ("bfloat16", "nan", 'float("nan")'), ("float16", "-inf", 'float("-inf")'),
        ("complex64", "1 + 2j", "complex(1.0, 2.0)"), ("complex128", "3", "complex(3.0, 0.0)"),
        ("complex64", "nan+infj", 'complex(float("nan"), float("inf"))'),
    ],
)  # fmt: skip
def test_what_is_typed_becomes_a_literal(dtype, typed, literal) -> None:
    assert cut.literal_for(dtype, typed) == literal


@pytest.mark.parametrize(
    ("dtype", "typed", "words"),
    [
        ("bool", "2", "A bool is True or False."),
        ("float32", " x ", "`x` is not a number. Write one such as 0.5, 1e-3, nan or inf."),
        ("complex64", "1+", "`1+` is not a number. Write one such as 1+2j."),
    ],
)
def test_what_is_no_number_is_refused_in_words(dtype, typed, words) -> None:
    with pytest.raises(ValueError) as refused:
        cut.literal_for(dtype, typed)
    assert str(refused.value) == words
