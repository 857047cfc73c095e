"""What makes a tensor: torch's factories and what each asks for, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FieldKind = Literal["text", "choice", "check", "tensor", "array"]

DEFAULT = "default"
FLOATING = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATING, "int64", "int32", "int16", "int8", "uint8", "bool", *COMPLEX)
MEMORY_FORMATS = {"channels_last": 4, "channels_last_3d": 5}
"""Memory format -> the number of dimensions that it asks for."""


@dataclass(frozen=True)
class Field:
    """`kind` "tensor" is a variable's name, "array" one of a NumPy array or a typed list."""

    name: str
    kind: FieldKind
    hint: str
    initial: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Factory:
    """`call` is the function's full name. `options` are the names of the fields it shares with
    others (see `OPTIONS`)."""

    key: str
    call: str
    group: str
    summary: str
    fields: tuple[Field, ...]
    options: tuple[str, ...]


OPTIONS = {
    option.name: option
    for option in (
        Field(
            "dtype",
            "choice",
            "The type of each element. By default floats are float32 and whole numbers int64.",
            DEFAULT,
            (DEFAULT, *DTYPES),
        ),
        Field(
            "device",
            "choice",
            "Where its memory is; meta has a shape but no memory.",
            DEFAULT,
            (DEFAULT,),
        ),
        Field(
            "seed",
            "text",
            "With a number, torch.manual_seed runs first: the same numbers come every time."
            " Empty draws new ones.",
        ),
        Field(
            "memory_format",
            "choice",
            "The order of the elements in memory. channels_last keeps (N, C, H, W) with the"
            " channels of a pixel side by side: the shape is the same, the strides are not.",
            DEFAULT,
            (DEFAULT, *MEMORY_FORMATS),
        ),
        Field(
            "requires_grad",
            "check",
            "Record what is computed from it, so that backward() can fill its .grad.",
        ),
        Field(
            "pin_memory",
            "check",
            "Put it in page-locked memory, from which a CUDA device copies faster.",
        ),
    )
}

_SIZE = Field("size", "text", "Sizes of the dimensions: 2, 3. Empty makes a scalar.", "2, 3")
_FILL = Field("fill_value", "text", "The value of every element.", "7.0")
_LOW = Field("low", "text", "The smallest whole number that can come.", "0")
_HIGH = Field("high", "text", "One more than the largest that can come.", "10")
_INPUT = Field("input", "tensor", "The tensor whose shape, dtype and device are taken over.")
_ARRAY = Field(
    "array",
    "array",
    "A NumPy array of the console by name, or a typed list to make one of.",
    "[[1.0, 2.0], [3.0, 4.0]]",
)
_ALL = ("dtype", "device", "requires_grad", "pin_memory")
_SIZED = ("dtype", "device", "memory_format", "requires_grad", "pin_memory")
_LIKE = ("dtype", "device", "memory_format", "requires_grad")


def _random(options: tuple[str, ...]) -> tuple[str, ...]:
    return (*options[:2], "seed", *options[2:])


def _sequence(start: str, end: str, third: Field, *more: Field) -> tuple[Field, ...]:
    return (
        Field("start", "text", "The first value.", start),
        Field("end", "text", "Where it ends.", end),
        third,
        *more,
    )


_STEPS = Field("steps", "text", "How many values, both ends counted.", "5")

FACTORIES = {
    factory.key: factory
    for factory in (
        Factory(
            "tensor",
            "torch.tensor",
            "From values",
            "The values as typed, copied into memory of its own.",
            (Field("data", "text", "Nested lists of one shape: [[1, 2], [3, 4]].",
                   "[[1, 2, 3], [4, 5, 6]]"),),
            _ALL,
        ),
        Factory(
            "from_numpy",
            "torch.from_numpy",
            "From values",
            "Shares the array's memory: writing to one changes the other.",
            (_ARRAY,),
            ("requires_grad",),
        ),
        Factory(
            "tensor(array)",
            "torch.tensor",
            "From values",
            "Copies the array: afterwards the two know nothing of each other.",
            (_ARRAY,),
            _ALL,
        ),
        Factory("zeros", "torch.zeros", "Filled", "Every element is 0.", (_SIZE,), _SIZED),
        Factory("ones", "torch.ones", "Filled", "Every element is 1.", (_SIZE,), _SIZED),
        Factory(
            "full", "torch.full", "Filled", "Every element is one value.", (_SIZE, _FILL), _SIZED
        ),
        Factory(
            "eye",
            "torch.eye",
            "Filled",
            "Ones on the diagonal, zeros elsewhere.",
            (
                Field("n", "text", "Rows.", "3"),
                Field("m", "text", "Columns; empty for as many as rows."),
            ),
            _ALL,
        ),
        Factory(
            "empty",
            "torch.empty",
            "Filled",
            "Memory as it was found: fast, and the values are whatever was there.",
            (_SIZE,),
            _SIZED,
        ),
        Factory(
            "rand",
            "torch.rand",
            "Random",
            "Uniform between 0 (included) and 1 (not).",
            (_SIZE,),
            _random(_SIZED),
        ),
        Factory(
            "randn",
            "torch.randn",
            "Random",
            "Normal, of mean 0 and standard deviation 1.",
            (_SIZE,),
            _random(_SIZED),
        ),
        Factory(
            "randint",
            "torch.randint",
            "Random",
            "Whole numbers from low up to, not including, high.",
            (_LOW, _HIGH, _SIZE),
            _random(_SIZED),
        ),
        Factory(
            "arange",
            "torch.arange",
            "Sequences",
            "From start up to, not including, end, in steps.",
            _sequence("0", "12", Field("step", "text", "From one value to the next.", "1")),
            _ALL,
        ),
        Factory(
            "linspace",
            "torch.linspace",
            "Sequences",
            "So many values, evenly from start to end.",
            _sequence("0", "1", _STEPS),
            _ALL,
        ),
        Factory(
            "logspace",
            "torch.logspace",
            "Sequences",
            "Powers of the base, with exponents evenly from start to end.",
            _sequence("0", "3", _STEPS, Field("base", "text", "What is raised.", "10.0")),
            _ALL,
        ),
        Factory(
            "zeros_like", "torch.zeros_like", "Like another", "Zeros, shaped as another.",
            (_INPUT,), _LIKE,
        ),
        Factory(
            "ones_like", "torch.ones_like", "Like another", "Ones, shaped as another.",
            (_INPUT,), _LIKE,
        ),
        Factory(
            "full_like", "torch.full_like", "Like another", "One value, shaped as another.",
            (_INPUT, _FILL), _LIKE,
        ),
        Factory(
            "empty_like", "torch.empty_like", "Like another",
            "Memory as it was found, shaped as another.", (_INPUT,), _LIKE,
        ),
        Factory(
            "rand_like", "torch.rand_like", "Like another", "Uniform, shaped as another.",
            (_INPUT,), _random(_LIKE),
        ),
        Factory(
            "randn_like", "torch.randn_like", "Like another", "Normal, shaped as another.",
            (_INPUT,), _random(_LIKE),
        ),
        Factory(
            "randint_like", "torch.randint_like", "Like another",
            "Whole numbers from low up to high, shaped as another.",
            (_INPUT, _LOW, _HIGH), _random(_LIKE),
        ),
    )
}  # fmt: skip
