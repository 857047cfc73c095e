"""A server of ssh of a test's own, on this machine, where one can be started."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
SSHD, SSH = shutil.which("sshd", path=PATH), shutil.which("ssh", path=PATH)
"""The system's own: a test may have a stand-in first on its PATH."""


@contextmanager
def ssh_server(folder: Path) -> Iterator[Path]:
    """Writes a program `ssh` into the folder: ssh itself, which leads to the server from any name
    of a host, as ~/.ssh/config would have it. Gives the Python that runs there, with the variables
    of this process. Skips the test where there is no server."""
    if SSHD is None or SSH is None or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd on this machine")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nPidFile none\nPasswordAuthentication no\n"
    )
    options = [
        f"-p{port}", f"-i{folder}/user", "-oHostName=127.0.0.1", "-oStrictHostKeyChecking=no",
        "-oBatchMode=yes", f"-oUserKnownHostsFile={folder}/known", "-oIdentitiesOnly=yes",
    ]  # fmt: skip
    _write(folder / "ssh", f'exec {SSH} {shlex.join(options)} "$@"')
    variables = [f"export {name}={shlex.quote(value)}" for name, value in os.environ.items()]
    _write(folder / "python", *variables, f"cd {ROOT}", f'exec {sys.executable} "$@"')
    with _privileges():
        daemon = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert daemon.stderr is not None
        line = daemon.stderr.readline()
        if "listening" not in line:
            daemon.kill()
            daemon.communicate()
            pytest.skip(f"sshd does not start here: {line}")
        try:
            yield folder / "python"
        finally:
            daemon.terminate()
            daemon.communicate()


def _write(program: Path, *lines: str) -> None:
    program.write_text("\n".join(("#!/bin/sh", *lines, "")))
    program.chmod(0o700)


@contextmanager
def _privileges() -> Iterator[None]:
    """The folder that a server of root's wants to be there, as its package makes it at boot."""
    folder = Path("/run/sshd")
    is_wanted = os.getuid() == 0 and not folder.exists() and os.access("/run", os.W_OK)
    if is_wanted:
        folder.mkdir(mode=0o755)
    try:
        yield
    finally:
        if is_wanted:
            folder.rmdir()
