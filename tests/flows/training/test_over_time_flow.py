"""Modules and histograms of a run through the window: while it goes on, and opened again."""

from __future__ import annotations

import pytest

from app.selection.references import Module, Parameter
from engine.project.document import replace
from engine.protocol import TrainingSnapshot

pytestmark = pytest.mark.one_program


def train(program) -> TrainingSnapshot:
    view = program.window.page("train")
    setup = replace(program.bench.project.training, epochs=1)
    view.form.setup_edited.emit(setup, "Set epochs to 1")
    view.bar.train_requested.emit()
    program.bench.link.drain()
    run = program.bench.store.newest(TrainingSnapshot)
    assert run is not None and run.state == "finished"
    return run


def test_both_pages_show_the_run_and_follow_the_selection(mlp) -> None:
    view = mlp.window.page("train")
    run = train(mlp)
    view.tabs.setCurrentWidget(view.modules)
    mlp.bench.link.drain()
    names = [line.name for line in view.modules.chart.lines]
    assert len(names) > 1 and view.modules.chart.lines[0].x[0] == 1
    view.modules.chart.chosen.emit(names[1])
    assert mlp.bench.selection.current == Module(names[1])
    view.tabs.setCurrentWidget(view.histograms)
    mlp.bench.link.drain()
    assert view.histograms.map.values.size
    mlp.bench.selection.choose(Parameter(f"{names[1]}.bias"))
    mlp.bench.link.drain()
    assert view.histograms.name == f"{names[1]}.bias"

    mlp.bench.link.restart()  # a new engine knows nothing of the run but its folder
    mlp.bench.link.drain()
    mlp.workspaces.train.train(paused=True, checkpoint=run.checkpoint)
    view.tabs.setCurrentWidget(view.modules)
    view.modules.asked.emit()
    mlp.bench.link.drain()
    assert [line.name for line in view.modules.chart.lines] == names
    assert view.modules.chart.lines[0].x[0] == 1
    mlp.bench.link.stop_job()
    mlp.bench.link.drain()


def test_a_loop_of_a_cell_is_looked_at_and_then_the_next_run(mlp) -> None:
    view = mlp.window.page("train")
    mlp.workspaces.at_tensors().submit(
        "net = nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(4):\n"
        "    net(torch.ones(2, 3)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    mlp.bench.link.drain()
    mlp.window.show_workspace("train")
    view.tabs.setCurrentWidget(view.modules)
    view.modules.asked.emit()
    mlp.bench.link.drain()
    (line,) = view.modules.chart.lines
    assert {1, 2, 4} <= set(line.x)
    view.tabs.setCurrentWidget(view.histograms)
    view.histograms.asked.emit()
    mlp.bench.link.drain()
    assert view.histograms.name == "weight" and view.histograms.map.values.size
    train(mlp)
    view.tabs.setCurrentWidget(view.modules)
    view.modules.asked.emit()
    mlp.bench.link.drain()
    assert len(view.modules.chart.lines) > 1
