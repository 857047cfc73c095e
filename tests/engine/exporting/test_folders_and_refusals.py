"""Folders that are written whole or not at all, and what is said of a model that no file holds."""

from __future__ import annotations

import linecache
import os
from pathlib import Path

import pytest

from engine.exporting.folders import new_folder, sizes
from engine.exporting.refusals import EXPORT, ONNX, SCRIPT, TRACE, refusal
from engine.system.errors import LabError

OWN = ("*.safetensors", "config.json")


def test_a_folder_is_there_whole_and_replaces_only_an_earlier_export(tmp_path: Path) -> None:
    path = tmp_path / "net"
    for text in ("one", "two"):
        with new_folder(path, OWN) as fresh:
            assert fresh.parent == tmp_path and not list(fresh.iterdir())
            (fresh / f"{text}.safetensors").write_text(text)
        assert [(each.name, each.read_text()) for each in path.iterdir()] == [
            (f"{text}.safetensors", text)
        ]
        assert list(tmp_path.iterdir()) == [path]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o777 & ~mask
    assert sizes([path / "two.safetensors"], tmp_path) == [("net/two.safetensors", 3)]
    with pytest.raises(KeyError), new_folder(path, OWN) as fresh:
        (fresh / "three.safetensors").write_text("three")
        raise KeyError
    assert [each.name for each in path.iterdir()] == ["two.safetensors"]
    assert list(tmp_path.iterdir()) == [path]
    (path / "notes.txt").write_text("mine")
    with pytest.raises(LabError, match=r"has other files: notes\.txt") as told:
        new_folder(path, OWN).__enter__()
    assert told.value.hint == "Give the name of a new folder."


def test_where_no_folder_can_be_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name, why in (("file", "file is a file"), ("link", "link is a file"),
                      ("gone/net", "gone does not exist")):  # fmt: skip
        with pytest.raises(LabError, match=why):
            new_folder(tmp_path / name, OWN).__enter__()
    before = sorted(tmp_path.iterdir())
    path = tmp_path / "net"
    path.mkdir()
    (path / "config.json").write_text("old")

    def broken(self: Path, target: Path) -> Path:
        if target == path and self.suffix == ".tmp":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    rename = Path.rename
    monkeypatch.setattr(Path, "rename", broken)
    with (
        pytest.raises(LabError, match="net cannot be written: Permission denied"),
        new_folder(path, OWN) as fresh,
    ):
        (fresh / "config.json").write_text("new")
    assert (path / "config.json").read_text() == "old"
    assert sorted(tmp_path.iterdir()) == sorted([*before, path])
    monkeypatch.setattr("tempfile.mkdtemp", broken_disk)
    with pytest.raises(LabError, match="net cannot be written: No space left"):
        new_folder(path, OWN).__enter__()


def broken_disk(**_: object) -> str:
    raise OSError(28, "No space left on device")


def raised(source: str) -> Exception:
    """What code of the user's raises."""
    linecache.cache["<cell 3>"] = (1, None, source.splitlines(keepends=True), "<cell 3>")
    try:
        exec(compile(source, "<cell 3>", "exec"), {})
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


def test_a_refusal_names_the_reason_the_line_and_what_to_try() -> None:
    error = raised("x = 1\nraise ValueError('\\n  \\x1b[31mtoo wide\\x1b[0m.\\nmore. ')")
    told = refusal(TRACE, error)
    assert str(told) == (
        "TorchScript by tracing cannot hold this model. ValueError: too wide"
        " (<cell 3>, line 2: raise ValueError('\\n  \\x1b[31mtoo wide\\x1b[0m.\\nmore. '))."
    )
    assert told.hint == "Try torch.export (.pt2), or scripting."
    assert refusal(SCRIPT, error, "OwnError").hint.startswith("Try tracing")
    assert "model. OwnError: too wide" in str(refusal(SCRIPT, error, "OwnError"))
    nowhere = refusal(ONNX, RuntimeError(" \n "))
    assert str(nowhere) == "ONNX cannot hold this model. RuntimeError: no reason was told."
    advice = refusal(ONNX, RuntimeError("No rule for it. Did you forget to register it?"))
    assert str(advice).endswith("RuntimeError: No rule for it.")
    for length, end in ((240, "x."), (241, "x….")):
        told = refusal(ONNX, RuntimeError("x" * length))
        assert str(told).endswith(end) and str(told).count("x") == 240


def test_a_branch_on_numbers_is_told_as_one_and_a_message_may_name_the_line() -> None:
    linecache.cache["/home/me/net.py"] = (1, None, ["a\n", "  if x > 0:\n"], "/home/me/net.py")
    text = (
        'File "/home/me/other.py", line 7\nFile "/home/me/net.py", line 2, in forward\n'
        f'File "{linecache.__file__}", line 3\nCould not guard on data-dependent expression'
    )
    told = str(refusal(EXPORT, RuntimeError(text)))
    assert told == (
        "torch.export cannot hold this model. A branch or a loop of its Python depends on the"
        " numbers in a tensor (net.py, line 2: if x > 0:)."
    )
    for text in ("DataDependentError", "call .item() first", "Dynamic control flow"):
        assert "A branch or a loop" in str(refusal(EXPORT, RuntimeError(text)))
    assert "A branch or a loop" in str(refusal(EXPORT, RuntimeError("no"), "DataDependentOutput"))
    other = str(refusal(EXPORT, RuntimeError('at File "/home/me/none.py", line 9')))
    assert other.endswith("(none.py, line 9).")
