"""Files that are opened as a project and are something else: what they are, what can be done."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePath
from typing import Literal

Kind = Literal[
    "python", "notebook", "weights", "model", "safetensors", "array", "picture", "onnx", "table"
]

_SEE = "See what it holds: File > Open in the window, or `tensorlab inspect {name}`."
_WORDS: dict[Kind, str] = {
    "python": "This is a Python file, not a project. Open it in the console of Tensors, cell by"
    " cell; or run it whole with `tensorlab exec`.",
    "notebook": "This is a notebook, not a project. Save it as a Python file (`jupyter nbconvert"
    " --to script`), and open that in the console of Tensors.",
    "weights": f"This is a file of PyTorch's (weights or a checkpoint), not a project. {_SEE}",
    "model": "This is a model of PyTorch's (TorchScript, or a program of torch.export), not a"
    f" project. {_SEE}",
    "safetensors": f"This is a file of weights, not a project. {_SEE}",
    "array": f"This is a NumPy array, not a project. {_SEE}",
    "picture": "This is a picture, not a project. With Pillow installed (`pip install pillow`),"
    " load it in the console of Tensors:"
    ' from PIL import Image; x = torch.from_numpy(np.array(Image.open("{name}")))',
    "onnx": f"This is an ONNX model, not a project. {_SEE}",
    "table": "This is a table, not a project. Load it in the console of Tensors:"
    ' x = torch.from_numpy(np.genfromtxt("{name}", delimiter=","))',
}
_STARTS: dict[bytes, Kind] = {
    b"\x80": "weights",  # a pickle, as torch.save wrote it before 1.6
    b"\x93NUMPY": "array",
    b"\x89PNG": "picture",
    b"\xff\xd8\xff": "picture",
    b"GIF8": "picture",
}
_SUFFIXES: dict[str, Kind] = {
    ".py": "python",
    ".pyw": "python",
    ".ipynb": "notebook",
    ".onnx": "onnx",
    ".csv": "table",
    ".tsv": "table",
}
HEAD_BYTES = 1024
READ_SUFFIXES = (
    ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".pt2", ".onnx", ".npy", ".npz", ".index.json",
)  # fmt: skip
"""Files whose tensors and graph are shown without running anything of them."""
ARTIFACTS: frozenset[Kind] = frozenset({"weights", "model", "safetensors", "array", "onnx"})
"""Kinds of such files."""


def is_readable(name: str) -> bool:
    """Whether a file is of a kind whose tensors and graph can be shown, by its name."""
    return name.lower().endswith(READ_SUFFIXES)


def kind_of(name: str, head: bytes) -> Kind | None:
    """The kind of a file that begins with `head`; None if it may be a project, or is not known."""
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    if head.startswith(b"PK\x03\x04"):  # a zip archive
        return "array" if name.endswith(".npz") else "weights" if b"/data.pkl" in head else None
    if head[8:9] == b"{" and b"\0" in head[:8]:  # the length of a header in 8 bytes
        return "safetensors"
    kind = _SUFFIXES.get(PurePath(name).suffix.lower())
    looks_like_a_project = head.lstrip().startswith(b"{")
    return None if looks_like_a_project and kind != "notebook" else kind


def model_in(path: Path) -> Literal["script", "program"] | None:
    """The whole model that a file holds and torch opens without Python: TorchScript, as
    torch.jit.save writes it, or a program of torch.export.save."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.partition("/")[2] for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return None
    if "archive_format" in inside and any(name.startswith("models/") for name in inside):
        return "program"
    is_script = "constants.pkl" in inside and any(name.startswith("code/") for name in inside)
    return "script" if is_script else None


def in_words(kind: Kind, name: str) -> str:
    """Words for its kind, and for what can be done with it."""
    return _WORDS[kind].replace("{name}", name)
