"""A model of blocks from the names and shapes of a state_dict, where these tell how its layers
follow each other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import catalogue
from ..document import Block, Model, ParamValue, Wire
from ..names import fresh_name, name_problem
from .layer import Shape
from .layers_of_keys import Part, by_name, in_order, parts_of

MAX_TENSORS = 2_000
STEPS = 16
"""The length of a sequence in the batches that are shown: the file does not tell it."""
SIDE = 32
"""The height and width of an image in them."""
MAX_NAMES = 5
"""The most names of each kind in a sentence."""
_SPACING = (304.0, 160.0)
_IS_EMBEDDING = re.compile(r"emb|tok|wte|wpe|lookup", re.IGNORECASE)


class NoChain(ValueError):
    """Why no model of blocks can be made, in words."""


class Found(NamedTuple):
    """`branches` names the branch of the keys for each block that has tensors. `notes` say what is
    not in the file, and what stands for it."""

    model: Model
    branches: dict[str, str]
    notes: tuple[str, ...]


class _Flow(NamedTuple):
    """The output of a layer: `size` features of each sample or step, or channels of an image of so
    many `dims`."""

    kind: str
    size: int
    dims: int = 0


def model_of(tensors: Mapping[str, Shape]) -> Found:
    """The model whose layers come in the order of the keys, or in the order of their names if only
    that one joins them. Raises NoChain."""
    if len(tensors) > MAX_TENSORS:
        raise NoChain(
            f"It has {len(tensors):,} tensors: models of so many are not drawn as blocks."
        )
    parts, left_out = parts_of(tensors)
    if not parts:
        raise NoChain("Its keys and shapes suggest no layers.")
    first: NoChain | None = None
    for order in (in_order(parts), sorted(parts, key=lambda part: by_name(part.path))):
        try:
            return _Chain().made(order, left_out)
        except NoChain as problem:
            first = first or problem
    assert first is not None
    raise first


@dataclass
class _Chain:
    """Joins one layer after the other."""

    blocks: list[Block] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)
    branches: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    guessed: dict[str, str] = field(default_factory=dict)
    flow: _Flow | None = None
    last: tuple[str, str] | None = None
    stand_ins: int = 0

    def made(self, parts: list[Part], left_out: list[str]) -> Found:
        for before, part in zip([None, *parts], parts, strict=False):
            kind, params, between = self._joined(part)
            if before is not None:
                self._fill_gap(before.path, part.path, len(between))
            else:
                self._begin(part, kind, params)
            for other, others_params in between:
                self._add(other, others_params)
            self._add(kind, params, part.path, has_tensors=True)
            self.flow = self._flow_after(kind, params)
        self._add("Output", {})
        return Found(
            Model(tuple(_placed(self.blocks)), tuple(self.wires)),
            self.branches,
            tuple(self._notes(left_out)),
        )

    def _joined(
        self, part: Part
    ) -> tuple[str, dict[str, ParamValue], list[tuple[str, dict[str, ParamValue]]]]:
        """The kind and arguments of a layer's block behind those before, and blocks of torch that
        have to come between. Raises NoChain."""
        kind, params, flow = part.layer.kind, dict(part.layer.params), self.flow
        between: list[tuple[str, dict[str, ParamValue]]] = []
        if kind == "Linear" and part.layer.others and _IS_EMBEDDING.search(part.path):
            size, given = params["out_features"], params["in_features"]
            kind, params = "Embedding", {"num_embeddings": size, "embedding_dim": given}
        elif kind == "BatchNorm":
            kind = f"BatchNorm{flow.dims if flow and flow.dims else 1}d"
        elif kind == "LayerNorm" and part.layer.others and flow and flow.dims:
            kind = "GroupNorm"
            params = {"num_groups": 1, "num_channels": params["normalized_shape"]}
            self.assumed["groups"] = "1 group in GroupNorm, of channels"
        elif kind == "RMSNorm" and flow and (flow.dims or params["normalized_shape"] == 1):
            kind, params = "PReLU", {"num_parameters": params["normalized_shape"]}
        elif kind.startswith("Conv"):
            self._assume_convolution(kind, params)
        elif kind in ("MultiheadAttention", "TransformerEncoderLayer"):
            params["num_heads" if kind == "MultiheadAttention" else "nhead"] = 1
            params["batch_first"] = True
            self.assumed["heads"] = "1 head in attention"
        elif kind in ("RNN", "GRU", "LSTM"):
            params["batch_first"] = True
            self.assumed["first"] = "batch_first in recurrent layers"
        is_sure = kind == "LayerNorm" or (kind == "Linear" and flow is not None)
        if kind == part.layer.kind and part.layer.others and not is_sure:
            self.guessed[part.path] = f"{kind}, not {' or '.join(part.layer.others)}"
        if f"nn.{kind}" not in catalogue.kinds():
            raise NoChain(f"There is no block for {part.layer.words} ({_called(part.path)}).")
        if flow is not None:
            between = self._between(part, kind, params, flow)
        return f"nn.{kind}", params, between

    def _assume_convolution(self, kind: str, params: dict[str, ParamValue]) -> None:
        size = params["kernel_size"]
        sizes = size if isinstance(size, tuple) else (size,)
        padding = tuple((int(each or 1) - 1) // 2 for each in sizes)
        if any(padding) and "Transpose" not in kind:
            params["padding"] = padding if isinstance(size, tuple) else padding[0]
        self.assumed["stride"] = "stride 1 and padding (kernel_size - 1) // 2 in convolutions"
        flow, channels = self.flow, int(params["in_channels"] or 1)  # pyright: ignore
        if flow and flow.dims and flow.size != channels and flow.size % channels == 0:
            params["in_channels"] = flow.size
            params["groups"] = flow.size // channels

    def _between(
        self, part: Part, kind: str, params: Mapping[str, ParamValue], flow: _Flow
    ) -> list[tuple[str, dict[str, ParamValue]]]:
        wanted, is_image = (
            _input_size(kind, params),
            kind.startswith(("Conv", "BatchNorm", "GroupNorm")),
        )
        if kind == "PReLU":
            return []
        if kind != "Embedding" and wanted == flow.size:
            dims = int(kind[-2]) if kind.startswith("Conv") else flow.dims
            takes_images = kind.startswith(("Conv", "GroupNorm"))
            is_batch_norm = kind.startswith("BatchNorm") and flow.kind != "sequence"
            if is_batch_norm or (dims == flow.dims and bool(flow.dims) == takes_images):
                return []
        if kind == "Linear" and flow.dims == 2 and wanted % flow.size == 0:
            side = math.isqrt(wanted // flow.size)
            if side * side == wanted // flow.size:
                self.assumed["pool"] = f"AdaptiveAvgPool2d before {_called(part.path)}"
                return [("nn.AdaptiveAvgPool2d", {"output_size": side}), ("nn.Flatten", {})]
        unit = "channels" if is_image else "features"
        takes = "takes indices" if kind == "Embedding" else f"takes {wanted} {unit}"
        gives = f"{flow.size} {'channels' if flow.dims else 'features'}"
        raise NoChain(
            f"The layers are no chain in the order of the keys: {_called(part.path)} {takes}, and"
            f" {_called(self._last_path)} gives {gives}. The file does not tell how they are wired."
        )

    @property
    def _last_path(self) -> str:
        return next(reversed(self.branches.values()), "")

    def _begin(self, part: Part, kind: str, params: Mapping[str, ParamValue]) -> None:
        plain = kind.removeprefix("nn.")
        size = _input_size(plain, params)
        if plain == "Embedding":
            self._add("Input", {"shape": (STEPS,), "dtype": "int64"})
            self.assumed["steps"] = f"{STEPS} steps in a sequence"
        elif plain.startswith("Conv"):
            dims = int(plain[-2])
            self._add("Input", {"shape": (size, *[SIDE] * dims)})
            self.assumed["side"] = f"inputs of {'×'.join([str(SIDE)] * dims)}"
        elif plain in ("RNN", "GRU", "LSTM", "MultiheadAttention", "TransformerEncoderLayer"):
            self._add("Input", {"shape": (STEPS, size)})
            self.assumed["steps"] = f"{STEPS} steps in a sequence"
        else:
            shape = params.get("normalized_shape")
            self._add("Input", {"shape": shape if isinstance(shape, tuple) else (size,)})

    def _flow_after(self, kind: str, params: Mapping[str, ParamValue]) -> _Flow:
        plain, flow = kind.removeprefix("nn."), self.flow
        if plain.startswith("Conv"):
            return _Flow("image", int(params["out_channels"]), int(plain[-2]))  # pyright: ignore
        if plain == "Linear":
            is_sequence = flow is not None and flow.kind == "sequence"
            size = int(params["out_features"])  # pyright: ignore
            return _Flow("sequence" if is_sequence else "features", size)
        if plain == "Embedding":
            return _Flow("sequence", int(params["embedding_dim"]))  # pyright: ignore
        if plain in ("RNN", "GRU", "LSTM"):
            size = int(params.get("proj_size") or params["hidden_size"])  # pyright: ignore
            return _Flow("sequence", size * (2 if params.get("bidirectional") else 1))
        if plain in ("MultiheadAttention", "TransformerEncoderLayer"):
            return _Flow("sequence", _input_size(plain, params))
        return flow or _Flow("features", _input_size(plain, params))

    def _fill_gap(self, before: str, path: str, between: int) -> None:
        """Numbers that a Sequential leaves out are of modules without tensors: an Identity stands
        for each."""
        around, first = _split(before)
        own, second = _split(path)
        if around == own and first.isdecimal() and second.isdecimal():
            for number in range(int(first) + 1, int(second) - between):
                self._add("nn.Identity", {}, f"{own}.{number}" if own else str(number))
                self.stand_ins += 1

    def _add(
        self, kind: str, params: dict[str, ParamValue], path: str = "", has_tensors: bool = False
    ) -> None:
        """A block behind the last one, named after the branch of its keys."""
        known = catalogue.kind(kind)
        names = {block.name for block in self.blocks}
        name = re.sub(r"\W", "_", path, flags=re.ASCII)
        name = f"{known.stem}_{name}" if name[:1].isdecimal() else name
        if name_problem(name, names):
            name = known.stem if kind == "Input" else fresh_name(known.stem, names)
        block = Block(f"b{len(self.blocks) + 1}", kind, name, params)
        self.blocks.append(block)
        if has_tensors:
            self.branches[name] = path
        inputs, outputs = catalogue.ports(block)
        if self.last:
            ends = inputs if kind == "nn.MultiheadAttention" else inputs[:1]
            self.wires += [Wire(*self.last, block.id, end.name) for end in ends]
        if outputs:
            self.last = block.id, outputs[0].name

    def _notes(self, left_out: list[str]) -> Iterable[str]:
        yield (
            "The file has no wires: the layers follow each other by its keys, which need not be"
            " what forward() does. Activations, dropout, pooling and additions are not in it."
        )
        if self.stand_ins == 1:
            yield "1 Identity stands where the numbers of the keys leave a module out."
        elif self.stand_ins:
            yield (
                f"{self.stand_ins} blocks Identity stand where the numbers of the keys leave"
                " modules out."
            )
        if self.assumed:
            yield f"Assumed, since the file does not tell: {'; '.join(self.assumed.values())}."
        if self.guessed:
            told = [f"{path or 'the layer'} is {guess}" for path, guess in self.guessed.items()]
            yield f"From the tensors alone, also assumed: {_listed(told)}."
        if left_out:
            yield f"Of no layer that is known, left out: {_listed(left_out)}."


def _input_size(kind: str, params: Mapping[str, ParamValue]) -> int:
    """The size of the dimension of features, or of channels, that a layer takes."""
    names = (
        "in_channels", "in_features", "num_features", "num_channels", "normalized_shape",
        "input_size", "embed_dim", "d_model",
    )  # fmt: skip
    value = next((params[name] for name in names if name in params), 0)
    value = value[-1] if isinstance(value, tuple) else value
    return int(value or 0)


def _placed(blocks: list[Block]) -> Iterable[Block]:
    """In rows, as one reads."""
    columns = max(3, round(math.sqrt(len(blocks))))
    for number, block in enumerate(blocks):
        row, column = divmod(number, columns)
        yield Block(
            block.id, block.kind, block.name, block.params, column * _SPACING[0], row * _SPACING[1]
        )


def _split(path: str) -> tuple[str, str]:
    around, _, name = path.rpartition(".")
    return around, name


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - MAX_NAMES:,} more" if len(words) > MAX_NAMES else ""
    return ", ".join(words[:MAX_NAMES]) + more


def _called(path: str) -> str:
    return path or "the first layer"
