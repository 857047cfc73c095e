"""What a process that this program starts finds of its caller's: neither `__main__` nor folder."""

from __future__ import annotations

import os
import sys

import pytest

from engine.system.spawning import safe_spawn


@pytest.mark.parametrize("before", [None, "", "1"])
def test_the_callers_main_path_and_environment_come_back(monkeypatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    main, path, environment = sys.modules["__main__"], sys.path[:], dict(os.environ)
    with pytest.raises(ZeroDivisionError), safe_spawn():
        assert not hasattr(sys.modules["__main__"], "__file__")
        assert sys.modules["__main__"] is not main
        assert os.environ["PYTHONSAFEPATH"] == "1"
        raise ZeroDivisionError
    assert sys.modules["__main__"] is main and sys.path == path and os.environ == environment


@pytest.mark.parametrize("safe", [False, True])
def test_the_folder_that_comes_first_comes_last(monkeypatch, safe: bool) -> None:
    class Flags:
        safe_path = safe

    monkeypatch.setattr(sys, "flags", Flags())
    monkeypatch.setattr(sys, "path", ["the script's", "the library", "packages"])
    with safe_spawn():
        first = list(sys.path)
    assert first == (
        ["the script's", "the library", "packages"]
        if safe  # then Python itself has left the script's folder out
        else ["the library", "packages", "the script's"]
    )
