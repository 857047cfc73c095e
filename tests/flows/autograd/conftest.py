"""The MLP template, open in the Autograd workspace."""

from __future__ import annotations

import pytest

from app import templates
from app.application import Application


@pytest.fixture
def mlp(program: Application) -> Application:
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("autograd")
    program.bench.link.drain()
    return program
