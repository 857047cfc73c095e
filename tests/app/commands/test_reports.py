"""What commands report, in words and as JSON, and what they refuse before an engine starts."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.commands import as_rank, inspect, inspect_file
from app.commands.exec_file import _encoding_error
from app.commands.export import _report, export_words
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.objective import _called
from app.commands.paths import format_of, require_folder_of, require_utf8
from app.commands.report import number, write_report
from app.commands.run_beginnings import Beginning
from engine.project.edits import EditError
from engine.protocol import (
    ArtifactDifference,
    ArtifactEntry,
    ArtifactSnapshot,
    ArtifactTotals,
    ErrorReport,
    ExportSnapshot,
    ModuleCall,
    ModuleRow,
    ProgramGraph,
    ProgramModule,
    ProgramNode,
    ProgramValue,
    StructureSnapshot,
    StructureTotals,
    WeightRow,
)


def test_json_goes_to_the_file_or_to_the_screen(tmp_path, capsys) -> None:
    report = {"name": "größe", "list": [1]}
    write_report(report, "-")
    text = '{\n  "name": "größe",\n  "list": [\n    1\n  ]\n}\n'
    assert capsys.readouterr().out == text
    write_report(report, tmp_path / "r.json")
    assert (tmp_path / "r.json").read_text("utf-8") == text and capsys.readouterr().out == ""
    with pytest.raises(CommandFailure, match=f"--json {tmp_path}: it is a folder"):
        write_report(report, tmp_path)
    with pytest.raises(ValueError):
        write_report({"x": math.nan}, "-")


def test_numbers_that_json_does_not_have() -> None:
    assert [number(value) for value in (0.5, math.inf, -math.inf, math.nan)] == [
        0.5, "inf", "-inf", None,
    ]  # fmt: skip


EXPORTED = ExportSnapshot(
    path="/m.onnx", format="onnx", files=(), size_bytes=1234, sha256="ab", verified=True,
    max_abs_error=0.5, max_rel_error=math.inf, batch_sizes=(1, 8), seconds=2.0, model_ms=1.23456,
    export_ms=0.12345, opset=18, differs="", notes=("One.", "Two."), keys=("w",), renaming="As is.",
)  # fmt: skip


def test_an_export_in_words_and_as_a_report() -> None:
    report = _report(EXPORTED)
    assert report == {
        "path": "/m.onnx", "format": "onnx", "files": {}, "size_bytes": 1234, "sha256": "ab",
        "verified": True, "max_abs_error": 0.5, "max_rel_error": "inf", "batch_sizes": [1, 8],
        "seconds": 2.0, "model_ms": 1.23456, "export_ms": 0.12345, "opset": 18, "differs": None,
        "unverified": None,
        "notes": ["One.", "Two."], "keys": ["w"], "renaming": "As is.",
    }  # fmt: skip
    assert json.loads(json.dumps(report)) == report
    assert export_words(report).splitlines() == [
        "wrote /m.onnx: 1,234 bytes, SHA-256 ab",
        "loaded back and compared: largest difference 0.5, relative inf; batch sizes 1, 8;"
        " 0.123 ms a call, the model 1.23 ms",
        "One.", "Two.", "As is.",
    ]  # fmt: skip
    bare = {**report, "sha256": None, "batch_sizes": [], "notes": [], "renaming": None}
    assert export_words(bare).splitlines() == [
        "wrote /m.onnx: 1,234 bytes", "loaded back and compared: largest difference 0.5",
    ]  # fmt: skip


def test_what_a_run_begins_from() -> None:
    fresh, weights = Beginning("fresh"), Beginning("weights", "/p/w.pt")
    checkpoint = Beginning("checkpoint", "/p/c\udcff.pt", 1200)
    assert [str(each) for each in (fresh, weights)] == [
        "from fresh weights", "from the weights in w.pt",
    ]  # fmt: skip
    assert str(checkpoint) == "from step 1,200 (/p/c\udcff.pt)"
    assert fresh.report() == {"from": "fresh", "path": None, "step": 0}
    assert weights.report() == {"from": "weights", "path": "/p/w.pt", "step": 0}
    assert checkpoint.report() == {"from": "checkpoint", "path": "/p/c�.pt", "step": 1200}


def test_a_process_of_torchrun_knows_its_rank(monkeypatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert as_rank.own_rank() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert (as_rank.own_rank(), as_rank.processes_here(None)) == (3, 4)
    with pytest.raises(CommandFailure, match="give it to torchrun") as refused:
        as_rank.processes_here(0)
    assert refused.value.exit_code == BAD_ARGUMENTS


def test_the_suffix_names_the_format(tmp_path) -> None:
    assert format_of(tmp_path / "m.pt2", ("pt", "pt2")) == "pt2"
    with pytest.raises(
        CommandFailure, match=r"--to m\.zip: the name must end in \.pt or \.py\."
    ) as e:
        format_of(Path("m.zip"), ("pt", "py"), "--to")
    assert e.value.exit_code == BAD_ARGUMENTS


def test_places_that_cannot_be_written_are_refused(tmp_path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "link")
    require_folder_of(tmp_path / "new.pt")
    require_folder_of(tmp_path, is_folder=True)
    require_folder_of(tmp_path / "new", is_folder=True)
    require_folder_of(tmp_path / "link", is_folder=True)
    for path, is_folder, words in (
        (tmp_path, False, "this is a folder."),
        (tmp_path / "no" / "m.pt", False, "the folder does not exist."),
        (tmp_path / "no" / "m", True, "the folder does not exist."),
        (tmp_path / "link", False, "Too many levels of symbolic links."),
    ):
        with pytest.raises(CommandFailure) as refused:
            require_folder_of(path, "--to", is_folder)
        assert str(refused.value) == f"--to {path}: {words}"
        assert refused.value.exit_code == BAD_ARGUMENTS


def test_a_name_that_is_no_utf8_is_refused(tmp_path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.pt")
    require_utf8(tmp_path)
    for option in ("", "--out"):
        with pytest.raises(CommandFailure) as refused:
            require_utf8(path, option)
        shown = f"{option} {tmp_path}/�.pt".strip()
        assert str(refused.value) == f"{shown}: the name is not valid UTF-8. Rename it."
        assert refused.value.exit_code == BAD_ARGUMENTS


@pytest.mark.parametrize(
    ("text", "kind", "arguments"),
    [
        ("HuberLoss", "nn.HuberLoss", {}),
        (" torch.nn.HuberLoss ", "nn.HuberLoss", {}),
        ("nn.HuberLoss(delta=0.5, reduction='sum')", "nn.HuberLoss",
         {"delta": 0.5, "reduction": "sum"}),
    ],
)  # fmt: skip
def test_a_loss_is_a_name_or_a_call(text, kind, arguments) -> None:
    assert _called(text) == (kind, arguments)


@pytest.mark.parametrize("text", ["", "HuberLoss(0.5)", "HuberLoss(**x)", "HuberLoss(delta=x)"])
def test_a_loss_that_is_no_call_of_values_is_refused(text) -> None:
    with pytest.raises(EditError, match="write a name, or a call with named arguments"):
        _called(text)


def test_a_file_that_cannot_be_decoded_is_told_with_its_line() -> None:
    data = b"a\nb\n\xff"
    with pytest.raises(UnicodeDecodeError) as bad:
        data.decode()
    assert _encoding_error(data, bad.value) == ErrorReport(
        type="UnicodeDecodeError", message=str(bad.value), line=3
    )
    assert _encoding_error(data, SyntaxError("no")) == ErrorReport("SyntaxError", "no")


# -- what inspect and diff say ---------------------------------------------------------------------


def test_a_structure_in_words() -> None:
    totals = StructureTotals(2, 1_234, 1_000, 4_936, 7, 28)
    call = ModuleCall(((8, 4), (8,)), ())
    modules = [
        ModuleRow("", "Net", 1_234, 4_936, 1_000, (call,), 1),
        ModuleRow("body.0", "Linear", 10, 40, 0, (call, call), 2), ModuleRow("b", "ReLU", 0, 0, 0),
    ]  # fmt: skip
    weight = WeightRow("body.0.weight", "parameter", (2, 5), "float32", "cpu", 10, 40, False)
    weights = [
        weight, replace(weight, name="b", shape=(2,), trainable=True, shared_with=("c", "d")),
        replace(weight, name="seen", kind="buffer", shape=(), dtype="int64"),
    ]  # fmt: skip
    whole = StructureSnapshot(title="net", totals=totals, batch="(8, 4)")
    told = [
        "2 modules · 1,234 parameters (1,000 trainable, 4,936 bytes) · 7 elements in buffers",
        "batch (8, 4)", "",
        "        Net            1,234  (8, 4) (8,) → none",
        "body.0  Linear            10  (8, 4) (8,) → none  ×2",
        "b       ReLU               0", "",
        "body.0.weight  (2, 5)           parameter · float32 · frozen",
        "b              (2,)             parameter · float32 · shared with c, d",
        "seen           ()               buffer · int64",
    ]  # fmt: skip
    assert inspect._in_words(whole, modules, weights).splitlines() == told
    for kind, head in (("LabError", ""), ("TypeError", "TypeError: ")):
        error = ErrorReport(kind, "no", hint="Try.", traceback="one\ntwo")
        unrun = replace(whole, batch="", unrun=error)
        assert inspect._in_words(unrun, modules[:1], []).splitlines() == [
            told[0], f"The step did not run. {head}no Try.", "one", "two", "",
            "  Net         1,234  (8, 4) (8,) → none",
        ]  # fmt: skip


def test_a_file_in_words() -> None:
    entry = ArtifactEntry("body.weight", "tensor", (8, 4), "float32", 1_280, readable=True)
    entries = [
        replace(entry, role="parameter", part="a.bin", note="A note."),
        replace(entry, key="tied", shares="body.weight"),
        ArtifactEntry("epoch", "value", dtype="int", text="3"),
        ArtifactEntry("by", "value", text="me"),
    ]
    whole = ArtifactSnapshot(
        path="/m.pt", kind="torch", title="A file", size_bytes=2_000,
        totals=ArtifactTotals(tensors=2, elements=1_064, tensor_bytes=1_280, values=2),
        metadata=(("torch", "2.13"),),
    )  # fmt: skip
    head = [
        "A file · 2,000 bytes", "2 tensors · 1,064 elements · 1,280 bytes", "torch: 2.13", "",
        "body.weight  (8, 4)           float32 · 1,280 bytes · parameter · a.bin · A note.",
        "tied         (8, 4)           float32 · 1,280 bytes · shares memory with body.weight",
    ]  # fmt: skip
    words = inspect_file._in_words
    assert words(whole, entries, [], []).splitlines() == [*head, "", "epoch  3", "by     me"]
    assert words(whole, entries[:2], [], []).splitlines() == head
    x, y = ProgramValue("x", ("batch", 4), "float32"), ProgramValue("y", None, "")
    graph = ProgramGraph(inputs=(x, y), outputs=(), note="No shapes.")
    nodes = [
        ProgramNode("a", "aten.linear", "body", ("x",), (x,)),
        ProgramNode("b", "relu", "", ("a",), (y,)),
    ]
    modules = [ProgramModule("", "Net"), ProgramModule("body", "Sequential")]
    assert words(replace(whole, graph=graph), [], modules, nodes).splitlines() == [
        *head[:3], "", "", "inputs: x (batch, 4) float32, y", "outputs: none", "",
        "aten.linear  x (batch, 4) float32  body (Sequential)", "relu         y", "No shapes.",
    ]  # fmt: skip


def test_differences_in_words() -> None:
    rows = [
        ArtifactDifference("a", "different", "(2,) float32", "(2,) float32", 0.5, math.inf),
        ArtifactDifference("bb", "equal", "x", "x", 0.0, 0.0),
        ArtifactDifference("c", "only second", "", "(1,) int64"),
        ArtifactDifference("d", "only first", "(1,) int8", ""),
        ArtifactDifference("e", "shape", "(1,)", "(2,)", note="A note."),
        ArtifactDifference("f", "different", "3", "4"),
    ]
    differing = [rows[0], *rows[2:]]
    only = inspect_file._JSON.get
    assert inspect_file._difference_in_words(rows, differing).splitlines() == [
        "6 keys: 1 equal, 5 different",
        f"a  {only('different', 'different')} · max |a − b| 0.5 · relative inf",
        f"c  {only('only second', 'only second')}: (1,) int64",
        f"d  {only('only first', 'only first')}: (1,) int8",
        f"e  {only('shape', 'shape')}: (1,) and (2,) · A note.", "f  3 and 4",
    ]  # fmt: skip
    told = inspect_file._difference(rows[0])
    assert told["a"] == told["b"] == "(2,) float32"
    assert (told["max_absolute"], told["max_relative"]) == (0.5, "inf")
    missing = inspect_file._difference(rows[2])
    assert (missing["a"], missing["max_absolute"]) == (None, None) and "note" not in missing
    assert inspect_file._difference(rows[4])["note"] == "A note."


def test_a_value_of_a_program_need_not_have_a_shape() -> None:
    told = inspect_file._value(ProgramValue("x", None, "int"))
    assert told == {"name": "x", "shape": None, "dtype": "int"}
    assert inspect_file._value(ProgramValue("y", (2, 3), "float32"))["shape"] == [2, 3]
