"""Writes state_dicts to .pt and .safetensors files, and reads them. No code in a file is
executed."""

from __future__ import annotations

import hashlib
import os
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from ..project.atomic import replacing, write_atomically
from ..project.layers.layers_of_keys import NESTS
from ..recording.compiled import own_path
from ..system.errors import LabError
from ..tensors.compare import same_bits
from ..tensors.plain import described, is_name, tensor_problem
from ..tensors.readable import dtype_name
from .state import own_state, tied, untied

WeightsFormat = Literal["pt", "safetensors"]

MAX_NAMED_KEYS = 5
_SAVE_A_STATE = "Save a state_dict: torch.save(model.state_dict(), path)."


@dataclass(frozen=True)
class Written:
    """A file that was written and read back; the SHA-256 is that of the file on disk."""

    path: Path
    size_bytes: int
    sha256: str
    max_error: float
    keys: tuple[str, ...]


def save_weights(module: nn.Module, path: str | os.PathLike[str], format: WeightsFormat) -> Written:
    """Write `module.state_dict()` as `save_state` does."""
    return save_state(own_state(module), Path(path), format)


def save_state(state: dict[str, Tensor], path: Path, format: WeightsFormat) -> Written:
    """Write a state in one piece, load it back, and compare every bit; memory holds no second copy
    of it. A tensor under several names is written once; .safetensors has the other names in its
    metadata, as `save_model` does.

    `max_error` is 0.0. Raises LabError if the file cannot be written, or what is read back differs.
    """
    if format == "pt":
        write_saved(path, state)
        loaded = _load_pt(path, mapped=True)
    else:
        metadata = {**tied(state), "format": "pt"}
        with _told_if_unwritable(path), replacing(path) as temporary:
            safetensors.torch.save_file(untied(state), temporary, metadata)
        loaded = _load_safetensors(path)
    different = [k for k in state if k not in loaded or not same_bits(state[k], loaded[k])]
    different += [k for k in loaded if k not in state]
    if different:
        raise LabError(
            f"{path} was written, but what was read back differs in {_listed(different)}.",
            hint="The disk may be failing: write to another one.",
        )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Written(path, path.stat().st_size, digest, 0.0, tuple(state))


def write(path: Path, data: bytes) -> bytes:
    """Write the file in one piece, and return what is read back from it. Raises LabError."""
    with _told_if_unwritable(path):
        write_atomically(path, data)
        return path.read_bytes()


def write_saved(path: Path, value: object) -> None:
    """Write what torch.save makes of the value, in one piece; no copy of it is made in memory.
    Raises LabError."""
    with writing(path) as file:
        torch.save(value, file)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """The file, for the block to write; it is there in one piece after the block. Raises
    LabError."""
    with _told_if_unwritable(path), replacing(path) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def _told_if_unwritable(path: Path) -> Iterator[None]:
    """In this context a file is written at the path. Raises LabError for what keeps it from
    being."""
    if path.is_dir():
        raise LabError(f"{path} is a folder.", hint="Give the name of a file in it.")
    if not path.parent.is_dir():
        raise LabError(
            f"The folder {path.parent} does not exist.", hint="Make it, or choose another one."
        )
    try:
        yield
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        why = _system_words(error)
        if why is None:
            raise
        raise LabError(
            f"{path} cannot be written: {why}.",
            hint="Choose a folder that you may write to, on a disk with free space.",
        ) from error


def _system_words(error: Exception) -> str | None:
    """The system's error in writing; torch and safetensors wrap it in errors of their own. None for
    an error of another kind."""
    if isinstance(error, safetensors.SafetensorError):
        return str(error).rpartition("error: ")[2]
    cause = error if isinstance(error, OSError) else error.__context__
    return (cause.strerror or str(cause)) if isinstance(cause, OSError) else None


