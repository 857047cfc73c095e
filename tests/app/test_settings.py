"""Settings that outlive the program, and damaged or unknown values of settings."""

from __future__ import annotations

import os

import pytest
from PySide6.QtCore import QByteArray, QSettings

from app.settings import AGREED_FILES, RECENT_FILES, Settings


@pytest.fixture
def reopen(tmp_path):
    """Open the settings again, as the next start of the program does."""

    def open_settings() -> Settings:
        return Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))

    return open_settings


def test_the_theme_is_that_of_the_system_until_one_is_chosen(reopen):
    settings = reopen()
    assert settings.theme == "system"
    for choice in ("dark", "light", "system"):
        settings.theme = choice
        assert reopen().theme == choice
    settings.theme = "pink"
    assert reopen().theme == "system"


def test_recent_files_survive_the_program_be_there_none_one_or_more(reopen):
    assert reopen().recent_files == ()
    reopen().add_recent_file("/a.tlab")
    assert reopen().recent_files == ("/a.tlab",)
    reopen().add_recent_file("/b.tlab")
    assert reopen().recent_files == ("/b.tlab", "/a.tlab")
    reopen().remove_recent_file("/c.tlab")
    reopen().remove_recent_file("/b.tlab")
    assert reopen().recent_files == ("/a.tlab",)
    reopen().remove_recent_file("/a.tlab")
    assert reopen().recent_files == ()


def test_traced_code_and_places_are_given_back_as_they_were(reopen):
    settings = reopen()
    assert settings.trace_code == "" and settings.bytes("geometry").isEmpty()
    settings.trace_code = "x = 1\ny = 2"
    settings.set_bytes("geometry", QByteArray(b"\x00\xff"))
    settings.set_bytes("model_docks", QByteArray(b"docks"))
    assert reopen().trace_code == "x = 1\ny = 2"
    assert reopen().bytes("geometry").data() == b"\x00\xff"
    assert reopen().bytes("model_docks").data() == b"docks"


def test_the_files_that_may_run_are_remembered_by_content(reopen):
    assert not reopen().has_agreed("/net.py", "a1")
    reopen().agree("/net.py", "a1")
    assert reopen().has_agreed("/net.py", "a1")
    assert not reopen().has_agreed("/net.py", "a2")
    assert not reopen().has_agreed("/other.py", "a1")
    reopen().agree("/net.py", "a2")
    for number in range(AGREED_FILES - 1):
        reopen().agree("/x.py", str(number))
    assert reopen().has_agreed("/net.py", "a2")
    assert not reopen().has_agreed("/net.py", "a1")


def test_the_engine_of_an_earlier_version_is_told_once(reopen):
    assert reopen().take_engine_address() == ""
    store = reopen()._store
    for key in ("engine/address", "engine/python", "going_run", "attach/rank_hosts"):
        store.setValue(key, "ssh box")
    assert reopen().take_engine_address() == "ssh box"
    assert reopen().take_engine_address() == "" and store.allKeys() == []


@pytest.mark.parametrize(
    "name", ["autograd_more", "train_parameters", "train_predictions", "train_runs"]
)
def test_what_is_shown_is_remembered_by_itself(reopen, name):
    names = {"autograd_more", "train_parameters", "train_predictions", "train_runs"}
    for on in (True, False):
        setattr(reopen(), name, on)
        assert getattr(reopen(), name) is on
        assert not any(getattr(reopen(), other) for other in names - {name})


def test_the_newest_files_are_kept_each_once(reopen):
    for number in range(RECENT_FILES + 2):
        reopen().add_recent_file(f"/{number}.tlab")
    newest = tuple(f"/{number}.tlab" for number in range(RECENT_FILES + 1, 1, -1))
    assert reopen().recent_files == newest
    reopen().add_recent_file(newest[4])
    assert reopen().recent_files == (newest[4], *newest[:4], *newest[5:])


def test_paths_of_any_bytes_come_back(reopen):
    paths = [os.fsdecode(b"/\xff.tlab"), "/größe %41.tlab"]
    for path in paths:
        reopen().add_recent_file(path)
        reopen().agree(path, "a1")
        assert reopen().has_agreed(path, "a1")
    assert reopen().recent_files == tuple(reversed(paths))


def test_a_file_agreed_to_again_is_kept_once(reopen):
    for number in range(AGREED_FILES):
        reopen().agree("/x.py", str(number))
    for _ in range(3):
        reopen().agree("/x.py", "5")
    assert all(reopen().has_agreed("/x.py", str(number)) for number in range(AGREED_FILES))


def test_muted_kinds_and_the_last_address_are_remembered(reopen):
    assert reopen().muted_advice == () and reopen().attach_address == ""
    reopen().muted_advice = ("loop",)
    reopen().attach_address = "ssh box"
    assert reopen().muted_advice == ("loop",) and reopen().attach_address == "ssh box"


class Payload:
    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


@pytest.mark.parametrize("escaped", ["@Variant(", "\\x40Variant(", '@Va"ri"ant(', "@\\126ariant("])
def test_a_file_of_settings_runs_nothing(tmp_path, reopen, escaped):
    """PySide writes objects that it does not know as pickles, and loads them with any value."""
    marker, file = tmp_path / "ran", tmp_path / "s.ini"
    before = QSettings(str(file), QSettings.Format.IniFormat)
    before.setValue("theme", Payload(str(marker)))
    before.sync()
    del before
    text = file.read_bytes()
    assert b"@Variant(" in text
    file.write_bytes(text.replace(b"@Variant(", escaped.encode()))
    settings = reopen()
    assert settings.theme == "system" and settings.recent_files == ()
    assert not marker.exists() and (tmp_path / "s.ini.refused").exists()
    settings.theme = "dark"
    assert reopen().theme == "dark" and not marker.exists()
