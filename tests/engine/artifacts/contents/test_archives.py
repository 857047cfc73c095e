"""Zip archives: which records they have, where the bytes of each lie, and what is refused."""

from __future__ import annotations

import struct
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from engine.artifacts.contents import archive as archive_file
from engine.artifacts.contents.archive import Archive, Window
from engine.system.errors import LabError
from tests.engine.artifacts.hostile_pickles import archive, changed

RECORDS = {"net/a": b"first", "net/sub/b": b"", "net/c": bytes(range(200))}
_ENTRY = b"PK\x01\x02"
"""The list of records at the end of an archive has one for each, with these fields:"""
_FLAGS_AT, _PACKED_AT, _SIZE_AT = 8, 20, 24


def written(folder: Path, data: bytes) -> Path:
    path = folder / "net.pt"
    path.write_bytes(data)
    return path


def with_number(data: bytes, at: int, number: int) -> bytes:
    """The archive, with another number in what its list says of the first record."""
    return changed(data, data.index(_ENTRY) + at, struct.pack("<I", number))


@pytest.mark.parametrize("before", [0, 13])
def test_the_bytes_of_a_record_lie_where_it_says(tmp_path: Path, before: int) -> None:
    data = archive(RECORDS)
    path = written(tmp_path, bytes(before) + data + b"PK" * before)
    found = Archive(path, (before, len(data)) if before else None)
    assert list(found.records) == list(RECORDS) and found.folder == "net"
    for name, record in found.inner().items():
        content = RECORDS[f"net/{name}"]
        start = found.start_of(record)
        assert path.read_bytes()[start : start + record.size_bytes] == content
        assert record.size_bytes == len(content) and not record.compressed
        assert found.read(record, len(content)) == content
        assert found.head(record, 3) == content[:3]
    with pytest.raises(LabError, match=r"net/c in net\.pt has 200 bytes, more than 199"):
        found.read(found.records["net/c"], 199)


def test_records_in_two_folders_keep_their_names_and_folders_are_no_records(tmp_path) -> None:
    path = written(tmp_path, archive({"a/": b"", "a/x": b"1", "b/x": b"2"}))
    found = Archive(path)
    assert found.folder == "" and list(found.inner()) == ["a/x", "b/x"]
    assert [found.read(each, 1) for each in found.inner().values()] == [b"1", b"2"]


def test_a_compressed_record_is_read_whole_and_lies_nowhere(tmp_path: Path) -> None:
    data = archive({"zeros": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)
    found = Archive(written(tmp_path, data))
    (record,) = found.records.values()
    assert record.compressed and found.read(record, 1 << 20) == bytes(1 << 20)
    with pytest.raises(LabError, match="zeros is compressed, which torch never does"):
        found.start_of(record)
    longer = Archive(written(tmp_path, with_number(data, _SIZE_AT, (1 << 20) + 5)))
    with pytest.raises(LabError, match="zeros has another size than the archive says"):
        longer.read(longer.records["zeros"], 1 << 21)


@pytest.mark.parametrize("name", ["../a", "a/../b", "a//b", "C:/a", "..\\a", "a/\\b", "x" * 1001])
def test_a_record_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match="leads out of it"):
        Archive(written(tmp_path, archive({name: b"1"})))


def test_two_records_of_one_name_are_refused(tmp_path: Path) -> None:
    data = archive({"one": b"1", "two": b"2"}).replace(b"two", b"one")
    with pytest.raises(LabError, match="two records have one name"):
        Archive(written(tmp_path, data))


@pytest.mark.parametrize("name", ["a/b:c", "a..b", ".a", "x" * 1000])
def test_an_odd_name_of_a_record_is_taken(tmp_path: Path, name: str) -> None:
    assert list(Archive(written(tmp_path, archive({name: b"1"}))).records) == [name]


@pytest.mark.parametrize(
    ("at", "number", "compress", "why"),
    [
        (_FLAGS_AT, zipfile.ZIP_STORED << 16 | 1, zipfile.ZIP_STORED, "a is encrypted"),
        (_SIZE_AT, 99, zipfile.ZIP_STORED, "a has another size"),
        (_SIZE_AT, 101, zipfile.ZIP_STORED, "a has another size"),
        (_SIZE_AT, 10**6, zipfile.ZIP_DEFLATED, "a has another size"),
        (_PACKED_AT, 10**6, zipfile.ZIP_DEFLATED, "a has another size"),
    ],
)
def test_a_list_of_records_that_does_not_fit_the_bytes(
    tmp_path: Path, at: int, number: int, compress: int, why: str
) -> None:
    data = archive({"a": bytes(100)}, compress)
    assert Archive(written(tmp_path, data)).records["a"].size_bytes == 100
    with pytest.raises(LabError, match=why):
        Archive(written(tmp_path, with_number(data, at, number)))


def test_the_list_of_records_has_a_bound_and_is_read_again_each_time(tmp_path, monkeypatch) -> None:
    data = archive({"ab": b"1", "cd": b"22"})
    path = written(tmp_path, data)
    monkeypatch.setattr(archive_file, "MAX_DIRECTORY_BYTES", 2 * (46 + 2))
    found = Archive(path)
    monkeypatch.setattr(archive_file, "MAX_DIRECTORY_BYTES", 2 * (46 + 2) - 1)
    with pytest.raises(LabError, match="its list of records is longer"):
        Archive(path)
    written(tmp_path, changed(data, found.records["cd"].header_at, b"PK\x03\x05"))
    with pytest.raises(LabError, match="cd is not where the archive says"):
        found.start_of(found.records["cd"])
    written(tmp_path, data[: found.records["cd"].header_at + 29])
    with pytest.raises(LabError, match="cd is not where the archive says"):
        found.start_of(found.records["cd"])
    with pytest.raises(LabError, match=r"net\.pt cannot be read: cd: File is not a zip file"):
        found.head(found.records["cd"], 1)
    with pytest.raises(LabError, match="it is cut off, or no archive"):
        Archive(path)


def test_a_window_is_a_file_of_its_own() -> None:
    inner = BytesIO(b"0123456789")
    with Window(inner, 3, 4) as window:
        assert window.seekable() and window.read() == b"3456" and window.read(2) == b""
        assert window.seek(1) == 1 and window.read(2) == b"45" and window.tell() == 3
        assert window.seek(-1, 1) == 2 and window.read(9) == b"56"
        assert window.seek(-3, 2) == 1 and window.read(None) == b"456"  # type: ignore[arg-type]
        assert window.seek(5, 2) == 9 and window.read() == b"" and window.seek(0) == 0
        with pytest.raises(OSError, match="before the beginning"):
            window.seek(-1)
    assert inner.closed
