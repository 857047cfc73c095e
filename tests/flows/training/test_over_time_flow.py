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


def test_what_a_loop_logs_is_shown_and_opened(mlp) -> None:
    view = mlp.window.page("train")
    mlp.workspaces.at_tensors().submit(
        "net = nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(4):\n"
        "    out = net(torch.ones(2, 3))\n"
        "    out.sum().backward()\n"
        "    lab.log(out=out, weight=lab.image(net.weight))\n"
        "    optimizer.step()\n"
    )
    mlp.bench.link.drain()
    tensors = mlp.workspaces.tensors
    listed = [variable.name for variable in tensors.page.variables.model.variables]
    assert listed[-2:] == ["lab.logged['out']", "lab.logged['weight']"]
    mlp.window.show_workspace("train")
    assert view.tabs.isTabVisible(view.tabs.indexOf(view.images))
    view.tabs.setCurrentWidget(view.images)
    mlp.bench.link.drain()
    assert view.images.name == "weight" and view.images.strip.sizeHint().width() > 300
    view.tabs.setCurrentWidget(view.histograms)
    view.histograms._kind.setCurrentIndex(2)
    view.histograms.asked.emit()
    mlp.bench.link.drain()
    assert view.histograms.name == "out" and view.histograms.map.values.size
    view.images.chosen.emit("weight")
    mlp.bench.link.drain()
    assert mlp.window.workspace == "tensors" and tensors.expression == "lab.logged['weight']"
    assert tensors.page.tabs.currentWidget() is tensors.page.values
    train(mlp)
    assert not view.tabs.isTabVisible(view.tabs.indexOf(view.images))


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
    assert view.histograms.name == "net.weight" and view.histograms.map.values.size
    train(mlp)
    view.tabs.setCurrentWidget(view.modules)
    view.modules.asked.emit()
    mlp.bench.link.drain()
    assert len(view.modules.chart.lines) > 1
