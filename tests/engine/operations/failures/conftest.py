from __future__ import annotations

import pytest

from tests.engine.operations.failures.bench import Bench


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()
