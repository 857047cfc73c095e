"""Broken files of all formats that can be opened: each is refused in words, or read to the end."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import safetensors.torch
import torch
from torch import nn

from engine.artifacts.opening import open_artifact
from engine.system.errors import LabError
from tests.engine.artifacts.networks import net, odd_state
from tests.fuzz.mutate import broken_bytes
from tests.fuzz.weights import Payload


class Artifacts:
    """Makes one broken file a call, and tries it."""

    def __init__(self, random_: random.Random, folder: Path) -> None:
        self._random, self._folder = random_, folder
        self._bases = list(_bases(folder))
        self._names = 0

    def make(self) -> Path:
        self._names += 1
        suffix, data = self._random.choice(self._bases)
        path = self._folder / f"{self._names}{suffix}"
        path.write_bytes(broken_bytes(data, self._random))
        return path

    @staticmethod
    def attempt(path: Path) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        try:
            artifact = open_artifact(path)
        except LabError as error:
            assert str(error)
            return "refused"
        for entry in artifact.tensors:
            if entry.place is not None:
                try:
                    artifact.tensor(entry.key).flatten()[:3].tolist()
                except LabError as error:
                    assert str(error)
        return "opened"


def _bases(folder: Path) -> Iterator[tuple[str, bytes]]:
    """(suffix, bytes) of whole files, among them one whose pickle would run code."""
    state = {key: tensor.detach().contiguous().clone() for key, tensor in odd_state().items()}
    for other in ({}, {"x": Payload()}):
        file = io.BytesIO()
        torch.save(odd_state() | other, file)
        yield ".pt", file.getvalue()
    file = io.BytesIO()
    torch.save(net().state_dict(), file, _use_new_zipfile_serialization=False)
    yield ".pth", file.getvalue()
    yield ".safetensors", safetensors.torch.save(state)
    file = io.BytesIO()
    np.savez_compressed(file, a=np.arange(100.0), b=np.ones((3, 3), ">f4"))
    yield ".npz", file.getvalue()
    file = io.BytesIO()
    np.save(file, np.ones((4, 5)))
    yield ".npy", file.getvalue()
    weight = onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w")
    value = onnx.helper.make_tensor_value_info("x", 1, ["batch", 2])
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], alpha=1.0)
    graph = onnx.helper.make_graph([node], "g", [value], [value], [weight])
    yield ".onnx", onnx.helper.make_model(graph).SerializeToString()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(net()), folder / "script.pt")
        program = torch.export.export(nn.Linear(2, 3), (torch.ones(1, 2),))
        torch.export.save(program, folder / "program.pt2")
    for path in (folder / "script.pt", folder / "program.pt2"):
        yield path.suffix, path.read_bytes()
