"""Project files: a saved project is read back equal; a file that is none is refused with a reason
and stays as it is."""

from __future__ import annotations

import hashlib
import json
import keyword
import math
import os
import stat
import string
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.project import atomic, catalogue, edits, files, limits
from engine.project.document import (
    FORMAT_VERSION,
    Block,
    Cell,
    DataSetup,
    Model,
    Project,
    TrainingSetup,
    ViewState,
    Wire,
    replace,
)
from engine.project.files import FileProblem
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from tests.examples import examples

integers = st.integers(-limits.MAX_INT, limits.MAX_INT)
numbers = st.one_of(integers, st.floats(allow_nan=False))
values = st.one_of(
    st.none(), st.booleans(), numbers, st.text(), st.lists(numbers, max_size=4).map(tuple)
)
identifiers = st.text(string.ascii_letters, min_size=1, max_size=8).filter(
    lambda name: not keyword.iskeyword(name)
)
coordinates = st.floats(-limits.MAX_POSITION, limits.MAX_POSITION)


def params_of(known: tuple[catalogue.Param, ...]) -> st.SearchStrategy:
    names = [param.name for param in known]
    return st.dictionaries(st.sampled_from(names), values) if names else st.just({})


setups = st.sampled_from(list(catalogue.datasets())).flatmap(
    lambda data: st.sampled_from(list(catalogue.optimizers())).flatmap(
        lambda optimizer: st.builds(
            TrainingSetup,
            data=st.builds(
                DataSetup, kind=st.just(data), params=params_of(catalogue.datasets()[data].params)
            ),
            loss=st.sampled_from(list(catalogue.losses())),
            optimizer=st.just(optimizer),
            optimizer_params=params_of(catalogue.optimizers()[optimizer]),
            batch_size=st.integers(1, limits.MAX_BATCH_SIZE),
            epochs=st.integers(1, limits.MAX_EPOCHS),
            seed=st.integers(0, limits.MAX_SEED),
        )
    )
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    names = draw(st.lists(identifiers, unique=True, max_size=6))
    kinds = [draw(st.sampled_from(list(catalogue.kinds()))) for _ in names]
    blocks = []
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        known = [p.name for p in catalogue.kind(kind).params if p.name != "inputs"]
        params = draw(st.dictionaries(st.sampled_from(known), values)) if known else {}
        blocks.append(Block(f"id{i}", kind, name, params, draw(coordinates), draw(coordinates)))
    outputs = [(b.id, p.name) for b in blocks for p in catalogue.ports(b)[1]]
    inputs = [(b.id, p.name) for b in blocks for p in catalogue.ports(b)[0]]
    wires = []
    if outputs and inputs:
        for end in draw(st.lists(st.sampled_from(inputs), unique=True)):
            wires.append(Wire(*draw(st.sampled_from(outputs)), *end))
    return Model(tuple(blocks), tuple(wires))


projects = st.builds(
    Project,
    name=st.text(),
    model=models(),
    training=setups,
    cells=st.lists(st.builds(Cell, id=st.text(), source=st.text()), max_size=3).map(tuple),
    subject=st.one_of(
        st.just(CanvasSubject()),
        st.builds(ConsoleSubject, identifiers),
        st.builds(FileSubject, identifiers, identifiers),
    ),
    objective=st.builds(Objective, *[st.text()] * 3, *[st.booleans()] * 2),
    view=st.builds(
        ViewState,
        canvas_zoom=st.floats(limits.MIN_ZOOM, limits.MAX_ZOOM),
        canvas_center=st.tuples(coordinates, coordinates),
    ),
)


@given(projects)
@settings(max_examples=examples(20))
def test_any_project_comes_back_as_it_was(project: Project):
    text = files.dumps(project)
    assert files.loads(text.encode()) == project
    assert files.dumps(files.loads(text.encode())) == text


def test_nan_comes_back():
    project = Project(training=TrainingSetup(optimizer_params={"lr": math.nan}))
    loaded = files.loads(files.dumps(project).encode())
    assert repr(loaded.training.optimizer_params) == "{'lr': nan}"


def test_the_file_is_json_that_people_can_read(tmp_path):
    project, first = edits.add_block(Project(name="Digits"), "nn.Linear", 0, 0)
    project, second = edits.add_block(project, "nn.ReLU", 240, 0)
    wire = Wire(first, "output", second, "input")
    project = edits.connect(project, wire)
    files.save(project, tmp_path / "a.tlab")
    text = (tmp_path / "a.tlab").read_text(encoding="utf-8")
    assert list(json.loads(text))[:3] == ["format", "version", "name"]
    assert text.splitlines()[1:3] == ['  "format": "tensorlab",', '  "version": 4,']
    assert [line for line in text.splitlines() if '"source_port"' in line] == [
        f"      {json.dumps(msgspec.to_builtins(wire))}"
    ]
    assert max(map(len, text.splitlines())) <= 110


def test_a_small_project_word_for_word():
    project, _ = edits.add_block(Project(name="A"), "nn.ReLU", 0, 8)
    setup = TrainingSetup(optimizer_params={"eps": math.inf})
    assert files.dumps(replace(project, training=setup)) == (
        """\
{
  "format": "tensorlab",
  "version": 4,
  "name": "A",
  "model": {
    "blocks": [
      {"id": "b1", "kind": "nn.ReLU", "name": "relu1", "params": {}, "x": 0.0, "y": 8.0}
    ],
    "wires": []
  },
  "training": {
    "data": {
      "kind": "digits",
      "params": {},
      "validation_fraction": 0.2,
      "split_seed": 0,
      "stratified": true,
      "path": "",
      "columns": {},
      "transforms": [],
      "loading": {
        "shuffle": true,
        "balanced": false,
        "drop_last": false,
        "workers": null,
        "prefetch_factor": 2,
        "pin_memory": false,
        "persistent_workers": false,
        "timeout": 0.0,
        "start_method": "default",
        "in_order": true,
        "padding": "none",
        "padding_value": 0.0,
        "gives": "nothing",
        "sampler": "",
        "batch_sampler": "",
        "worker_init_fn": "",
        "generator": "",
        "collate_fn": ""
      },
      "points": [],
      "hold_out": false
    },
    "loss": "nn.CrossEntropyLoss",
    "optimizer": "optim.Adam",
    "optimizer_params": {
      "eps": {"$float": "inf"}
    },
    "batch_size": 64,
    "epochs": 20,
    "seed": 0,
    "device": "cpu",
    "schedule": {"kind": "", "params": {}, "each": "epoch", "warmup": 0, "warmup_from": 0.01, "parts": []},
    "accumulate": 1,
    "clip_norm": 0.0,
    "clip_value": 0.0,
    "precision": "float32",
    "order": ["zero_grad", "forward", "loss", "backward", "step"],
    "hold": {
      "not_finite": false,
      "loss_spike": 0.0,
      "gradient_norm": 0.0,
      "ratio_above": 0.0,
      "ratio_below": 0.0,
      "dead_units": 0.0,
      "unchanged": 0
    },
    "loss_params": {},
    "groups": [],
    "decay": "all",
    "stopping": {"figure": "validation loss", "patience": 0, "min_delta": 0.0},
    "averaging": {
      "kind": "none",
      "decay": 0.999,
      "start": 0,
      "swa_lr": 0.0,
      "anneal_epochs": 10,
      "anneal_strategy": "cos"
    },
    "processes": 1,
    "deterministic": false,
    "compile": false,
    "recomputed": []
  },
  "cells": [],
  "subject": {"type": "canvas"},
  "objective": {"data": "", "validation": "", "step": "", "of_setup": false, "loss_of_setup": false},
  "view": {
    "workspace": "model",
    "canvas_zoom": 1.0,
    "canvas_center": [0.0, 0.0]
  }
}
"""  # noqa: E501
    )


def test_a_line_has_100_characters_at_most_where_it_can_be_broken():
    def line(stem: int) -> str:
        cell = Cell("c1", "x" * stem)
        return files.dumps(Project(cells=(cell,)))

    spare = 100 - len('    {"id": "c1", "source": ""}')
    assert f'    {{"id": "c1", "source": "{"x" * spare}"}}\n' in line(spare)
    assert f'      "source": "{"x" * (spare + 1)}"\n    }}\n' in line(spare + 1)


def test_moving_one_block_changes_one_line():
    project, block_id = edits.add_block(Project(), "nn.Linear", 0, 0)
    before = files.dumps(project).splitlines()
    after = files.dumps(edits.move_blocks(project, {block_id: (8, 0)})).splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def document(**changes: object) -> dict:
    project, _block_id = edits.add_block(Project(), "nn.Linear", 0, 0)
    fields = json.loads(files.dumps(project))
    return {**fields, **changes}


def with_block(**changes: object) -> dict:
    fields = document()
    fields["model"]["blocks"][0].update(changes)
    return fields


def with_wire(**changes: object) -> dict:
    fields = document()
    project, relu = edits.add_block(Project(), "nn.ReLU", 0, 0)
    block = msgspec.to_builtins(project.model.block(relu))
    fields["model"]["blocks"].append({**block, "id": "b2"})
    wire = {"source": "b1", "source_port": "output", "target": "b2", "target_port": "input"}
    fields["model"]["wires"] = [{**wire, **changes}]
    return fields


def with_training(**changes: object) -> dict:
    fields = document()
    return {**fields, "training": {**fields["training"], **changes}}


def deep(levels: int) -> list:
    found: list = []
    for _ in range(levels):
        found = [found]
    return found


WHOLE = files.dumps(Project()).encode()

FAULTS = {
    "empty": (b"", "", "empty"),
    "binary": (b"\x1f\x8b\x08\x00\xff\xfe", "", "not a text file"),
    "picture": (b"\x89PNG\r\n\x1a\n\xff\xfe", "", "a picture, not a project"),
    "half written": (WHOLE[: len(WHOLE) // 2], "", "only a part"),
    "last bracket missing": (WHOLE.rstrip()[:-1], "", "only a part"),
    "damaged": (WHOLE.replace(b'"version": 4', b'"version": !'), "", "damaged at line 3"),
    "foreign": ({"cells": [], "nbformat": 4}, "format", "not a Tensor Lab project"),
    "a list": ([1, 2], "format", "not a Tensor Lab project"),
    "newer": (document(version=FORMAT_VERSION + 1), "version", "Update Tensor Lab"),
    "older than any": (document(version=-1), "version", "-1"),
    "no version": ({"format": "tensorlab"}, "version", "version"),
    "version in words": (document(version="one"), "version", "'one'"),
    "version true": (document(version=True), "version", "True"),
    "unknown field": (document(colour="red"), "", "colour"),
    "unknown field inside": (with_block(colour="red"), "model.blocks[0]", "colour"),
    "wrong type": (with_block(x="left"), "model.blocks[0].x", "float"),
    "wrong type of parameter": (
        with_block(params={"bias": True, "in_features": {"a": 1}}),
        "model.blocks[0].params.in_features",
        "object",
    ),
    "missing field": (
        document(model={"blocks": [{"id": "b1", "name": "a"}]}), "model.blocks[0]", "kind",
    ),
    "unknown kind": (with_block(kind="nn.Nothing"), "model.blocks[0].kind", "nn.Nothing"),
    "unknown parameter": (
        with_block(params={"wings": 2}), "model.blocks[0].params.wings", "no such parameter",
    ),
    "wire from nowhere": (with_wire(source="b7"), "model.wires[0].source", "b7"),
    "wire to nowhere": (with_wire(target="b7"), "model.wires[0].target", "b7"),
    "wire from no port": (with_wire(source_port="up"), "model.wires[0].source_port", "up"),
    "wire to no port": (with_wire(target_port="up"), "model.wires[0].target_port", "up"),
    "too deep": (b"[" * 100_000, "", "deep"),
    "deep": (b"[" * 500 + b"]" * 500, "", "deep"),
    "deep inside": (with_block(params={"bias": deep(500)}), "", "deep"),
    "place no number": (with_block(x=math.nan), "model.blocks[0].x", "finite"),
    "place without end": (with_block(y=math.inf), "model.blocks[0].y", "finite"),
    "place no number in our way": (with_block(x={"$float": "nan"}), "model.blocks[0].x", "between"),
    "place far away": (with_block(x=1e12), "model.blocks[0].x", "between"),
    "zoom no number": (document(view={"canvas_zoom": math.nan}), "view.canvas_zoom", "finite"),
    "zoom of nothing": (document(view={"canvas_zoom": 0.0}), "view.canvas_zoom", "between"),
    "middle far away": (
        document(view={"canvas_center": [0.0, -1e12]}), "view.canvas_center[1]", "between",
    ),
    "more than 64 bits": (
        with_block(params={"in_features": 2**63}), "model.blocks[0].params.in_features", "64 bits",
    ),
    "more digits than Python reads": (
        WHOLE.replace(b'"seed": 0', b'"seed": ' + b"9" * 5000), "training.seed", "64 bits",
    ),
    "version of many digits": (
        WHOLE.replace(b'"version": 4', b'"version": ' + b"9" * 5000), "version", "64 bits",
    ),
    "half a character": (document(name="\ud800"), "name", "surrogate"),
    "half a character in a key": (with_block(params={"\udfff": 1}), "model.blocks[0].params",
                                  "surrogate"),
    "name with Python behind": (
        with_block(name="x\nimport os; os.system('true')"), "model.blocks[0].name", "Python name",
    ),
    "name of no characters": (with_block(name=""), "model.blocks[0].name", "needs a name"),
    "name of Python's": (with_block(name="class"), "model.blocks[0].name", "Python keyword"),
    "private name": (with_block(name="_modules"), "model.blocks[0].name", "underscore"),
    "name that Python changes": (with_block(name="\ufb01rst"), "model.blocks[0].name", "first"),
    "long name of the project": (document(name="x" * 1001), "name", "1,001 characters"),
    "long id": (with_block(id="x" * 1001), "model.blocks[0].id", "1,001 characters"),
    "long id of a cell": (
        document(cells=[{"id": "a", "source": ""}, {"id": "x" * 1001, "source": ""}]),
        "cells[1].id", "1,001 characters; at most 1,000 are allowed",
    ),
    "long word": (
        with_block(params={"in_features": "x" * 1001}), "model.blocks[0].params.in_features",
        "1,001 characters",
    ),
    "long device": (with_training(device="x" * 1001), "training.device", "1,001 characters"),
    "long name": (with_block(name="x" * 2000), "model.blocks[0].name", "2,000 characters"),
    "no id": (with_block(id=""), "model.blocks[0].id", "id"),
    "unknown loss": (with_training(loss="nn.Nothing"), "training.loss", "nn.Nothing"),
    "unknown optimizer": (with_training(optimizer="optim.No"), "training.optimizer", "optim.No"),
    "unknown data set": (with_training(data={"kind": "no"}), "training.data.kind", "no"),
    "unknown option": (
        with_training(optimizer_params={"wings": 2}), "training.optimizer_params.wings", "no such",
    ),
    "all held out": (
        with_training(data={"validation_fraction": 1.0}),
        "training.data.validation_fraction",
        "0.2",
    ),
    "no epochs": (with_training(epochs=0), "training.epochs", "between"),
    "endless": (with_training(epochs=10**9), "training.epochs", "between"),
    "negative seed": (with_training(seed=-1), "training.seed", "between"),
    "no batch": (with_training(batch_size=0), "training.batch_size", "between"),
    "many entries": (
        with_block(params={"in_features": [1] * 5000}), "model.blocks[0].params.in_features",
        "5,000 entries",
    ),
}  # fmt: skip


def test_texts_may_be_as_long_as_the_limit():
    fields = with_block(id="b" * 1000, name="n" * 1000, params={"in_features": "x" * 1000})
    fields |= {"name": "p" * 1000, "cells": [{"id": "c" * 1000, "source": "x" * 10_000}]}
    project = files.loads(json.dumps(fields).encode())
    assert (
        len(project.name) == len(project.model.blocks[0].name) == len(project.cells[0].id) == 1000
    )


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_at_fault_says_what_and_where_and_stays_untouched(case, tmp_path):
    content, field, words = FAULTS[case]
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path = tmp_path / "project.tlab"
    path.write_bytes(data)
    with pytest.raises(FileProblem) as caught:
        files.load(path)
    assert words in str(caught.value)
    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "The file is empty."),
        (b" \n", "The file is empty."),
        (b"\xff", "This is not a text file, so it is not a Tensor Lab project."),
        (b'{"a": "b', "The file ends early, at line 1, column 7: only a part of it was written."),
        (b'{"a": 1,\n', "The file ends early, at line 2, column 1: only a part of it was"
                        " written."),
        (b'{"a": 1 "b": 2}', "The file is damaged at line 1, column 9: Expecting ',' delimiter."),
        (b"[" * 100_000, "The file is nested too deeply for a Tensor Lab project."),
        (b"{}", "format: This is not a Tensor Lab project: “tensorlab” is expected here."),
        (b'{"format": "tensorlab", "version": 5}',
         "version: The file has format version 5; this Tensor Lab reads up to 4. Update Tensor Lab"
         " to open it."),
        (b'{"format": "tensorlab", "version": null}',
         "version: A format version is expected here, not None."),
        (b'{"format": "tensorlab", "version": 0}', "blocks: Missing in a file of version 0."),
        (b'{"format": "tensorlab", "version": 0, "blocks": [], "wires": 5}',
         "The file does not follow format version 0: 'int' object is not iterable."),
        (b'{"format": "tensorlab", "version": 0, "blocks": [], "wires": [["a", "b"]]}',
         "The file does not follow format version 0: zip() argument 2 is shorter than argument"
         " 1."),
        (b'{"format": "tensorlab", "version": 4, "name": {"$float": "1.5"}}',
         "name: Expected `str`, got `object`"),
    ],
)  # fmt: skip
def test_a_fault_word_for_word(content, words):
    with pytest.raises(FileProblem) as caught:
        files.loads(content)
    assert str(caught.value) == words


