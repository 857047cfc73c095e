from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.attaching import Script


@pytest.fixture
def script(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Callable[..., Script]]:
    """`script(source, *arguments)` starts a script; it is killed at the end of the test."""
    started: list[Script] = []

    def start(source: str, *arguments: str) -> Script:
        started.append(Script(tmp_path / f"train{len(started) or ''}.py", source, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.kill()
