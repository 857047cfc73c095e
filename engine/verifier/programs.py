"""Loading exported programs as anybody would, and calling them."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..importing.folder_modules import FolderModules
from .values import leaves


def open_program(format: str, path: str, weights: str = "") -> Callable[..., Any]:
    """The program in the file, to be called with the model's arguments: an nn.Module in eval mode,
    or a session of ONNX Runtime."""
    program = _OPENERS[format](path)
    if weights:
        program.load_state_dict(torch.load(weights, weights_only=True))
    return program


class OnnxProgram:
    """Calls a file of ONNX. `more` names values inside its graph, which it then gives too."""

    def __init__(self, path: str, more: tuple[str, ...] = ()) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        source: str | bytes = path
        if more:
            import onnx

            # A value that is to be looked at must not be optimized away.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            model = onnx.load(path)
            own = {output.name for output in model.graph.output}
            model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in more if n not in own)
            source = model.SerializeToString()
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(source, options, providers=providers)
        self.outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        given = [leaf for leaf in leaves([args, kwargs])]
        names = [each.name for each in self._session.get_inputs()]
        feed = {name: x.numpy() for name, x in zip(names, given, strict=True)}
        return [torch.from_numpy(array) for array in self._session.run(None, feed)]


def _python(path: str) -> nn.Module:
    """The result of `made()` in a file of Python, or of its class `Model`. A training script has
    its weights beside it."""
    model = _called(Path(path), "made", "Model")
    data = Path(path).with_suffix(".data.pt")
    if data.exists():
        model.load_state_dict(torch.load(data, weights_only=True)["weights"])
    return model.eval()


def _package(path: str) -> nn.Module:
    """The result of `load()` of run.py in an archive."""
    folder = tempfile.mkdtemp()  # in the folder that the asking process removes
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return _called(Path(folder) / "run.py", "load")


def _called(path: Path, *functions: str) -> Any:
    """The result of the first of these functions that the file has; what the file imports is found
    beside it. The next program may have files of the same names."""
    modules = FolderModules(path.parent.absolute())
    with modules.current():
        module = modules.new_module(f"exported_{path.stem}", path)
        assert module.__spec__ is not None and module.__spec__.loader is not None
        module.__spec__.loader.exec_module(module)
        return next(getattr(module, name) for name in functions if hasattr(module, name))()


def _exported(path: str) -> nn.Module:
    return torch.export.load(path).module()


def _script(path: str) -> nn.Module:
    return torch.jit.load(path, map_location="cpu").eval()


_OPENERS: dict[str, Callable[[str], Any]] = {
    "py": _python,
    "script": _python,
    "zip": _package,
    "pt2": _exported,
    "torchscript-trace": _script,
    "torchscript-script": _script,
    "onnx": OnnxProgram,
}
