"""Weights that are dropped on the window: a report, and loading what the user agrees to."""

from __future__ import annotations

import pytest

from app.presenters.weights import WeightsPresenter
from app.window.weights_panel import WeightsPanel
from engine.project import edits
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import FitSnapshot, KeyFit, LoadWeightsCommand

PARTIAL = FitSnapshot(
    path="/x/net.pt",
    title="model",
    loaded=False,
    matched=4,
    missing=(KeyFit("head.bias", (3,)),),
    unexpected=(KeyFit("extra", (1, 2)),),
    misshapen=(KeyFit("head.weight", (7, 4), (3, 4)),),
    counts=(1, 101, 1),
)
RENAMED = FitSnapshot(
    path="/x/net.pt",
    title="model",
    loaded=False,
    matched=6,
    renaming="“module.” is taken off the names of the file",
)


@pytest.fixture
def panel(bench, link) -> WeightsPanel:
    bench.window.resize(1000, 700)
    bench.window.show()
    presenter = WeightsPresenter(bench, bench.window)
    panel = presenter.panel
    panel.setProperty("presenter", presenter)
    link.get_ready()
    bench.edit("x", lambda project: edits.set_subject(project, ConsoleSubject("model")))
    return panel


def load(panel: WeightsPanel) -> None:
    panel.property("presenter").load("/x/net.pt")


def test_weights_that_fit_are_loaded_and_told(link, panel):
    load(panel)
    command = link.sent[-1]
    assert isinstance(command, LoadWeightsCommand)
    assert (command.subject, command.path, command.agreed) == (
        ConsoleSubject("model"), "/x/net.pt", False)  # fmt: skip
    link.answer(FitSnapshot(path="/x/net.pt", title="model", loaded=True, matched=6))
    assert panel.isVisible() and not panel.load.isVisible() and not panel.names.isVisible()
    assert panel.title.text() == "net.pt: 6 of 6 tensors loaded into model"


def test_what_does_not_fit_is_named_and_what_fits_is_loaded_if_the_user_says_so(link, panel):
    load(panel)
    link.answer(PARTIAL)
    assert panel.title.text() == "net.pt: 4 of 6 tensors of model"
    assert panel._words.text() == "Nothing is loaded yet."
    assert panel.names.toPlainText().split("\n") == [
        "1 missing in the file:",
        "  head.bias  (3,)",
        "1 of another shape:",
        "  head.weight  (7, 4), the subject has (3, 4)",
        "101 not in the subject:",
        "  extra  (1, 2)",
        "  and 100 more",
    ]
    assert panel.load.text() == "Load what fits" and len(link.sent) == 1
    panel.load.click()
    assert not panel.isVisible()
    command = link.sent[-1]
    assert isinstance(command, LoadWeightsCommand) and command.agreed
    assert (command.subject, command.path) == (ConsoleSubject("model"), "/x/net.pt")


def test_other_names_are_offered_in_one_click(link, panel):
    load(panel)
    link.answer(RENAMED)
    assert panel._words.text() == f"{RENAMED.renaming}. Nothing is loaded yet."
    assert panel.load.text() == "Load with these names"
    panel.load.click()
    assert link.sent[-1].agreed


def test_nothing_can_be_loaded_if_nothing_fits(link, panel):
    load(panel)
    link.answer(FitSnapshot(path="/x/a.pt", title="m", loaded=False, matched=0, counts=(2, 0, 0)))
    assert panel.load.isVisible() and not panel.load.isEnabled()


def test_an_error_is_told_and_the_next_file_takes_it_away(bench, link, panel):
    load(panel)
    link.fail("It is damaged.", "Choose another.")
    banner = bench.window.banners.banner("weights")
    assert banner.title == "net.pt was not loaded. It is damaged. Choose another."
    load(panel)
    assert bench.window.banners.banner("weights") is None


def test_the_report_goes_with_the_engine_and_the_project(bench, link, panel):
    load(panel)
    link.answer(PARTIAL)
    bench.files.opened.emit()
    assert not panel.isVisible()
    load(panel)
    link.close()
    load(panel)
    assert bench.window.said[-1].startswith("net.pt was not loaded.")


def test_the_offer_goes_with_the_subject_and_an_error_that_comes_late_is_told(bench, link, panel):
    load(panel)
    link.answer(PARTIAL)
    bench.edit("x", lambda project: edits.set_objective(project, Objective(data="x")))
    assert panel.isVisible()  # the same subject
    load(panel)
    link.answer(PARTIAL)
    bench.edit("x", lambda project: edits.set_subject(project, ConsoleSubject("other")))
    assert not panel.isVisible()
    load(panel)
    bench.edit("x", lambda project: edits.set_subject(project, ConsoleSubject("model")))
    link.fail("It is damaged.", "Choose another.")
    assert bench.window.banners.banner("weights") is not None


def test_the_canvas_has_then_learnt_its_weights(bench, link):
    link.get_ready()
    link.answer(FitSnapshot(path="/x/a.pt", title="model", loaded=True, matched=2))
    assert not bench.weights.modified
    link.answer(FitSnapshot(path="/x/a.pt", title="C", loaded=False, matched=2, saved_beside=True))
    assert not bench.weights.modified
    link.answer(FitSnapshot(path="/x/a.pt", title="C", loaded=True, matched=2, saved_beside=True))
    assert bench.weights.modified and bench.weights.learnt
