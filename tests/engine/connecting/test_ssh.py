"""Addresses that lead to another machine: through ssh itself where a server can be started here,
and through a stand-in for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.connecting import ssh
from engine.connecting.greeting import About, Unwelcome
from engine.connecting.ssh import (
    call_at,
    is_remote,
    listening_at,
    relay_command,
    with_advice,
)
from engine.system.program import version
from tests.engine.attaching import Script, training_until_end
from tests.engine.ssh_server import ssh_server


def test_the_command_names_what_runs_there():
    alive = ["-o", "ServerAliveInterval=15"]
    assert relay_command("ssh box 4711") == ["ssh", "-T", *alive, "box", "tensorlab relay 4711"]
    started = "tensorlab relay --start tensorlab-engine"
    assert relay_command("ssh me@box")[-2:] == ["me@box", started]
    there = "'/a b/python' -m tensorlab relay 'my run.py; rm x'"
    assert relay_command("ssh box 'my run.py; rm x'", "/a b/python")[-1] == there


@pytest.mark.parametrize("address", ["ssh", "ssh -oProxyCommand=x box", "ssh a b c", "ssh 'a"])
def test_an_address_that_is_none_is_refused(address: str):
    assert is_remote(address)
    with pytest.raises(Unwelcome, match="ssh HOST"):
        relay_command(address)


def test_options_of_ssh_are_no_machine():
    with pytest.raises(Unwelcome, match="Options of ssh belong"):
        listening_at("-oProxyCommand=x")


def test_other_addresses_are_of_this_machine(sockets: Path):
    assert not is_remote("sshtrain.py") and not is_remote("") and not is_remote("4711")
    with pytest.raises(Unwelcome, match=r"No process train\.py listens"):
        call_at("train.py", "1")


@pytest.fixture
def script(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Script]:
    with training_until_end(tmp_path) as running:
        yield running


def test_a_script_is_called_through_a_stand_in(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The stand-in runs the command here, by a shell as ssh does."""
    stand_in = tmp_path / "ssh"
    stand_in.write_text('#!/bin/sh\n[ "$1 $4" = "-T box" ] && exec sh -c "$5"\n')
    stand_in.chmod(0o700)
    monkeypatch.setattr(ssh, "SSH", str(stand_in))
    monkeypatch.setattr(ssh, "is_remote", lambda address: True)
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    call = call_at("ssh box train.py", version(), python=sys.executable)
    assert call.welcome.about.pid == script.process.pid and call.welcome.models == ("net",)
    assert call.through is not None
    call.connection.close()
    call.through.wait()
    assert_same(listening_at("box", sys.executable), call.welcome.about)
    with pytest.raises(Unwelcome, match=r"ssh: .*relay: No process other listens"):
        call_at("ssh box other", version(), python=sys.executable)
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def assert_same(listed: list[About], about: About) -> None:
    """It is the only one; JSON has its time in microseconds."""
    assert [replace(each, started_s=0) for each in listed] == [replace(about, started_s=0)]
    assert listed[0].started_s == pytest.approx(about.started_s, abs=1e-5)


@pytest.fixture
def python_there(sockets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ssh_server(tmp_path) as python:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        yield python


def test_a_script_is_called_and_listed_through_ssh(
    python_there: Path, script: Script, tmp_path: Path
):
    python = str(python_there)
    call = call_at("ssh box train.py", version(), python=python)
    assert call.welcome.about.pid == script.process.pid
    call.connection.close()
    assert call.through is not None
    call.through.wait()
    assert_same(listening_at("box", python), call.welcome.about)
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def test_what_another_machine_lists_is_told_or_why_there_is_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stand_in = tmp_path / "ssh"
    monkeypatch.setattr(ssh, "SSH", str(stand_in))

    def answers(script: str) -> None:
        stand_in.write_text(f"#!/bin/sh\n{script}\n")
        stand_in.chmod(0o700)

    with pytest.raises(Unwelcome, match="has not answered"):
        listening_at("box")
    answers("echo 'me@box: Permission denied (publickey).' >&2; exit 255")
    with pytest.raises(Unwelcome, match=r"Permission denied \(publickey\)\. .*`ssh-copy-id box`"):
        listening_at("box")
    answers("echo hello")
    with pytest.raises(Unwelcome, match="not Tensor Lab"):
        listening_at("box")
    listed = {"name": "net", "pid": 4711, "script": "/a/train.py", "version": "1"}
    ranks = {"rank": 1, "world_size": 4, "group": "run"}
    since = {"listens_since": "2026-01-02T03:04:05Z"}
    answers(f"echo '{json.dumps({'processes': [listed | ranks | since]})}'")
    (found,) = listening_at("box")
    started_s = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    assert found == About(**listed, **ranks, started_s=started_s)
    assert found.title == "net (pid 4711, rank 1 of 4)"


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("ssh: Could not resolve hostname box: Name or service not known", "Check the name"),
        ("Host key verification failed.", "Run `ssh box` in a terminal once"),
        ("me@box: Permission denied (publickey,password).", "`ssh-copy-id box`"),
        ("ssh: connect to host box port 22: Connection refused", "Is an ssh server running"),
        ("ssh: connect to host box port 22: Connection timed out", "Is the machine on"),
        ("bash: line 1: tensorlab: command not found", "Give the path of the Python"),
        ("sh: 1: tensorlab: not found", "Give the path of the Python"),
        ("sh: 1: /opt/python: No such file or directory", "Is this the path of a Python"),
        ("/opt/python: No module named tensorlab", "This Python has no Tensor Lab"),
        ("tensorlab: error: argument COMMAND: invalid choice: 'relay'", "is an older one"),
        ("{odd} words", "{odd} words"),
    ],
)
def test_what_ssh_says_comes_with_what_to_try(said: str, advice: str):
    words = with_advice(said, "ssh box")
    assert words.startswith(said.rstrip(".")) and advice in words
