"""What the doctor finds on machines unlike this one."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.commands import doctor
from app.commands.doctor import Check
from app.commands.failures import CommandFailure
from app.processes.exit_reasons import ExitReason
from engine.protocol import Device

NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}


@pytest.fixture
def display(monkeypatch):
    def set_display(platform: str = "linux", **names: str) -> None:
        monkeypatch.setattr(sys, "platform", platform)
        for name in NO_DISPLAY:
            monkeypatch.delenv(name, raising=False)
        for name, value in names.items():
            monkeypatch.setenv(name, value)

    return set_display


@pytest.mark.parametrize(
    ("platform", "names", "found"),
    [
        ("linux", {}, None), ("linux", NO_DISPLAY, None), ("darwin", {}, "the system's own"),
        ("win32", {}, "the system's own"), ("linux", {"DISPLAY": ":1"}, ":1"),
        ("linux", {"WAYLAND_DISPLAY": "way"}, "way"), ("darwin", {"DISPLAY": ":2"}, ":2"),
        ("linux", {"DISPLAY": ":1", "WAYLAND_DISPLAY": "way"}, "way"),
    ],
)  # fmt: skip
def test_where_a_window_could_be_shown(display, platform, names, found) -> None:
    display(platform, **names)
    assert doctor._has_display() is (found is not None)
    if found is None:
        assert doctor._display() == Check(
            "display", "note", "none (neither DISPLAY nor WAYLAND_DISPLAY is set)",
            "All commands but `attach` work without one.",
        )  # fmt: skip
    else:
        assert doctor._display() == Check("display", "ok", found)


def test_the_report_in_lines_and_as_json(monkeypatch, capsys) -> None:
    checks = [Check("a", "ok", "here"), Check("b", "note", "not here", "get it")]
    monkeypatch.setattr(doctor, "examine", lambda: checks)
    doctor.doctor(as_json=False)
    assert capsys.readouterr().out == "✓ a: here\n· b: not here\n    get it\n"
    checks += [Check("ç", "missing", "gone", "get it"), Check("d", "missing", "gone")]
    with pytest.raises(CommandFailure, match=r"^missing: ç, d$"):
        doctor.doctor(as_json=True)
    text = capsys.readouterr().out
    assert json.loads(text)["ok"] is False and '\n  "checks": [' in text and "ç" in text
    assert [check["name"] for check in json.loads(text)["checks"]] == ["a", "b", "ç", "d"]
    assert json.loads(text)["checks"][1] == {
        "name": "b", "verdict": "note", "detail": "not here", "remedy": "get it",
    }  # fmt: skip


class Engine:
    """A conversation that says at once what it has, or that it has ended."""

    def __init__(self, devices=(), threads=1, end=None) -> None:
        self.told = SimpleNamespace(devices=devices, torch_threads=threads, torch_version="2.13")
        self.end = end

    def __call__(self, doing: str) -> Engine:
        assert doing == "starting"
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_) -> None:
        pass

    def ready(self):
        if self.end is not None:
            raise self.end
        return self.told


def test_torch_and_its_devices(monkeypatch) -> None:
    cpu = Device("cpu", "8 cores", 0)
    gpu = Device("cuda:0", "H100", 80 * 2**30)
    monkeypatch.setattr(doctor, "Conversation", Engine((cpu,)))
    torch, devices = doctor._torch_and_devices()
    assert torch == Check("torch", "ok", "2.13, 1 thread")
    assert (devices.verdict, devices.detail) == ("ok", "cpu (8 cores)")
    assert devices.remedy.startswith("No GPU that torch can use.")
    monkeypatch.setattr(doctor, "Conversation", Engine((cpu, gpu), 4))
    torch, devices = doctor._torch_and_devices()
    assert torch.detail == "2.13, 4 threads"
    assert devices == Check("devices", "ok", "cpu (8 cores), cuda:0 (H100, 80.0 GiB)")


def test_a_torch_that_does_not_start_is_missing(monkeypatch) -> None:
    end = doctor.EngineEnded(ExitReason("No torch", "It is not installed.", "Install it."), None)
    monkeypatch.setattr(doctor, "Conversation", Engine(end=end))
    pip = f"{sys.executable} -m pip install torch"
    assert doctor._torch_and_devices() == [Check("torch", "missing", str(end), pip)]


@pytest.fixture
def programs(monkeypatch):
    """What other programs answer, in place of them: the probe of Qt, and ldd."""
    said = SimpleNamespace(code=0, out="[]", err="", ldd="", asked=[])

    def run(command, **options):
        said.asked.append((command, options))
        if command[0] == "ldd":
            return subprocess.CompletedProcess(command, 0, said.ldd, "")
        return subprocess.CompletedProcess(command, said.code, said.out, said.err)

    monkeypatch.setattr(doctor.subprocess, "run", run)
    return said


def test_qt_that_does_not_start_says_which_library_is_missing(programs) -> None:
    programs.code = 1
    programs.err = "first\nlibEGL.so.1: cannot open shared object file\n"
    (check,) = doctor._qt_and_fonts()
    assert (check.name, check.verdict) == ("Qt", "missing")
    assert check.detail.endswith("does not start: libEGL.so.1: cannot open shared object file")
    assert check.remedy == "On Debian or Ubuntu: apt-get install libegl1"
    programs.err = "Aborted"
    (check,) = doctor._qt_and_fonts()
    assert check.detail.endswith(": Aborted") and check.remedy == "Reinstall PySide6-Essentials."
    programs.err = ""
    assert doctor._qt_and_fonts()[0].detail.endswith(": it ended without a message")
    _, options = programs.asked[0]
    assert options["env"]["QT_QPA_PLATFORM"] == "offscreen" and options["capture_output"]


def test_libraries_of_the_platform_are_missing_only_where_there_is_a_display(
    programs, display
) -> None:
    display()
    plugin = Path("Qt/plugins/platforms/libqxcb.so")
    qt, platform, fonts = doctor._qt_and_fonts()
    assert qt == Check("Qt", "ok", f"PySide6 {metadata.version('PySide6-Essentials')}")
    assert platform == Check("Qt platform libraries", "ok", "complete")
    assert fonts.verdict == "ok"
    assert Path(programs.asked[-1][0][1]).parts[-4:] == plugin.parts
    lines = (
        "libz.so.1 => not found",
        "libX11.so.6 => /usr/lib/libX11.so.6",
        "liba.so.2 => not found",
    )
    programs.ldd = "".join(f"\t{line}\n" for line in (*lines, lines[0]))
    found = "a window on X11 needs liba.so.2, libz.so.1"
    apt = "On Debian or Ubuntu: apt-get install liba2 libz1"
    display()
    assert doctor._qt_and_fonts()[1] == Check("Qt platform libraries", "note", found, apt)
    display(DISPLAY=":1")
    assert doctor._qt_and_fonts()[1] == Check("Qt platform libraries", "missing", found, apt)
    display("darwin")
    assert doctor._missing_platform_libraries() == []


def test_fonts_are_counted_or_named() -> None:
    assert doctor._fonts(["a", "b"], []) == Check("fonts", "ok", "2 files of the program's own")
    told = [doctor._fonts(["a", "b"], ["b", "c"]), doctor._fonts([], [])]
    assert [check.detail for check in told] == [
        "Qt cannot read b, c", f"none in {doctor._FONTS}",
    ]  # fmt: skip
    assert {(check.verdict, check.remedy) for check in told} == {
        ("missing", "Reinstall Tensor Lab.")
    }


def test_packages_that_the_program_requires(monkeypatch) -> None:
    declared = ["a>=1", "b[more] (>2)", "a<9", 'c; extra == "bench"', 'd; python_version<"4"']
    versions = {"a": "1", "b": "2", "d": "3"}
    monkeypatch.setattr(metadata, "requires", lambda name: declared)
    monkeypatch.setattr(doctor, "_version", versions.get)
    assert doctor._packages() == [Check("packages", "ok", "all 3 are installed")]
    del versions["d"], versions["a"]
    pip = f"{sys.executable} -m pip install a d"
    assert doctor._packages() == [Check("packages", "missing", "a, d", pip)]
    monkeypatch.setattr(metadata, "requires", lambda name: None)
    assert doctor._packages() == [Check("packages", "ok", "all 0 are installed")]

    def unknown(name: str):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", unknown)
    assert doctor._packages() == [Check("packages", "note", "run from a checkout: not checked")]


def test_all_is_examined_in_order(monkeypatch) -> None:
    for name, made in (
        ("_python", 1), ("_torch_and_devices", [2, 3]), ("_qt_and_fonts", [4]), ("_display", 5),
        ("_packages", [6]),
    ):  # fmt: skip
        monkeypatch.setattr(doctor, name, lambda made=made: made)
    assert doctor.examine() == [1, 2, 3, 4, 5, 6]
