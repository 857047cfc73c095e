"""A stage of the tour before a window that is not there: its store holds what the test puts in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.store import Store
from app.tour.hand import Hand
from app.tour.stage import Album, Stage


@pytest.fixture
def stage_of(qapp, tmp_path: Path) -> Callable[..., Any]:
    def make(kind: type[Stage] = Stage, **parts: object) -> Any:
        bench = SimpleNamespace(store=Store())
        application = cast(Any, SimpleNamespace(bench=bench, **parts))
        return kind(application, Hand(), Album(tmp_path), tmp_path, {})

    return make
