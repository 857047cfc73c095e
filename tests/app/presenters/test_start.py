"""The Start page's presenter: templates, recent files, and the ways into workspaces."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app import templates
from app.presenters.start import StartPresenter, start_page
from engine.project.document import Project
from engine.project.examples import graph_examples, mistakes
from widgets.start.cards import TemplateCard, WayCard
from widgets.start.start_page import StartPage


@pytest.fixture
def page(bench, qtbot, monkeypatch) -> StartPage:
    page = start_page(bench.actions, bench.settings.recent_files)
    qtbot.addWidget(page)
    page.recent = []
    monkeypatch.setattr(page, "show_recent", page.recent.append)
    page.presenter = StartPresenter(bench, page, bench.window)
    return page


def test_a_template_is_a_new_project_without_a_file(page, bench):
    first = templates.templates()[0]
    page.template_chosen.emit(first.key)
    assert bench.project.model == templates.load_template(first.key).model
    assert bench.files.path == "" and not bench.files.modified


def test_every_template_is_shown_with_its_title_and_summary(page):
    said = [label.text() for card in page.findChildren(TemplateCard)
            for label in card.findChildren(QLabel) if label.text()]  # fmt: skip
    assert said == [
        text for template in templates.templates() for text in (template.title, template.summary)
    ]


def test_a_template_that_is_not_there_is_told_and_what_is_open_stays(page, bench):
    told: list[str] = []
    bench.files.failed.connect(told.append)
    bench.files.new(Project(name="Mine"))
    page.template_chosen.emit("no such template")
    assert told[0].startswith("The template was not opened. ") and bench.project.name == "Mine"


def test_recent_files_are_shown_and_opened(page, bench, tmp_path):
    path = str(tmp_path / "a.tlab")
    bench.files.save_as(path)
    assert page.recent[-1] == (path,)
    page.recent_chosen.emit(path)
    assert bench.files.path == path and page.recent[-1] == (path,)


def test_new_and_open_are_those_of_the_file_menu(page, bench, tmp_path):
    bench.files.save_as(str(tmp_path / "a.tlab"))
    page.new_requested.emit()
    assert bench.files.path == "" and bench.project == Project()
    bench.dialogs.path = str(tmp_path / "a.tlab")
    page.open_requested.emit()
    assert bench.files.path == bench.dialogs.path


def test_each_way_leads_where_its_entry_says(page, bench):
    wanted: list[tuple[str, str]] = []
    page.presenter.example_requested.connect(lambda key: wanted.append(("example", key)))
    page.presenter.mistake_requested.connect(lambda key: wanted.append(("mistake", key)))
    bench.actions["tensors.create"].triggered.connect(lambda: wanted.append(("create", "")))
    page.way_chosen.emit("autograd", "chain_rule")
    page.way_chosen.emit("mistakes", "detached")
    page.way_chosen.emit("tensors", "tensors.create")
    assert wanted == [("example", "chain_rule"), ("mistake", "detached"), ("create", "")]


def test_the_ways_have_all_examples_and_all_mistakes(page):
    def listed(way: str) -> list[str]:
        return [a.objectName() for a in page.findChild(QPushButton, way).menu().actions()]

    assert listed("start_autograd_all") == list(graph_examples())
    assert listed("start_mistakes_all") == list(mistakes())


def test_all_templates_and_ways_are_in_sight_on_a_small_screen(page, qtbot):
    page.resize(1278, 676)  # the page in a window with its frame on a screen of 1366 by 768
    with qtbot.waitExposed(page):
        page.show()
    for kind in (TemplateCard, WayCard):
        corners = [card.mapTo(page, card.rect().bottomRight()) for card in page.findChildren(kind)]
        assert len({corner.y() for corner in corners}) == 1
        assert max(corner.y() for corner in corners) < page.height()


def test_a_recent_file_that_cannot_be_opened_leaves_the_list(page, bench, tmp_path):
    path = str(tmp_path / "a.tlab")
    bench.settings.add_recent_file(path)
    shown = len(page.recent)
    bench.files.failed.emit("It is gone.")
    assert len(page.recent) == shown + 1
    assert page.recent[-1] == tuple(bench.settings.recent_files)
