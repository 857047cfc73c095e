"""The template MLP on the page Train."""

from __future__ import annotations

import pytest

from app import templates


@pytest.fixture
def mlp(program):
    program.bench.files.new(templates.load_template("mlp"))
    program.window.show_workspace("train")
    program.bench.link.drain()
    return program
