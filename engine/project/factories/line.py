"""The Python that makes a tensor, from what was typed into a form's fields.

Whatever torch alone can know (a dtype that an operation lacks) torch says when it runs.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..names import CONSOLE_NAMES
from .numbers import FieldError, parse_integer, parse_nested, parse_number, parse_size
from .table import DEFAULT, FACTORIES, OPTIONS, Factory

MEMORY_FORMATS = {"channels_last": "N, C, H, W", "channels_last_3d": "N, C, D, H, W"}


@dataclass(frozen=True)
class Known:
    """A variable that can stand in a "tensor" or "array" field: its shape and dtype."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Surroundings:
    """The engine's side of the form: variables by name, and its devices."""

    tensors: Mapping[str, Known] = field(default_factory=dict)
    arrays: Mapping[str, Known] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cpu",)


def python_line(key: str, name: str, typed: Mapping[str, str | bool], around: Surroundings) -> str:
    """The Python that makes the tensor `name` by the factory `key`: a line, two where a seed or
    an array comes first. Fields that are not in `typed` have their initial value.

    Raises FieldError for the first field that is wrong.
    """
    return _Writer(FACTORIES[key], typed, around).write(_variable_name(name))


class _Writer:
    def __init__(
        self, factory: Factory, typed: Mapping[str, str | bool], around: Surroundings
    ) -> None:
        self.factory, self.around = factory, around
        self.typed = {f.name: f.initial for f in factory.fields}
        self.typed |= {name: OPTIONS[name].initial for name in factory.options}
        self.typed |= {n: v for n, v in typed.items() if n in self.typed}  # pyright: ignore

    def write(self, name: str) -> str:
        before: list[str] = []
        arguments, shape, dtype = self._arguments(name, before)
        options = self._options(shape, dtype)
        after = ""
        if "memory_format" in options and not self._takes_memory_format():
            after = f".to(memory_format={options.pop('memory_format')})"
        if (after or self.factory.key == "from_numpy") and options.pop("requires_grad", ""):
            # .to copies: a tensor that requires grad before it would not be a leaf after it.
            after += ".requires_grad_()"
        if seed := self._text("seed"):
            before.append(f"torch.manual_seed({parse_integer('seed', seed)})")
        call = [*arguments, *(f"{option}={value}" for option, value in options.items())]
        return "\n".join([*before, f"{name} = {self.factory.call}({', '.join(call)}){after}"])

    def _takes_memory_format(self) -> bool:
        return self.factory.key == "empty" or self.factory.key.endswith("_like")

    def _arguments(
        self, name: str, before: list[str]
    ) -> tuple[list[str], tuple[int, ...] | None, str]:
        """(arguments, shape if known, dtype unless another is asked for)."""
        key = self.factory.key
        given = {f.name for f in self.factory.fields}
        if key == "tensor":
            source, dtype = parse_nested("data", self._text("data"))
            return [source], None, dtype
        if "array" in given:
            return self._array(name, before)
        if key == "eye":
            sizes = [str(parse_integer("n", self._text("n"), 0))]
            if self._text("m"):
                sizes.append(str(parse_integer("m", self._text("m"), 0)))
            return sizes, None, "float32"
        if "start" in given:
            return self._sequence()
        arguments: list[str] = []
        dtype = "float32"
        shape: tuple[int, ...] | None = None
        if "input" in given:
            known = self._variable("input", self.around.tensors, "tensor")
            arguments.append(self._text("input"))
            shape, dtype = known.shape, known.dtype
        if "low" in given:
            low = parse_integer("low", self._text("low"))
            high = parse_integer("high", self._text("high"))
            if high <= low:
                raise FieldError(
                    "high", f"high must be greater than low, {low}: high itself is never drawn."
                )
            arguments += [str(low), str(high)]
            dtype = dtype if "input" in given else "int64"
        if "size" in given:
            shape = parse_size("size", self._text("size"))
            as_tuple = key in ("full", "randint") or not shape
            arguments.append(repr(shape) if as_tuple else ", ".join(map(str, shape)))
        if "fill_value" in given:
            source, filled = parse_number("fill_value", self._text("fill_value"))
            arguments.append(source)
            dtype = dtype if "input" in given else filled
        return arguments, shape, dtype

    def _array(self, name: str, before: list[str]) -> tuple[list[str], tuple[int, ...] | None, str]:
        text = self._text("array")
        if text in self.around.arrays:
            known = self.around.arrays[text]
            return [text], known.shape, known.dtype
        if text.isidentifier():
            raise FieldError(
                "array",
                f"There is no NumPy array named {text}. Type a list: [[1.0, 2.0], [3.0, 4.0]].",
            )
        source, dtype = parse_nested("array", text)
        before.append(f"{name}_np = np.array({source.replace('torch.', 'np.')})")
        wide = {"float32": "float64", "complex64": "complex128"}
        return [f"{name}_np"], None, wide.get(dtype, dtype)

    def _sequence(self) -> tuple[list[str], tuple[int, ...] | None, str]:
        start, first = parse_number("start", self._text("start"))
        end, last = parse_number("end", self._text("end"))
        if self.factory.key == "arange":
            step, by = parse_number("step", self._text("step"))
            if not {first, last, by} <= {"int64", "float32"} or "torch." in start + end + step:
                raise FieldError("end", "arange counts between finite real numbers.")
            low, high, stride = (ast.literal_eval(part) for part in (start, end, step))
            if stride == 0 or (high - low) * stride < 0:
                raise FieldError("step", f"A step of {step} does not lead from {start} to {end}.")
            dtype = "int64" if (first, last, by) == ("int64",) * 3 else "float32"
            if step != "1":
                return [start, end, step], None, dtype
            return [start, end] if start != "0" else [end], None, dtype
        parts = [start, end, str(parse_integer("steps", self._text("steps"), 0))]
        if "base" in self.typed:
            base, _ = parse_number("base", self._text("base"))
            parts += [f"base={base}"] if base != "10.0" else []
        return parts, None, "float32"

    def _options(self, shape: tuple[int, ...] | None, dtype: str) -> dict[str, str]:
        written: dict[str, str] = {}
        chosen, device, layout = map(self._chosen, ("dtype", "device", "memory_format"))
        if chosen:
            written["dtype"] = f"torch.{chosen}"
            dtype = chosen
        if self.factory.key in ("rand", "randn", "rand_like", "randn_like") and not _floats(dtype):
            raise FieldError(
                "dtype", f"{self.factory.key} makes fractions: choose a float dtype, not {dtype}."
            )
        if device:
            written["device"] = f'"{device}"'
        if layout:
            letters = MEMORY_FORMATS[layout]
            needed = letters.count(",") + 1
            if shape is not None and len(shape) != needed:
                raise FieldError(
                    "memory_format",
                    f"{layout} is an order of {needed} dimensions ({letters}); this has"
                    f" {len(shape)}.",
                )
            written["memory_format"] = f"torch.{layout}"
        if self.typed.get("requires_grad"):
            if not _floats(dtype):
                raise FieldError(
                    "requires_grad",
                    f"Only floats and complex numbers have gradients, not {dtype}. Choose a"
                    " float dtype.",
                )
            written["requires_grad"] = "True"
        if self.typed.get("pin_memory"):
            if not any(name.startswith("cuda") for name in self.around.devices):
                raise FieldError("pin_memory", "This engine has no CUDA device to pin memory for.")
            if device not in ("", "cpu"):
                raise FieldError("pin_memory", "Only memory of the CPU can be pinned.")
            written["pin_memory"] = "True"
        return written

    def _variable(self, name: str, known: Mapping[str, Known], what: str) -> Known:
        text = self._text(name)
        if text not in known:
            names = ", ".join(list(known)[:5])
            hint = f"Choose one of {names}." if names else f"Create a {what} first."
            raise FieldError(name, f"{f'There is no {what} {text}. ' if text else ''}{hint}")
        return known[text]

    def _chosen(self, name: str) -> str:
        """A choice, empty for the default."""
        text = self._text(name)
        return "" if text == DEFAULT else text

    def _text(self, name: str) -> str:
        value = self.typed.get(name, "")
        return value.strip() if isinstance(value, str) else ""


def _floats(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))


def _variable_name(text: str) -> str:
    name = text.strip()
    if not name.isidentifier() or keyword.iskeyword(name):
        raise FieldError(
            "name",
            "This is not a valid Python name: use letters, digits and _,"
            " and do not start with a digit, such as x or y_2.",
        )
    if name in CONSOLE_NAMES:
        raise FieldError("name", f"{name} is the name of a library here: choose another.")
    return name