def test_what_a_file_wrote_is_cut_in_the_message():
    for fields in ({"9" * 5_000: 1}, {"model": {"blocks": [{"9" * 5_000: 1}]}}):
        document = {"format": "tensorlab", "version": 1, **fields}
        with pytest.raises(FileProblem) as problem:
            files.loads(json.dumps(document).encode())
        assert "999…" in str(problem.value) and len(str(problem.value)) < 1_000


def test_special_numbers_come_back_wherever_they_are():
    params = {"lr": math.inf, "betas": (1.0, -math.inf)}
    project = Project(training=TrainingSetup(optimizer_params=params))
    text = files.dumps(project)
    assert '"lr": {"$float": "inf"}' in text and '{"$float": "-inf"}' in text
    assert files.loads(text.encode()) == project


def test_twins_are_told():
    fields = document()
    block = fields["model"]["blocks"][0]
    fields["model"]["blocks"].append({**block, "name": "other"})
    with pytest.raises(FileProblem, match=r"model\.blocks\[1\]\.id"):
        files.loads(json.dumps(fields).encode())
    fields["model"]["blocks"][1] = {**block, "id": "b2"}
    with pytest.raises(FileProblem, match=r"model\.blocks\[1\]\.name"):
        files.loads(json.dumps(fields).encode())
    fields = with_wire()
    fields["model"]["wires"] *= 2
    with pytest.raises(FileProblem, match=r"model\.wires\[1\]"):
        files.loads(json.dumps(fields).encode())


