"""Broken and hostile files: each gets a message, none runs anything, and the engine goes on."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from engine.artifacts.opening import open_artifact
from engine.protocol import (
    ArtifactSnapshot,
    ErrorSnapshot,
    OpenArtifactCommand,
    ReadValuesCommand,
    Snapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError
from tests.engine.artifacts.hostile import HOSTILE
from tests.engine.artifacts.hostile_folders import RUNS, dcp_index, dcp_of
from tests.engine.artifacts.hostile_pickles import CANARY, HARMLESS, PICKLES
from tests.engine.artifacts.hostile_programs import QUIET

OF_PYTHON = re.compile(r"Error|object is not|literal for|to unpack|indices must|codec can't")
SAYS = {
    "an ONNX that reads at a word": "where the numbers of w lie is not told in numbers",
    "an ONNX whose numbers are a pipe": "is not there",
    "an ONNX of a sparse tensor without places": "without their places",
    "a pt2 whose graphs are nested deeply": "nested more than 20 deep",
    "a pt2 of millions of values": "has more than 4,000,000 values",
    "a pt2 of a place beyond": "w reads 3 elements of a storage that has 2",
    "a pt2 that reads out of its archive": "the numbers of w are missing",
    "a pt2 with a value of no sizes": "lacks something at 'sizes'",
    "a pt2 with a node of nothing": "does not have the form that torch writes",
    "a script cut off in its pickle": "it is cut off",
    "a script with a name that is no text": "a name that cannot be decoded",
    "a script whose numbers are missing": "storage 7 are missing",
    "a script whose constants call os.system": f"asks for {os.system.__module__}.system",
    "a record that leads out": "leads out of it",
    "a record with an absolute name": "leads out of it",
    "a record of a drive": "leads out of it",
    "an index that leads out": "outside of its own folder",
    "an index with an absolute path": "outside of its own folder",
    "a DCP index that leads out": "outside of it",
    "an ONNX that reads elsewhere": "outside of its own folder",
    "an array of objects": "its elements are Python objects",
    "a zip bomb": "no such record is that large",
    "a size that is not true": "has another size than the archive says",
    "numbers that are compressed": "is compressed, which torch never does",
    "a huge header, safetensors": "its header should take",
    "a stride beyond its storage": "reads 451 elements of a storage that has 100",
    "a negative stride": "The strides of a are none",
    "a storage outside of data/": "are missing",
    "four million operations": "more than 3,000,000 operations",
    "lists that hold each other": "more entries than can be listed",
    "a DCP index that runs code": f"asks for {os.system.__module__}.system",
    "a DCP index that asks for an attribute": "asks for builtins.getattr",
    "a script that calls os.system": f"asks for {os.system.__module__}.system",
    "two records of one name": "two records have one name",
    "a record that is encrypted": "is encrypted",
    "a byteorder of no machine": "its byteorder is neither little nor big",
    "a DCP place before its file": "does not have a where .metadata says",
    "an INST of os.system": "asks for os.system",
    "a bytearray of a terabyte": "an array of bytes by its length",
}
"""What the message of some of them says: they are refused for what they do."""


@pytest.fixture(scope="module")
def engine():
    answers: list[Snapshot] = []
    session = Session(answers.append)
    yield session, answers
    session.close()


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 60 and SAYS.keys() <= HOSTILE.keys()


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_in_words_and_the_engine_goes_on(name: str, engine, tmp_path: Path) -> None:
    session, answers = engine
    path = HOSTILE[name](tmp_path)
    answers.clear()
    session.handle(OpenArtifactCommand(id=1, path=str(path)))
    (error,) = [each for each in answers if isinstance(each, ErrorSnapshot)]
    assert error.error.type == "LabError", error.error.message
    assert error.error.message and error.error.message.isprintable()
    assert SAYS.get(name, "") in f"{error.error.message} {error.error.hint}"
    assert not OF_PYTHON.search(error.error.message), "a message of Python's was passed on"
    assert not any(isinstance(each, ArtifactSnapshot) for each in answers)
    assert not list(tmp_path.rglob(CANARY))
    assert not Path(CANARY).exists()


@pytest.mark.parametrize("name", QUIET)
def test_a_program_that_cannot_be_followed_is_opened_without_its_graph(
    name: str, tmp_path: Path
) -> None:
    graph = open_artifact(QUIET[name](tmp_path)).graph
    assert graph is not None and not graph.nodes and graph.note
    if name in ("a script of a million lines", "a script of a long list"):  # it is not parsed
        assert graph.note == "Its code has more than 250,000 parts: no graph is read."


def test_numbers_that_are_none_are_refused_when_they_are_read(tmp_path: Path) -> None:
    write = dcp_of(lambda _: dcp_index("__0_0.distcp", 0, 8), b"12345678")
    artifact = open_artifact(write(tmp_path))
    with pytest.raises(LabError, match="it is cut off, or no archive"):
        artifact.tensor("a")


@pytest.mark.parametrize("name", RUNS)
def test_a_damaged_run_is_shown_with_what_is_wrong(name: str, tmp_path: Path) -> None:
    artifact = open_artifact(RUNS[name](tmp_path))
    assert artifact.kind == "run" and artifact.metadata["problem"]
    if "view" in name:
        assert "has views or triggers" in artifact.metadata["problem"]
    assert not list(tmp_path.rglob(CANARY))


def test_the_canary_sings_when_such_a_file_is_loaded(tmp_path: Path) -> None:
    """Guards the test above: plain pickle.load runs what these files hold."""
    import pickle

    path = PICKLES["os.system as a bare pickle"](tmp_path)
    pickle.loads(path.read_bytes())
    assert (tmp_path / CANARY).exists()


def test_it_tells_what_the_pickle_asked_for(tmp_path: Path) -> None:
    path = PICKLES["os.system in a zip"](tmp_path)
    with pytest.raises(LabError, match=rf"asks for {os.system.__module__}\.system"):
        open_artifact(path)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_would_exhaust_python_is_opened(name: str, tmp_path: Path) -> None:
    artifact = open_artifact(HARMLESS[name](tmp_path))
    assert artifact.entries and not artifact.tensors


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    with pytest.raises(LabError, match=r"pipe\.pt"):
        open_artifact(tmp_path / "pipe.pt")


def test_names_of_a_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    name = "\x1b[31mred"
    told = {name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    text = json.dumps(told).encode()
    path = tmp_path / "red.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    assert [entry.key for entry in open_artifact(path).entries] == ["\\x1b[31mred"]


def test_a_file_that_shrinks_while_it_is_open_is_told(engine, tmp_path: Path) -> None:
    import torch

    session, answers = engine
    path = tmp_path / "state.pt"
    torch.save({"a": torch.ones(1000)}, path)
    artifact = open_artifact(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(LabError, match="shorter than when it was opened"):
        artifact.tensor("a")
    answers.clear()
    session.handle(ReadValuesCommand(id=2, expression="a", file=str(path)))
    assert any(isinstance(each, ErrorSnapshot) for each in answers)
