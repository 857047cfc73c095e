"""What messages tell of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from engine.protocol import (
    Breakpoint,
    ExportPlanSnapshot,
    HeldSnapshot,
    breakpoint_words,
    shape_text,
)
from engine.protocol.exporting.formats import CASTING, DTYPES, FORMATS, KEEPING, OPSETS, row_of


@pytest.mark.parametrize(
    ("breakpoint", "words"),
    [
        (Breakpoint(), "before any node"),
        (Breakpoint(on="op", target="addmm"), "before nodes of addmm"),
        (Breakpoint(on="node", target="7", of="outgoing"), "before node 7"),
        (Breakpoint(on="module", target="net.0", condition="not_finite"),
         "module net.0 where NaN or inf comes in"),
        (Breakpoint(condition="not_finite", of="outgoing"), "any node where NaN or inf goes out"),
        (Breakpoint(condition="makes_not_finite"),
         "any node that makes NaN or inf of finite numbers"),
        (Breakpoint(condition="norm_above", threshold=0.5),
         "any node where a norm above 0.5 comes in"),
        (Breakpoint(condition="norm_below", threshold=1e-9, of="outgoing"),
         "any node where a norm below 1e-09 goes out"),
        (Breakpoint(condition="shape", shape=(2, 3)), "any node where shape (2, 3) comes in"),
    ],
)  # fmt: skip
def test_a_breakpoint_in_words(breakpoint: Breakpoint, words: str) -> None:
    assert breakpoint_words(breakpoint) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"at": "step"}, "Held after the step of line 1,234 of train, in cell 3"),
        ({"at": "update", "function": ""}, "Held before the update of line 1,234, in cell 3"),
        ({"at": "backward"}, "Held in the backward() of line 1,234 of train, in cell 3"),
        ({"at": "line"}, "Held at line 1,234 of train, in cell 3"),
        ({"at": "call"}, "Held at line 1,234 of train, in cell 3"),
        ({"at": "call", "after": "after `net`"}, "Held after `net`"),
    ],
)
def test_where_code_is_held(fields: dict[str, Any], words: str) -> None:
    given = {"file": "cell 3", "function": "train", "line": 1234, **fields}
    assert HeldSnapshot(**given).where == words


def test_the_bytes_of_an_export_are_those_after_the_cast() -> None:
    plan = ExportPlanSnapshot(
        title="net", tensors=3, float_bytes={4: 40, 8: 24}, other_bytes=7, refusals={}
    )
    assert plan.run_step == -1
    assert [plan.size_bytes(dtype) for dtype in ("", "float16", "bfloat16", "float64")] == [
        71, 33, 33, 111,
    ]  # fmt: skip


def test_the_rows_of_formats_name_their_files() -> None:
    assert set(DTYPES) == {"float16", "bfloat16", "float64"} and list(OPSETS) == [*range(18, 24)]
    assert set(CASTING) | set(KEEPING) == set(FORMATS) and not set(CASTING) & set(KEEPING)
    for key, row in FORMATS.items():
        assert row.key == key and row.is_folder == (key in ("dcp", "hf"))
        names = row.file_names(f"/a/net{row.suffix}")
        assert names[0].startswith("net") and "{" not in "".join(names)
        assert "{name}" not in row.load_lines(f"/a/net{row.suffix}")
        assert "{stem}" not in row.load_lines(f"/a/net{row.suffix}")
    on_batch = {key for key, row in FORMATS.items() if row.batch}
    assert on_batch == {"onnx", "pt2", "torchscript-trace", "torchscript-script", "zip"}
    weights = {key for key, row in FORMATS.items() if row.group == "Weights"}
    assert weights == {"pt", "safetensors", "checkpoint", "dcp", "hf"}
    assert FORMATS["script"].file_names("/a/b.c.py") == ("b.c.py", "b.c.data.pt")
    assert (
        FORMATS["zip"].load_lines("/a/net.zip").endswith("unzip net.zip -d net\npython net/run.py")
    )
    assert row_of("hf") is FORMATS["hf"] and row_of("pt", in_parts=True) is FORMATS["pt"]
    parts = row_of("hf", in_parts=True)
    assert len(parts.file_names("/a/net")) == 3 and "strict=False" in parts.load_lines("/a/net")


def test_a_shape_is_written_as_a_tuple() -> None:
    assert [shape_text(shape) for shape in ((), (5,), ("B", 3), (1, 2, 3))] == [
        "()", "(5,)", "(B, 3)", "(1, 2, 3)",
    ]  # fmt: skip