def load_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The state_dict in a .pt file, a .safetensors file or a training checkpoint, on the CPU; of a
    dict that has it under a usual name (`state_dict`), that one.

    Raises LabError if the file is missing or damaged, or holds anything but tensors by name.
    """
    path = Path(path)
    if not path.is_file():
        raise LabError(f"There is no file {path}.", hint="Choose a .pt or .safetensors file.")
    try:
        if path.suffix == ".safetensors":
            return _load_safetensors(path)
        loaded = _load_pt(path)
    except pickle.UnpicklingError as error:
        if not _is_pickled(path):
            raise _unreadable(path) from error
        raise LabError(
            f"{path} holds objects that would run code when they are loaded, so it was refused.",
            hint="Ask its author for a plain state_dict: torch.save(model.state_dict(), path).",
        ) from error
    except Exception as error:  # the readers meet damaged bytes with errors of any kind
        raise _unreadable(path) from error
    if isinstance(loaded, dict) and not all(isinstance(v, Tensor) for v in loaded.values()):
        inside = (loaded.get(name) for name in NESTS)
        loaded = next((state for state in inside if isinstance(state, dict)), loaded)
    if not isinstance(loaded, dict):
        raise LabError(
            f"{path} holds a {type(loaded).__name__}, not tensors by name.", hint=_SAVE_A_STATE
        )
    for key, tensor in loaded.items():
        reason = tensor_problem(tensor) if is_name(key) else "this is not a name"
        if reason:
            raise LabError(
                f"{path} is not tensors by name. {described(key)}: {reason}.",
                hint=_SAVE_A_STATE,
            )
    return dict(loaded)


def _is_pickled(path: Path) -> bool:
    """Whether the file begins like one of torch.save: as a zip archive, or a pickle of protocol 2
    or later."""
    with path.open("rb") as file:
        return zipfile.is_zipfile(file) or (file.seek(0), file.read(1))[1] == pickle.PROTO


def _unreadable(path: Path) -> LabError:
    return LabError(
        f"{path} cannot be read as weights: it is damaged or of another kind.",
        hint="Choose a file with a state_dict: .pt or .safetensors.",
    )


def check_fits(state: Mapping[str, Tensor], module: nn.Module, source: str = "The file") -> None:
    """Raise LabError if keys are missing, unexpected or of another shape; the message names
    them."""
    own = {own_path(key): tensor for key, tensor in module.state_dict().items()}
    state = {own_path(key): tensor for key, tensor in state.items()}
    missing = [key for key in own if key not in state]
    unexpected = [key for key in state if key not in own]
    misshapen = [
        f"{key} is {_shape(state[key])}, the model has {_shape(own[key])}"
        for key in own
        if key in state and state[key].shape != own[key].shape
    ]
    faults = []
    if missing:
        faults.append(f"missing: {_listed(missing)}")
    if unexpected:
        faults.append(f"not in the model: {_listed(unexpected)}")
    if misshapen:
        faults.append(f"of another shape: {_listed(misshapen)}")
    if faults:
        raise LabError(
            f"{source} does not fit the model. " + "; ".join(faults) + ".",
            hint="Use weights that were exported from this model, or undo the edits made since.",
        )


def _load_pt(path: Path, mapped: bool = False) -> dict[str, Tensor]:
    """`mapped`: the numbers stay in the file. Only for one that torch has just written: in others
    they may be compressed."""
    return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors, also under those names that were left out because their tensors stand under
    other ones: the metadata has these names."""
    state = safetensors.torch.load_file(path)
    with safetensors.safe_open(path, "pt") as file:
        others = file.metadata() or {}
    return {**state, **{k: state[v] for k, v in others.items() if v in state and k not in state}}


def _listed(keys: list[str]) -> str:
    rest = len(keys) - MAX_NAMED_KEYS
    return ", ".join(keys[:MAX_NAMED_KEYS]) + (f" and {rest:,} more" if rest > 0 else "")


def _shape(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {dtype_name(tensor.dtype)}"
