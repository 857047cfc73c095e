"""Addresses that lead to another machine: through ssh itself where a server can be started here,
and through a stand-in for it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.connecting import ssh
from engine.connecting.greeting import Unwelcome
from engine.connecting.ssh import call_at, is_remote, relay_command, with_advice
from engine.version import version
from tests.engine.attaching import Script, training_until_end

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")


def test_the_command_names_what_runs_there():
    alive = ["-o", "ServerAliveInterval=15"]
    assert relay_command("ssh box 4711") == ["ssh", "-T", *alive, "box", "tensorlab relay 4711"]
    started = "tensorlab relay --start tensorlab-engine"
    assert relay_command("ssh me@box")[-2:] == ["me@box", started]
    anew = "tensorlab relay --anew tensorlab-engine"
    assert relay_command("ssh box", anew=True)[-1] == anew
    there = "'/a b/python' -m tensorlab relay 'my run.py; rm x'"
    assert relay_command("ssh box 'my run.py; rm x'", "/a b/python")[-1] == there


@pytest.mark.parametrize("address", ["ssh", "ssh -oProxyCommand=x box", "ssh a b c", "ssh 'a"])
def test_an_address_that_is_none_is_refused(address: str):
    assert is_remote(address)
    with pytest.raises(Unwelcome, match="ssh HOST"):
        relay_command(address)


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
    with pytest.raises(Unwelcome, match=r"ssh: .*relay: No process other listens"):
        call_at("ssh box other", version(), python=sys.executable)
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


@pytest.fixture
def privileges() -> Iterator[None]:
    """The folder that a server of root's wants to be there, as its package makes it at boot."""
    folder = Path("/run/sshd")
    is_wanted = os.getuid() == 0 and not folder.exists() and os.access("/run", os.W_OK)
    if is_wanted:
        folder.mkdir(mode=0o755)
    yield
    if is_wanted:
        folder.rmdir()


@pytest.fixture
def server(tmp_path: Path, privileges: None) -> Iterator[list[str]]:
    """Options of ssh that reach a server of the test's own, on this machine."""
    if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd on this machine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True
        )
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized")
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {tmp_path}/host\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {tmp_path}/authorized\nPidFile none\nPasswordAuthentication no\n"
    )
    daemon = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert daemon.stderr is not None
    line = daemon.stderr.readline()
    if "listening" not in line:
        daemon.kill()
        daemon.communicate()
        pytest.skip(f"sshd does not start here: {line}")
    yield [
        f"-p{port}", f"-i{tmp_path}/user", "-oStrictHostKeyChecking=no", "-oBatchMode=yes",
        f"-oUserKnownHostsFile={tmp_path}/known", "-oIdentitiesOnly=yes",
    ]  # fmt: skip
    daemon.terminate()
    daemon.communicate()


def test_a_script_is_called_through_ssh(
    server: list[str], script: Script, tmp_path: Path, sockets: Path, monkeypatch
):
    """As a user would have it in ~/.ssh/config, the options are ssh's own."""
    program = tmp_path / "tensorlab"
    root = Path(__file__).parents[3]
    program.write_text(
        f"#!/bin/sh\nexport XDG_RUNTIME_DIR={sockets.parent}\n"
        f'exec {sys.executable} {root}/tensorlab.py "$@"\n'
    )
    program.chmod(0o700)
    command = relay_command(f"ssh {getpass.getuser()}@127.0.0.1 train.py")
    reached = [
        command[0],
        *server,
        *command[1:-1],
        command[-1].replace("tensorlab", str(program), 1),
    ]
    call = ssh.dial_through(reached, version())
    assert call.welcome.about.pid == script.process.pid
    call.connection.close()
    assert call.through is not None
    call.through.wait()
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


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
