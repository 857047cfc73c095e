"""The index of a large file in parts that can be sent, and what of it is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from engine.artifacts.contents.artifact import Artifact, Entry
from engine.artifacts.contents.shared_memory import Memory
from engine.handlers import artifacts as files
from engine.lab import Lab
from engine.protocol import (
    ArtifactEntry,
    ArtifactSnapshot,
    ArtifactTotals,
    CompareArtifactsCommand,
    OpenArtifactCommand,
    ProgramGraph,
    ProgramModule,
    ProgramNode,
    ProgramValue,
)
from engine.system.errors import LabError

NODE = ProgramNode("n", "add")


def encoded(row: object) -> int:
    return len(msgspec.msgpack.encode(row))


def test_rows_are_told_in_parts_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ArtifactEntry(f"key {k}", "value") for k in range(7)]
    each = encoded(rows[0])
    for size, lengths in ((3 * each, [3, 3, 1]), (3 * each - 1, [2, 2, 2, 1]), (1, [1] * 7)):
        monkeypatch.setattr(files, "_PART_BYTES", size)
        parts = list(files._parts(rows))
        assert [len(part) for part in parts] == lengths
        assert [row for part in parts for row in part] == rows
    assert list(files._parts([])) == [[]]


def test_a_node_that_takes_half_a_part_is_told_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    long = ProgramNode("n", "cat", "m", tuple("ab"), (), tuple(("k", "v") for _ in range(9)))
    entry = ArtifactEntry("k" * encoded(long), "value")
    monkeypatch.setattr(files, "_PART_BYTES", 2 * encoded(long))
    assert list(files._parts([long])) == [[long]]
    monkeypatch.setattr(files, "_PART_BYTES", 2 * encoded(long) - 2)
    short = files._slim(long)
    assert list(files._parts([long])) == [[short]] and short != long
    assert list(files._parts([entry, NODE])) == [[entry, NODE]]  # only nodes can be told in short
    assert list(files._parts([long, long, NODE])) == [[short, short], [NODE]]


def test_of_a_long_node_the_first_are_told() -> None:
    outputs = tuple(ProgramValue(f"o{k}", (k,), "float32") for k in range(21))
    node = ProgramNode(
        "n", "cat", "m", tuple(f"i{k}" for k in range(1234)), outputs,
        tuple((f"a{k}", "v") for k in range(6)),
    )  # fmt: skip
    short = files._slim(node)
    assert (short.name, short.op, short.module) == ("n", "cat", "m")
    assert short.inputs == node.inputs[:50] and len(short.outputs) == 20
    assert short.outputs[3] == ProgramValue("o3", None, "float32")
    assert short.attributes == (
        ("inputs", "1,234, of which the first are told"), *node.attributes[:5],
    )  # fmt: skip


def test_the_inputs_and_outputs_of_a_program_have_a_bound() -> None:
    values = tuple(ProgramValue(str(k)) for k in range(201))
    frame = files._frame(ProgramGraph(inputs=values, outputs=values[::-1], note="n"))
    assert (frame.inputs, frame.outputs) == (values[:200], values[::-1][:200])
    assert frame.note == "n"


def test_each_part_has_its_rows_by_their_kinds() -> None:
    totals = ArtifactTotals(tensors=0, elements=0, tensor_bytes=0, values=0)
    whole = ArtifactSnapshot(path="p", kind="k", title="t", size_bytes=1, totals=totals)
    entry, module = ArtifactEntry("k", "value"), ProgramModule("m", "Linear")
    told = files._with_rows(whole, [entry], 3)
    assert (told.entries, told.graph, told.left) == ((entry,), None, 3)
    whole = msgspec.structs.replace(whole, graph=ProgramGraph(note="n"))
    told = files._with_rows(whole, [NODE, entry, module], 0)
    assert told.entries == (entry,)
    assert told.graph == ProgramGraph(modules=(module,), nodes=(NODE,), note="n")


def artifact(**fields: Any) -> Artifact:
    return Artifact(**{"path": Path("a.pt"), "kind": "torch", "title": "t"} | fields)


def test_an_entry_is_told_with_all_its_facts() -> None:
    place: Any = object()
    entry = Entry(
        "k", "tensor", (2, 3), "float32", 24, place, 7, "part", "buffer", "\ud800", "note", "value"
    )  # fmt: skip
    assert files._entry(entry, Memory("other", 4, 16)) == ArtifactEntry(
        key="k", kind="tensor", shape=(2, 3), dtype="float32", size_bytes=24, offset=7,
        part="part", shares="other", role="buffer", text="\\ud800", note="note", readable=True,
        value="value", added_bytes=16,
    )  # fmt: skip
    assert not files._entry(Entry("k"), None).readable
    inexact = Memory("", 1, 4, is_exact=False)
    assert files._entry(Entry("k"), inexact).note == files._INEXACT
    assert files._entry(entry, inexact).note == f"note; {files._INEXACT}"


@pytest.mark.parametrize(("added", "rest"), [(0, ""), (1024, ", except 1,024 bytes")])
def test_what_an_entry_shares_is_told_in_words(added: int, rest: str) -> None:
    entry = ArtifactEntry("k", "tensor", shares="w", added_bytes=added)
    assert entry.sharing == f"shares memory with w{rest}"
    assert not ArtifactEntry("k", "tensor", added_bytes=added).sharing


def test_metadata_have_a_bound_and_those_left_out_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(files, "_METADATA_CHARS", 6)
    for metadata, told in (
        ({}, ()),
        ({"a": "bc", "d": "ef"}, (("a", "bc"), ("d", "ef"))),
        ({"a": "bc", "d": "efg", "h": ""}, (("a", "bc"), ("…", "2 more"))),
        ({"a": "bcdefgh", "i": "j"}, (("…", "2 more"),)),
        ({"a": "\ud800"}, (("a", "\\ud800"),)),
    ):
        assert files._metadata(artifact(metadata=metadata)) == told


def test_what_shares_memory_counts_once() -> None:
    entries = tuple(Entry(key) for key in "abcv")
    memory = {"a": Memory("", 6, 24), "b": Memory("", 1, 8), "c": Memory("a", 0, 0)}
    assert files._totals(artifact(entries=entries), memory) == ArtifactTotals(
        tensors=3, elements=7, tensor_bytes=32, values=1, nodes=0
    )
    graph = ProgramGraph(nodes=(NODE, NODE))
    assert files._totals(artifact(graph=graph), {}).nodes == 2


def test_a_file_comes_in_parts_that_say_what_is_left(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_PART_BYTES", 100)
    path = tmp_path / "a.npz"
    arrays: dict[str, Any] = {f"array{k}": np.arange(k) for k in range(5)}
    np.savez(path, **arrays)
    lab = Lab(emit=lambda snapshot: None)
    told = list(files.open_file(lab, OpenArtifactCommand(path=str(path))))
    assert len(told) > 1
    keys = [entry.key for each in told for entry in each.entries]  # type: ignore[attr-defined]
    assert sorted(keys) == [f"array{k}" for k in range(5)]
    left = 5
    for each in told:
        assert isinstance(each, ArtifactSnapshot) and each.totals.tensors == 5
        left -= len(each.entries)
        assert each.left == left
    assert left == 0


def test_two_files_are_compared_in_parts_and_the_way_there_is_told(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(files, "_PART_BYTES", 60)
    monkeypatch.setattr(files, "_TELL_EVERY_S", -1.0)
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(first, x=np.ones(3), y=np.ones(2))
    np.savez(second, x=np.ones(3), z=np.ones(2))
    lab = Lab(emit=lambda snapshot: None)
    command = CompareArtifactsCommand(path=str(first), other=str(second))
    told: list[Any] = [each for each in files.compare_files(lab, command) if each is not None]
    assert {(each.path, each.other, each.total) for each in told} == {(str(first), str(second), 3)}
    way = [each for each in told if not each.rows]
    assert [each.done for each in way] == sorted(each.done for each in way)
    assert all(each.left == 3 for each in way) and way[-1].done == 3
    parts = [each for each in told if each.rows]
    verdicts = {row.key: row.verdict for each in parts for row in each.rows}
    assert verdicts == {"x": "equal", "y": "only first", "z": "only second"}
    assert [each.left for each in parts][-1] == 0 and {each.done for each in parts} == {3}
    monkeypatch.setattr(files, "_TELL_EVERY_S", 1000.0)
    told = [each for each in files.compare_files(lab, command) if each is not None]
    assert all(each.rows for each in told)


def test_a_reading_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(emit=lambda snapshot: None)
    with pytest.raises(LabError) as raised, files.reading(lab, "/a/b.onnx"):
        raise TimeoutError
    assert str(raised.value) == "b.onnx was not read in 30 s."
    assert "too large" in raised.value.hint and "Nothing of it was loaded" in raised.value.hint
