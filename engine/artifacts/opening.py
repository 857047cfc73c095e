"""Which reader a file needs: what it holds decides, not its name."""

from __future__ import annotations

import tarfile
from pathlib import Path

from ..project.atomic import regular_target
from ..runs.folders import is_run
from ..system.errors import LabError
from .contents.archive import Archive
from .contents.artifact import Artifact, plain
from .programs import onnx_file
from .programs.exported_program import open_program
from .programs.script_file import open_script
from .weights import hugging_face, safetensors_file
from .weights.dcp_folder import METADATA, open_dcp
from .weights.numpy_file import open_npy, open_npz
from .weights.run_folder import open_run
from .weights.torch_file import open_legacy, open_zip

READS = (
    ".pt, .pth, .ckpt, .bin, .safetensors, .pt2, .onnx, .npy, .npz, and folders of Hugging Face,"
    " of torch.distributed.checkpoint and of runs"
)
_HEAD_BYTES = 1024


def open_artifact(path: Path) -> Artifact:
    """The index of a file or folder. Raises LabError, whatever the file holds."""
    name = plain(path.name or str(path), 200)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise LabError(f"There is no file {plain(str(path))}.", hint="Was it moved?")
        return _file(regular_target(path) if path.is_symlink() else path)
    except LabError:
        raise
    except OSError as error:
        raise LabError(f"{name} cannot be read: {error.strerror or error}.") from error
    except Exception as error:  # damaged bytes meet the readers in ways that nobody foresees
        raise LabError(
            f"{name} cannot be read: what is in it does not fit together.",
            hint="It may be damaged or cut off: copy or download it again.",
        ) from error


def _folder(path: Path) -> Artifact:
    if (path / METADATA).is_file():
        return open_dcp(path)
    names = (hugging_face.CONFIG, *hugging_face.INDICES, *hugging_face.WHOLE)
    if any((path / name).is_file() for name in names):
        return hugging_face.open_folder(path, _file)
    if is_run(path):
        return open_run(path, lambda kept: _folder(kept) if kept.is_dir() else _file(kept))
    raise LabError(
        f"{plain(path.name, 200)} is a folder of no kind that is known.",
        hint=f"Folders with {hugging_face.CONFIG} and weights (Hugging Face), with {METADATA}"
        " (torch.distributed.checkpoint) and with run.json can be opened.",
    )


def _file(path: Path) -> Artifact:
    regular_target(path)
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise LabError(f"{plain(path.name, 200)} is empty.", hint="Copy or download it again.")
    suffix = path.suffix.lower()
    if head.startswith(b"PK\x03\x04"):
        return _archive(path)
    if head.startswith(b"\x93NUMPY") or suffix == ".npy":
        return open_npy(path)
    if head.startswith(b"\x80"):
        return open_legacy(path)
    if hugging_face.is_index(path):
        return hugging_face.open_index(path, _file)
    if head[8:9] == b"{" or suffix == ".safetensors":
        return safetensors_file.open_safetensors(path)
    if suffix == ".onnx" or head[:1] == b"\x08":
        return onnx_file.open_onnx(path)
    why = "it does not hold tensors or a program in a form that is known here"
    if tarfile.is_tarfile(path):
        why = "it is a tar archive: torch wrote such files before 0.1.10"
    elif suffix in (".pt", ".pth", ".bin", ".ckpt"):
        why = "torch.save did not write it, or it is damaged"
    raise LabError(
        f"{plain(path.name, 200)} was not opened: {why}.", hint=f"What can be opened: {READS}."
    )


def _archive(path: Path) -> Artifact:
    archive = Archive(path)
    inner = archive.inner()
    if "archive_format" in inner or any(name.startswith("models/") for name in inner):
        return open_program(path, archive)
    if "constants.pkl" in inner and any(name.startswith("code/") for name in inner):
        return open_script(path, archive)
    if "data.pkl" in inner:
        return open_zip(path, archive)
    if inner and all(name.endswith(".npy") for name in inner):
        return open_npz(path, archive)
    raise LabError(
        f"{plain(path.name, 200)} is a zip archive without tensors of torch or NumPy.",
        hint=f"What can be opened: {READS}.",
    )
