"""`tensorlab doctor`: what this machine has, what it lacks, and how to get that."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from app.commands.conversation import Conversation, EngineEnded
from app.commands.failures import CommandFailure

Verdict = Literal["ok", "note", "missing"]
_MARKS = {"ok": "✓", "note": "·", "missing": "✗"}

_FONTS = Path(__file__).resolve().parents[2] / "assets" / "fonts"
# Run in a separate process, because a Qt that cannot start ends its process.
_QT_PROBE = """
import json, sys
from PySide6.QtGui import QFontDatabase, QGuiApplication
app = QGuiApplication([])
print(json.dumps([path for path in sys.argv[1:] if QFontDatabase.addApplicationFont(path) < 0]))
"""


class Check(Struct, frozen=True):
    """One check. `detail` is what was found; `remedy` is how to get what is missing. With the
    verdict "note" the program works without it."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""


def doctor(as_json: bool) -> None:
    """Print the report. Raises CommandFailure if something required is missing."""
    checks = examine()
    missing = [check.name for check in checks if check.verdict == "missing"]
    if as_json:
        report = {"ok": not missing, "checks": msgspec.to_builtins(checks)}
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        for check in checks:
            print(f"{_MARKS[check.verdict]} {check.name}: {check.detail}")
            if check.remedy:
                print(f"    {check.remedy}")
    if missing:
        raise CommandFailure(f"missing: {', '.join(missing)}")


def examine() -> list[Check]:
    return [_python(), *_torch_and_devices(), *_qt_and_fonts(), _display(), *_packages()]


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _torch_and_devices() -> list[Check]:
    """The checks of torch and its devices, by an engine: this process does not import torch."""
    try:
        with Conversation("starting") as engine:
            ready = engine.ready()
    except EngineEnded as end:
        return [Check("torch", "missing", str(end), f"{sys.executable} -m pip install torch")]
    devices = ", ".join(
        f"{device.name} ({device.title}"
        + (f", {device.memory_bytes / 2**30:.1f} GiB)" if device.memory_bytes else ")")
        for device in ready.devices
    )
    threads = "1 thread" if ready.torch_threads == 1 else f"{ready.torch_threads} threads"
    only_cpu = len(ready.devices) == 1
    return [
        Check("torch", "ok", f"{ready.torch_version}, {threads}"),
        Check(
            "devices",
            "ok",
            devices,
            "No GPU that torch can use. The CPU is enough for everything here." if only_cpu else "",
        ),
    ]


def _qt_and_fonts() -> list[Check]:
    if importlib.util.find_spec("PySide6") is None:
        return [Check("Qt", "missing", "no PySide6", f"{sys.executable} -m pip install PySide6")]
    version = _version("PySide6-Essentials") or _version("PySide6") or "of unknown version"
    fonts = sorted(str(path) for path in _FONTS.glob("*.[ot]tf"))
    probe = subprocess.run(
        [sys.executable, "-P", "-c", _QT_PROBE, *fonts],  # -P: nothing of the current folder
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
    )
    if probe.returncode != 0:
        why = (probe.stderr.strip().splitlines() or ["it ended without a message"])[-1]
        library = re.search(r"(lib[\w.+-]+\.so[\w.]*)", why)
        remedy = _apt_line([library[1]]) if library else "Reinstall PySide6-Essentials."
        return [Check("Qt", "missing", f"PySide6 {version} does not start: {why}", remedy)]
    checks = [Check("Qt", "ok", f"PySide6 {version}")]
    lacking = _missing_platform_libraries()
    if lacking:
        # Without a display they are not needed; with a display, no window could be shown.
        verdict: Verdict = "missing" if _has_display() else "note"
        found = f"a window on X11 needs {', '.join(lacking)}"
        checks.append(Check("Qt platform libraries", verdict, found, _apt_line(lacking)))
    else:
        checks.append(Check("Qt platform libraries", "ok", "complete"))
    checks.append(_fonts(fonts, unreadable=json.loads(probe.stdout)))
    return checks


def _fonts(files: list[str], unreadable: list[str]) -> Check:
    if files and not unreadable:
        return Check("fonts", "ok", f"{len(files)} files of the program's own")
    found = f"Qt cannot read {', '.join(unreadable)}" if files else f"none in {_FONTS}"
    return Check("fonts", "missing", found, "Reinstall Tensor Lab.")


def _missing_platform_libraries() -> list[str]:
    """The shared libraries that Qt's X11 plugin links to and this system lacks."""
    spec = importlib.util.find_spec("PySide6")
    if sys.platform != "linux" or spec is None or not spec.submodule_search_locations:
        return []
    plugin = Path(spec.submodule_search_locations[0], "Qt/plugins/platforms/libqxcb.so")
    if not plugin.exists():
        return []
    listed = subprocess.run(["ldd", str(plugin)], capture_output=True, text=True)
    return sorted(set(re.findall(r"^\s*(\S+) => not found", listed.stdout, re.MULTILINE)))


def debian_package(library: str) -> str:
    """The Debian package of a shared library: its name in small letters and the number after
    `.so.`, with a dash between them if the name ends with a digit (libxkbcommon-x11.so.0)."""
    name, _, number = library.lower().partition(".so")
    number = number.strip(".")
    if name == "libglib-2.0":  # its package name is older than the rule
        name = "libglib2.0"
    return f"{name}-{number}" if name[-1].isdigit() else f"{name}{number}"


def _apt_line(libraries: list[str]) -> str:
    packages = " ".join(debian_package(library) for library in libraries)
    return f"On Debian or Ubuntu: apt-get install {packages}"


def _has_display() -> bool:
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _display() -> Check:
    if not _has_display():
        return Check(
            "display",
            "note",
            "none (neither DISPLAY nor WAYLAND_DISPLAY is set)",
            "All commands but `attach` work without one.",
        )
    named = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or "the system's own"
    return Check("display", "ok", named)


def _packages() -> list[Check]:
    """The checks of the other packages that the program's metadata requires."""
    try:
        declared = metadata.requires("tensorlab") or []
    except metadata.PackageNotFoundError:
        return [Check("packages", "note", "run from a checkout: not checked")]
    names = []
    for requirement in declared:
        name, _, marker = requirement.partition(";")
        if "extra ==" not in marker:
            names.append(re.split(r"[^\w.-]", name.strip(), maxsplit=1)[0])
    absent = sorted({name for name in names if _version(name) is None})
    if absent:
        line = f"{sys.executable} -m pip install {' '.join(absent)}"
        return [Check("packages", "missing", ", ".join(absent), line)]
    return [Check("packages", "ok", f"all {len(set(names))} are installed")]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
