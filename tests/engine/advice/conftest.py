from __future__ import annotations

import pytest

from tests.engine.advice.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
