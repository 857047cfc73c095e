"""`tensorlab attach`: which processes there are, and how one is called."""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterator

import pytest

from app import cli
from app.commands.attaching import attach as attach_module
from engine.connecting.greeting import About, Refusal, Welcome
from engine.connecting.listener import Listener
from engine.system.program import version


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list:
    """The windows that would open, as (path, attached)."""
    seen: list = []
    monkeypatch.setattr(cli, "_open_window", lambda *window: seen.append(window) or 0)
    return seen


@pytest.fixture
def listen() -> Iterator:
    listeners, connections = [], []

    def start(name: str, host: str = "", refuses: str = "") -> Listener:
        about = About(name=name, pid=os.getpid(), script=f"/a/{name}", started_s=time.time())
        listeners.append(
            Listener(
                about,
                lambda hello: Refusal(refuses) if refuses else Welcome(about, hello.wants),
                lambda connection, role: connections.append(connection),
                host,
            )
        )
        return listeners[-1]

    yield start
    for each in (*listeners, *connections):
        each.close()


def test_processes_are_listed(listen, capsys):
    assert cli.main(["attach", "--list"]) == 0
    said = "No process listens. `tensorlab.watch(model)` in a script makes it listen.\n"
    assert capsys.readouterr().out == said
    listen("train.py")
    assert cli.main(["attach", "--list"]) == 0
    line = capsys.readouterr().out
    assert line.startswith(f"train.py (pid {os.getpid()})  since ") and line.endswith(
        "/a/train.py\n"
    )


def test_processes_are_listed_as_json(listen, capsys):
    listen("train.py")
    assert cli.main(["attach", "--json"]) == 0
    (process,) = json.loads(capsys.readouterr().out)["processes"]
    since = datetime.datetime.fromisoformat(process.pop("listens_since")).timestamp()
    assert abs(time.time() - since) < 600
    assert process == {
        "pid": os.getpid(), "name": "train.py", "script": "/a/train.py", "rank": 0,
        "world_size": 1, "version": "", "group": "",
    }  # fmt: skip


def test_processes_of_another_machine_are_listed(monkeypatch, capsys):
    def listening_at(host: str, python: str) -> list[About]:
        return [About(name="far.py", pid=7, script=f"/{host}{python}/far.py")]

    monkeypatch.setattr("app.commands.attaching.attach.listening_at", listening_at)
    assert cli.main(["attach", "--list", "--ssh", "box", "--python", "/py"]) == 0
    assert capsys.readouterr().out == "far.py (pid 7)  since 00:00:00  /box/py/far.py\n"


def test_a_window_opens_on_a_name_and_on_the_only_one(listen, opened):
    listen("train.py")
    for arguments, role in (
        (["train.py"], "steer"),
        ([], "steer"),
        (["train.py", "--watch"], "watch"),
    ):
        assert cli.main(["attach", *arguments]) == 0
        path, (call, way) = opened.pop()
        assert path == "" and (call.welcome.about.name, call.welcome.role) == ("train.py", role)
        again = way()
        assert again.welcome == call.welcome
        for each in (call, again):
            each.connection.close()


def test_a_port_needs_its_key(listen, opened, capsys):
    there = listen("train.py", host="127.0.0.1")
    assert cli.main(["attach", there.address, "--key", there.key]) == 0
    opened[0][1][0].connection.close()
    assert cli.main(["attach", there.address, "--key", "wrong"]) == 1
    said = f"tensorlab: attach {there.address}: The key is another one."
    assert capsys.readouterr().err.startswith(said)
    assert len(opened) == 1


def test_without_an_address_it_must_be_clear_which_one(listen, opened, capsys):
    assert cli.main(["attach"]) == 2
    assert capsys.readouterr().err == "tensorlab: attach: which ADDRESS? No process listens.\n"
    listen("a.py")
    listen("b.py")
    assert cli.main(["attach"]) == 2
    assert "Several processes listen: " in capsys.readouterr().err
    assert opened == []


def test_a_refusal_is_said_and_no_window_opens(listen, opened, capsys):
    listen("train.py", refuses="Not today.")
    assert cli.main(["attach", "train.py"]) == 1
    assert capsys.readouterr().err == "tensorlab: attach train.py: Not today.\n"
    assert cli.main(["attach"]) == 1
    assert capsys.readouterr().err == "tensorlab: attach: Not today.\n"
    assert opened == []


def test_with_ssh_the_process_is_on_another_machine(opened, monkeypatch):
    called: list[tuple] = []
    monkeypatch.setattr(attach_module, "call_at", lambda *to: called.append(to) or "call")
    assert cli.main(["attach", "my run.py", "--ssh", "box", "--python", "/a/python"]) == 0
    assert cli.main(["attach", "--ssh", "me@box"]) == 0  # an engine there
    assert called == [
        ("ssh box 'my run.py'", version(), "", "steer", "/a/python"),
        ("ssh me@box", version(), "", "steer", ""),
    ]
    assert opened[0][1][0] == "call" and opened[0][1][1]() == "call"


def test_why_ssh_leads_nowhere_is_said(opened, monkeypatch, tmp_path, capsys):
    stand_in = tmp_path / "ssh"
    stand_in.write_text("#!/bin/sh\necho 'Could not resolve hostname box' >&2\nexit 255\n")
    stand_in.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cli.main(["attach", "--ssh", "box"]) == 1
    assert capsys.readouterr().err == (
        "tensorlab: attach ssh box: ssh: Could not resolve hostname box. Check the name, or what"
        " ~/.ssh/config says of it.\n"
    )
    assert opened == []
