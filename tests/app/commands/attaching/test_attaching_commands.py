"""Which engine a relay starts, which process is called, and what `run` becomes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands.attaching import attach, run_script, serving
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from engine.connecting.greeting import About, Unwelcome
from engine.connecting.places import Place
from engine.system.program import version

ENGINE = About(name="box", pid=11)
SCRIPT = About(name="box", pid=12)
OTHER = About(name="tower", pid=13)


def places(*abouts: About) -> list[Place]:
    return [Place(about, Path("/socket")) for about in abouts]


@pytest.mark.parametrize(
    ("start", "listens", "did"),
    [(False, False, ["relay"]), (True, True, ["relay"]), (True, False, ["start", "relay"])],
)
def test_a_relay_starts_an_engine_where_none_listens(
    start: bool, listens: bool, did: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def note(word: str) -> Any:
        def noted(address: str) -> None:
            assert address == "box"
            done.append(word)

        return noted

    monkeypatch.setattr(serving, "is_listening", lambda address: listens)
    monkeypatch.setattr(serving, "_start", note("start"))
    monkeypatch.setattr("engine.connecting.relay.relay", note("relay"))
    serving.relay_to("box", start)
    assert done == did


def test_what_cannot_be_relayed_or_served_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Unwelcome("Nothing answers.")

    monkeypatch.setattr("engine.connecting.relay.relay", fail)
    monkeypatch.setattr("engine.server.served.serve_windows", fail)
    with pytest.raises(CommandFailure, match=r"^relay: Nothing answers\.$"):
        serving.relay_to("box", False)
    with pytest.raises(CommandFailure, match=r"^serve: Nothing answers\.$"):
        serving.serve("box", "", 0)


def test_an_engine_is_started_with_a_log_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, slept, now = iter([False, False, True]), [], [0.0]
    started: list[Any] = []
    ended: list[int | None] = [None]

    def popen(line: list[str], **options: Any) -> Any:
        started.append((line, options))
        return SimpleNamespace(poll=lambda: ended[0])

    monkeypatch.setattr(serving, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(serving, "is_listening", lambda name: next(looks))
    monkeypatch.setattr(serving.subprocess, "Popen", popen)
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=slept.append)
    monkeypatch.setattr(serving, "time", clock)
    serving._start("box")
    ((line, options),) = started
    assert line[0] == sys.executable and line[2:] == ["serve", "--name", "box"]
    assert options["stdin"] == subprocess.DEVNULL and options["start_new_session"]
    log = tmp_path / "engines" / "box.log"
    assert options["stdout"] is options["stderr"] and log.stat().st_mode & 0o777 == 0o600
    assert slept == [serving.LOOK_S] * 2
    words = f"the engine box did not start; {log} says why"
    looks = iter([False] * 9)
    ended[0] = 1
    with pytest.raises(CommandFailure, match=words):
        serving._start("box")
    ended[0] = None
    now = [0.0]
    clock.sleep = lambda seconds: now.__setitem__(0, now[0] + 59.0)
    with pytest.raises(CommandFailure, match=words):
        serving._start("box")
    assert now == [118.0]  # it has 60 seconds


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (("7", "k", "steer"), ("7", version(), "k", "steer", "")),
        (("", "", "watch"), ("12", version(), "", "watch", "")),
        (("7", "", "steer", "h o", "py"), ("ssh 'h o' 7", version(), "", "steer", "py")),
        (("", "", "steer", "h", "py"), ("ssh h", version(), "", "steer", "py")),
    ],
)
def test_a_process_is_called_by_its_address(given, asked, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple] = []
    monkeypatch.setattr(attach, "call_at", lambda *words: calls.append(words))
    monkeypatch.setattr(attach, "listening", lambda: places(SCRIPT))
    monkeypatch.setattr(attach, "SSH", "ssh")
    _, again = attach.call(*given)
    again()
    assert calls == [asked, asked]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((), "attach: which ADDRESS? No process listens."),
        (
            (ENGINE, OTHER),
            "attach: which ADDRESS? Several processes listen: box (pid 11), tower (pid 13).",
        ),
    ],
)
def test_without_an_address_there_must_be_one_process(
    found: tuple, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "listening", lambda: places(*found))
    with pytest.raises(CommandFailure) as raised:
        attach.call("", "", "steer")
    assert (str(raised.value), raised.value.exit_code) == (words, BAD_ARGUMENTS)


@pytest.mark.parametrize(("address", "words"), [("7", "attach 7: No."), ("", "attach 12: No.")])
def test_a_process_that_is_not_welcome_is_told(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Unwelcome("No.")

    monkeypatch.setattr(attach, "call_at", refuse)
    monkeypatch.setattr(attach, "listening", lambda: places(SCRIPT))
    with pytest.raises(CommandFailure) as raised:
        attach.call(address, "", "steer")
    assert str(raised.value) in (words, "attach: No.")
    monkeypatch.setattr(attach, "listening_at", refuse)
    with pytest.raises(CommandFailure, match=r"^attach: No\.$"):
        attach.list_processes(None, "h")


def test_processes_are_listed_in_lines(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    script = About(name="train.py", pid=12, script="/a/train.py", started_s=0.0)
    monkeypatch.setattr(attach, "listening", lambda: places(script, ENGINE))
    attach.list_processes(None)
    since = f"{attach._time(0.0):%H:%M:%S}"
    assert capsys.readouterr().out.splitlines() == [
        f"train.py (pid 12)  since {since}  /a/train.py", f"box (pid 11)  since {since}",
    ]  # fmt: skip
    monkeypatch.setattr(attach, "listening", list)
    attach.list_processes(None)
    assert capsys.readouterr().out.startswith("No process listens. `tensorlab.watch(model)`")


@pytest.mark.parametrize(
    ("window", "wait", "options"),
    [(False, False, []), (True, False, ["--window"]), (True, True, ["--window", "--wait"]),
     (False, True, ["--wait"])],
)  # fmt: skip
def test_run_becomes_the_scripts_process(
    window: bool, wait: bool, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, did = tmp_path / "s.py", []
    with pytest.raises(CommandFailure) as raised:
        run_script.run_script(script, [], window, wait)
    assert (str(raised.value), raised.value.exit_code) == (f"{script}: no such file.", 2)
    script.touch()
    monkeypatch.setattr(run_script, "command", lambda *given: ["python", *map(str, given)])
    monkeypatch.setattr(os, "execv", lambda *given: did.append(given))
    run_script.run_script(script, ["a"], window, wait)
    line = ["python", str(script), str(["a"]), str(options)]
    assert did == [("python", line)]
