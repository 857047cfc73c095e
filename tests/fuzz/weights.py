"""Broken weight files and checkpoints: each is refused in words, or loads and can be trained on."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from engine.exporting import check_fits, load_weights
from engine.project.document import DataSetup, TrainingSetup
from engine.protocol import TrainingSnapshot, decode_snapshot, encode_snapshot
from engine.system.errors import LabError
from engine.tensors.plain import tensor_problem
from engine.training.checkpoints import checkpoint_files
from engine.training.checkpoints.checkpoint_fields import encode
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun
from tests.fuzz.mutate import CANARY, broken_bytes, damaged, nasty

SETUP = TrainingSetup(data=DataSetup("moons", {"samples": 50}), batch_size=16, epochs=2)


class Payload:
    def __reduce__(self):
        return os.mkdir, (CANARY,)


def make_model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


class Weights:
    """Makes one broken file a call, and tries it."""

    def __init__(self, random_: random.Random, folder: Path) -> None:
        self._random, self._folder = random_, folder
        loop = TrainingLoop(make_model(), SETUP)
        steps = loop.steps()
        for _ in range(4):
            next(steps)
        steps.close()
        self._fields = encode(loop.checkpoint("run"))
        self._state = dict(loop.model.state_dict())
        self._names = 0

    def make(self) -> Path:
        random_ = self._random
        self._names += 1
        kind = random_.choice(("state", "state", "safetensors", "fields", "fields", "fields"))
        if kind == "safetensors":
            path = self._folder / f"{self._names}.safetensors"
            state = {key: tensor for key, tensor in self._state.items() if random_.random() < 0.95}
            path.write_bytes(broken_bytes(safetensors.torch.save(state), random_))
            return path
        path = self._folder / f"{self._names}.pt"
        buffer = io.BytesIO()
        try:
            value = self._broken(self._state if kind == "state" else self._fields)
            torch.save(value, buffer, _use_new_zipfile_serialization=random_.random() < 0.8)
        except (RecursionError, ValueError, UnicodeEncodeError, RuntimeError):
            torch.save(self._fields, buffer := io.BytesIO())  # torch cannot write such a value
        data = buffer.getvalue()
        path.write_bytes(broken_bytes(data, random_) if random_.random() < 0.3 else data)
        return path

    def _broken(self, value: Any) -> Any:
        random_ = self._random
        if random_.random() < 0.5:
            value = damaged(value, random_)
        for _ in range(random_.choice((0, 1, 1, 2))):
            if not isinstance(value, dict) or not value:
                break
            value = dict(value)
            key = random_.choice(list(value))
            inner = value[key]
            if isinstance(inner, dict) and inner and random_.random() < 0.6:
                value[key] = self._broken(inner)
            else:
                value[key] = self._strange(inner)
        return value

    def _strange(self, value: Any) -> Any:
        random_ = self._random
        tensor = torch.ones(2, 3) if tensor_problem(value) else value
        return random_.choice(
            (
                nasty(random_),
                Payload(),
                tensor.to(torch.complex64),
                tensor.to(torch.int64) if not tensor.is_complex() else tensor,
                tensor.reshape(-1)[:1],
                tensor.unsqueeze(0),
                torch.empty(0),
                torch.full((1,), float("nan")).expand(10**6),
                torch.ones(2, 2).to_sparse(),
                torch.ones(1, device="meta"),
                torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
                torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
                nn.Parameter(torch.ones(3)),
                tensor.shape,
                [tensor],
                b"\xff",
                torch.float32,
            )
        )

    @staticmethod
    def attempt(path: Path) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        outcome = "refused"
        try:
            state = load_weights(path)
            model = make_model()
            check_fits(state, model, path.name)
            model.load_state_dict(state)
            outcome = "opened"
        except LabError as error:
            _require_words(error, path)
        if path.suffix == ".safetensors":
            return outcome
        try:
            saved = checkpoint_files.load(path)
            run = TrainingRun(TrainingLoop(make_model(), SETUP), saved, str(path))
        except LabError as error:
            _require_words(error, path)
            return outcome
        steps = run.steps()
        for _ in range(2):
            next(steps, None)
        steps.close()
        run.close()
        snapshot = decode_snapshot(encode_snapshot(run.snapshot("running")))
        run.files.writer.close()  # it gives signs of life until then
        assert isinstance(snapshot, TrainingSnapshot)
        if snapshot.error is not None:
            assert not snapshot.error.traceback, snapshot.error.traceback
        return "opened"


def _require_words(error: LabError, path: Path) -> None:
    assert str(error).strip() and error.hint
    str(error).encode()
    assert path.name in str(error) or str(error).startswith("The checkpoint"), str(error)