def test_a_missing_file_is_no_crash(tmp_path):
    with pytest.raises(FileProblem) as caught:
        files.load(tmp_path / "gone.tlab")
    assert str(caught.value) == "The file cannot be read: No such file or directory."


def test_version_0_is_brought_forward():
    old = {
        "format": "tensorlab",
        "version": 0,
        "name": "Old",
        "blocks": [
            {"id": "a", "kind": "Input", "name": "x", "params": {"shape": [1, 8, 8]}},
            {"id": "b", "kind": "nn.Flatten", "name": "flatten1"},
        ],
        "wires": [["a", "x", "b", "input"]],
        "training": {"data": "moons", "epochs": 3},
    }
    del old["training"]["epochs"]
    assert files.loads(json.dumps(old).encode()).training.epochs == TrainingSetup().epochs
    old["training"] = {"epochs": 3}
    assert files.loads(json.dumps(old).encode()).training == TrainingSetup(epochs=3)
    del old["training"]
    assert files.loads(json.dumps(old).encode()).training == TrainingSetup()
    old["training"] = {"data": "moons", "epochs": 3}
    project = files.loads(json.dumps(old).encode())
    assert project.model.blocks[1] == Block("b", "nn.Flatten", "flatten1", {}, 0.0, 0.0)
    assert project.model.wires == (Wire("a", "x", "b", "input"),)
    assert project.training == TrainingSetup(data=DataSetup(kind="moons"), epochs=3)
    assert old["version"] == 0
    assert files.migrate(old)["version"] == 4


