"""How programs and packages come into their files: without copies of all tensors, and whole or not
at all."""

from __future__ import annotations

import signal
import sys
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from engine.exporting.examples import Example, example_of
from engine.exporting.package import Code, of_blocks, of_program, of_script, write_archive
from engine.exporting.programs import Program, exported, scripted, traced
from engine.exporting.weights import writing
from engine.system.errors import LabError

LAYERS, SIDE = 12, 512
LAYER_BYTES = 4 * SIDE * SIDE
SOURCE = b"class Model: ..."
WAYS = ["pt2", "torchscript-trace", "torchscript-script", "zip", "zip of pt2", "zip of a script"]


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return nn.Sequential(*(nn.Linear(SIDE, SIDE) for _ in range(LAYERS))).eval()


@pytest.fixture(scope="module")
def call() -> Example:
    return example_of((torch.ones(2, SIDE),), {})


def write(way: str, net: nn.Module, call: Example, path: Path) -> None:
    """Write the file as an export does."""
    if way.startswith("zip"):
        codes = {"zip of pt2": of_pt2, "zip of a script": lambda *_: of_script(scripted(net))}
        code = codes.get(way, lambda *_: of_blocks(SOURCE.decode()))(net, call)
        with writing(path) as file:
            write_archive(file, "net", code, net.state_dict(), call)
        return
    program = {"pt2": exported, "torchscript-trace": traced}.get(way, lambda *_: scripted(net))
    save(program(net, call), path)


def of_pt2(net: nn.Module, call: Example) -> Code:
    return of_program(exported(net, call))


def save(program: Program, path: Path) -> None:
    with writing(path) as file:
        program.save(file)


@pytest.mark.parametrize("way", ["pt2", "torchscript-script", "zip"])
def test_memory_holds_no_copy_of_all_tensors(way, net, call, tmp_path) -> None:
    path = tmp_path / "net"
    write(way, net, call, path)  # what torch imports for it is there
    tracemalloc.start()
    try:
        write(way, net, call, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = LAYERS * LAYER_BYTES
    assert peak < whole / 2 < whole < path.stat().st_size


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize("way", WAYS)
def test_a_disk_without_room_is_told_and_the_engine_lives(way, net, call, tmp_path) -> None:
    """torch's own writer ends the process if a write fails."""
    import resource

    path = tmp_path / "net"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * LAYER_BYTES, limits[1]))
    try:
        with pytest.raises(LabError, match="cannot be written: File too large"):
            write(way, net, call, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [file.name for file in tmp_path.iterdir()] == ["net"]
    assert path.read_bytes() == b"before"


def test_tensors_lie_in_an_archive_as_they_are_and_text_is_compressed(net, call, tmp_path) -> None:
    path = tmp_path / "net.zip"
    write("zip", net, call, path)
    with zipfile.ZipFile(path) as archive:
        kinds = {info.filename: info.compress_type for info in archive.infolist()}
        with archive.open("weights.pt") as file:
            state = torch.load(file, weights_only=True)
        assert archive.read("model.py") == SOURCE
    assert kinds["weights.pt"] == kinds["example.pt"] == zipfile.ZIP_STORED
    assert kinds["run.py"] == kinds["README.md"] == zipfile.ZIP_DEFLATED
    assert all(torch.equal(state[key], value) for key, value in net.state_dict().items())
