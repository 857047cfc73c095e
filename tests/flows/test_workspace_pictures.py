"""Each workspace, in light and dark, looks as it did when a person last looked at it."""

from __future__ import annotations

import pytest

from app import templates
from engine.project.examples import trace_examples
from engine.protocol import Device
from engine.system import devices
from tests.pictures import assert_same_picture
from widgets import theme

GELU, NAN = (trace_examples()[key].code for key in ("custom_function", "nan"))


@pytest.fixture
def one_device(monkeypatch) -> None:
    """The same processor and memory on every machine."""
    monkeypatch.setattr(devices, "devices", lambda: (Device("cpu", "CPU (2 cores)", 16 * 2**30),))


@pytest.fixture(params=["light", "dark"])
def themed(request, one_device, program, qapp):
    """The program at 1440 by 900 in one of the themes, and the theme's name."""
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[request.param])
    program.window.resize(1440, 900)
    return program, request.param


def open_template(program, key: str, workspace: str) -> None:
    program.bench.files.new(templates.load_template(key))
    program.window.show_workspace(workspace)
    program.bench.link.drain()


def test_start(themed, qapp):
    program, name = themed
    qapp.processEvents()
    assert_same_picture(program.window.page("start"), f"start_{name}")


def test_tensors(themed, qapp):
    program, name = themed
    program.window.show_workspace("tensors")
    page = program.window.page("tensors")
    for line in ("x = torch.arange(24.).view(4, 6)", "t = x.T", "y = x[1:3, ::2]", "t.view(-1)"):
        page.console.submit(line)
        program.bench.link.drain()
    page.tabs.setCurrentWidget(page.storage)
    program.workspaces.tensors.select("y", (1, 2))
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(page, f"tensors_{name}")


def test_model(themed, qapp):
    program, name = themed
    open_template(program, "lenet", "model")
    qapp.processEvents()
    canvas = program.window.page("model").canvas
    canvas.fit()
    canvas.select([program.bench.store.project.model.blocks[1].id])
    qapp.processEvents()
    assert_same_picture(program.window.page("model"), f"model_{name}")


def test_autograd(themed, qapp, qtbot):
    program, name = themed
    open_template(program, "mlp", "autograd")
    view = program.window.page("autograd").steps
    view.forward.start_requested.emit(0)
    view.forward.move_requested.emit("end", "")
    view.backward.start_requested.emit()
    program.bench.link.drain()
    qtbot.waitUntil(lambda: view.graph.laid_out, timeout=30_000)
    for _ in range(7):  # to a gradient whose mean is more than what rounding leaves of 0
        view.backward.move_requested.emit("step", -1)
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(view, f"autograd_{name}")


def test_trace(themed, qapp):
    program, name = themed
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    page.setCurrentWidget(page.trace)
    page.trace.source.input.set_source(NAN)
    page.trace.start()
    page.trace.moved.emit("origin", -1)
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(page.trace, f"trace_{name}")


def test_the_lines_of_a_custom_function(themed, qapp):
    program, name = themed
    program.window.show_workspace("autograd")
    page = program.window.page("autograd")
    page.setCurrentWidget(page.trace)
    page.trace.source.input.set_source(GELU)
    page.trace.start()
    program.bench.link.drain()
    page.trace.source.reader.line_clicked.emit(6)  # ctx.save_for_backward(x)
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(page.trace, f"trace_lines_{name}")


def test_train(themed, qapp):
    program, name = themed
    open_template(program, "mlp", "train")
    qapp.processEvents()
    assert_same_picture(program.window.page("train"), f"train_{name}")