def test_version_3_goes_on_without_sharding():
    old = {**json.loads(WHOLE), "version": 3}
    old["training"] = {**old["training"], "sharding": "none"}
    assert files.loads(json.dumps(old).encode()) == files.loads(WHOLE)
    old["training"]["sharding"] = "FSDP2"
    with pytest.raises(FileProblem, match="no longer divides a model between processes") as caught:
        files.loads(json.dumps(old).encode())
    assert caught.value.field == "training.sharding"


def test_version_0_names_what_is_missing():
    with pytest.raises(FileProblem) as caught:
        files.loads(b'{"format": "tensorlab", "version": 0}')
    assert caught.value.field == "blocks"


def test_saving_keeps_permissions_and_links(tmp_path):
    real = tmp_path / "real.tlab"
    link = tmp_path / "link.tlab"
    files.save(Project(), real)
    os.chmod(real, 0o640)
    link.symlink_to(real)
    files.save(Project(name="Two"), link)
    assert link.is_symlink()
    assert files.load(real).name == "Two"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.tlab", "real.tlab"]


def test_a_new_file_has_the_permissions_that_the_system_gives(tmp_path):
    before = os.umask(0o027)
    try:
        atomic.write_atomically(tmp_path / "a", b"1")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_file_is_on_the_disk_before_it_takes_the_name_and_the_name_after(tmp_path, monkeypatch):
    path, steps = tmp_path / "a", []
    path.write_bytes(b"old")
    fsync, rename = os.fsync, os.replace

    def seen_fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        steps.append("folder" if stat.S_ISDIR(status.st_mode) else status.st_size)
        fsync(descriptor)

    def seen_replace(source: str, target: os.PathLike[str]) -> None:
        assert os.path.dirname(source) == str(tmp_path) and path.read_bytes() == b"old"
        steps.append("renamed")
        rename(source, target)

    monkeypatch.setattr(atomic.os, "fsync", seen_fsync)
    monkeypatch.setattr(atomic.os, "replace", seen_replace)
    opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    atomic.write_atomically(path, b"12345")
    assert steps == [5, "renamed", "folder"] and path.read_bytes() == b"12345"
    assert not opened or len(os.listdir("/proc/self/fd")) == opened


