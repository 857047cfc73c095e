"""The tabs of the Autograd workspace, in light and dark, as a person last looked at them."""

from __future__ import annotations

import pytest

from engine.project.examples import mistakes
from tests.pictures import assert_same_picture
from widgets import theme

CELL = """
x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, -1.0]], requires_grad=True)
w = torch.tensor([[2.0, 0.0], [1.0, -1.0], [0.0, 4.0]])
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        slope = 2 * ctx.saved_tensors[0]
        slope[0, 1] += 1
        return grad * slope
"""


@pytest.fixture(params=["light", "dark"])
def themed(request, program, qapp):
    """The program at 1440 by 900, its Autograd page, and the theme's name."""
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[request.param])
    program.window.resize(1440, 900)
    program.window.show_workspace("autograd")
    program.workspaces.run_python(CELL)
    program.bench.link.drain()
    return program, program.window.page("autograd"), request.param


def ask(program, view, kind: str, function: str, inputs: str) -> None:
    view.form.show_question(kind, function, inputs)
    view.form.ask()
    program.bench.link.drain()


def test_a_jacobian(themed, qapp):
    program, page, name = themed
    page.setCurrentWidget(page.derivatives)
    ask(program, page.derivatives, "jacobian", "lambda x: x @ w", "x")
    page.derivatives.result.entry_chosen.emit(1, 1)
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(page, f"jacobian_{name}")


def test_gradcheck(themed, qapp):
    program, page, name = themed
    page.setCurrentWidget(page.derivatives)
    ask(program, page.derivatives, "gradcheck", "Bad.apply", "x")
    qapp.processEvents()
    assert_same_picture(page, f"gradcheck_{name}")


def test_a_mistake(themed, qapp):
    program, page, name = themed
    page.setCurrentWidget(page.mistakes)
    place = list(mistakes()).index("detached")
    page.mistakes.list.setCurrentRow(place)
    page.mistakes.code.run.click()
    program.bench.link.drain()
    page.mistakes.ask.click()
    program.bench.link.drain()
    qapp.processEvents()
    assert_same_picture(page, f"mistake_{name}")


def test_a_stale_node(themed, qapp, qtbot):
    program, page, name = themed
    program.workspaces.run_python(
        "y = x.exp()\nz = (y * 2).sum()\nwith torch.no_grad():\n    y.add_(1)"
    )
    program.bench.link.drain()
    page.steps.roots.choose("z")
    program.bench.link.drain()
    qtbot.waitUntil(lambda: page.steps.graph.laid_out, timeout=30_000)
    qapp.processEvents()
    assert_same_picture(page, f"stale_{name}")