def test_a_folder_is_not_opened_where_the_system_cannot(tmp_path, monkeypatch):
    with monkeypatch.context() as windows:
        windows.setattr(atomic.os, "name", "nt")
        windows.setattr(atomic.os, "open", None)
        atomic.sync_folder(tmp_path)


def test_a_save_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a.tlab"
    files.save(Project(), path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.save(replace(Project(), name="Two"), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.tlab"]


def test_half_a_character_that_was_pasted_is_replaced_when_saved(tmp_path):
    project = Project(cells=(Cell("c1", "x = '\ud800'"), Cell("c2", "y = '\ud83d\ude00'")))
    files.save(project, tmp_path / "a.tlab")
    assert [cell.source for cell in files.load(tmp_path / "a.tlab").cells] == [
        "x = '\ufffd'",
        "y = '😀'",
    ]


def test_what_is_no_regular_file_is_neither_read_nor_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    device = tmp_path / "device.tlab"
    device.symlink_to("/dev/null")
    with pytest.raises(FileProblem, match="cannot be read: Is a directory"):
        files.load(tmp_path)
    with pytest.raises(OSError, match="it is a folder, not a regular file"):
        files.save(Project(), tmp_path)
    for path, kind in ((pipe, "a pipe"), (device, "a device")):
        with pytest.raises(FileProblem, match=f"cannot be read: it is {kind}, not a regular file"):
            files.load(path)
        with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
            files.save(Project(), path)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(device.stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["device.tlab", "pipe"]


def test_names_that_no_file_can_have_are_told(tmp_path):
    with pytest.raises(FileProblem, match="no file can have this name"):
        files.load(tmp_path / "a\0b")
    with pytest.raises(OSError, match="no file can have this name"):
        files.save(Project(), tmp_path / "a\0b")
    circle = tmp_path / "circle.tlab"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="symbolic links"):
        files.save(Project(), circle)


def test_a_huge_file_is_not_read(tmp_path):
    with open(tmp_path / "huge.tlab", "wb") as file:
        file.truncate(limits.MAX_FILE_BYTES + 1)
    with pytest.raises(FileProblem, match=r"it has 67,108,865 bytes, more than 67,108,864"):
        files.load(tmp_path / "huge.tlab")


def test_edits_stay_within_what_a_file_may_hold():
    project, block_id = edits.add_block(Project(), "nn.Linear", 1e12, -math.inf)
    project = edits.move_blocks(project, {block_id: (-1e300, 5)})
    project, _ = edits.add_fragment(project, project.model, 1e12, 1e12)
    assert files.loads(files.dumps(project).encode()) == project
    assert project.model.blocks[0].x == -limits.MAX_POSITION
    for field, value in (("seed", 2**32), ("epochs", 10**9), ("batch_size", 10**9)):
        with pytest.raises(edits.EditError, match=f"{field} is .* at most"):
            edits.set_training(project, replace(project.training, **{field: value}))


@pytest.mark.parametrize("expression", ["(x, y)", "loader", "Pairs(10)"])
def test_data_of_the_console_is_no_path(expression: str, tmp_path: Path) -> None:
    training = TrainingSetup(data=DataSetup("console", path=expression))
    files.save(Project(training=training), tmp_path / "p.tlab")
    assert files.load(tmp_path / "p.tlab").training == training


def test_a_file_that_console_data_names_moves_with_the_project(tmp_path: Path) -> None:
    data = DataSetup("console", path=f"{tmp_path}/data.py:loader")
    files.save(Project(training=TrainingSetup(data=data)), tmp_path / "p.tlab")
    assert str(tmp_path) not in (tmp_path / "p.tlab").read_text()
    (tmp_path / "there").mkdir()
    (tmp_path / "p.tlab").rename(tmp_path / "there" / "p.tlab")
    found = files.load(tmp_path / "there" / "p.tlab").training.data.path
    assert found == f"{tmp_path}/there/data.py:loader"


def test_a_digest_is_that_of_a_regular_file_and_a_private_folder_is_the_users_own(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert atomic.digest_of(tmp_path / "a", 3) == hashlib.sha256(b"abc").hexdigest()
    for path, most in ((tmp_path / "a", 2), (tmp_path, 9), (tmp_path / "none", 9)):
        assert atomic.digest_of(path, most) is None
    folder = tmp_path / "in" / "side"
    atomic.private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    (folder / "kept").write_text("")
    atomic.private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and (folder / "kept").exists()


def test_weights_and_runs_lie_beside_the_file(tmp_path):
    path = tmp_path / "net.tlab"
    assert files.weights_file(path) == tmp_path / "net.safetensors"
    assert files.runs_folder(path) == str(tmp_path / "net.runs")
    assert files.runs_folder("") == ""
    assert files.runs_folder(os.fsdecode(b"\xff.tlab")) == ""
    assert Path(files.runs_folder("net.tlab")).is_absolute()
