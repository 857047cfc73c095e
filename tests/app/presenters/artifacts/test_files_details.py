"""The page Files: programs in parts, blocks that are made or not, and what is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.artifacts.files import FilesPresenter
from engine.project import edits
from engine.project.document import Project, replace
from engine.protocol import (
    ArtifactEntry,
    CompareArtifactsCommand,
    ErrorReport,
    ErrorSnapshot,
    OpenArtifactCommand,
    OutputSnapshot,
    ProgramModule,
    ProgramNode,
)
from engine.protocol.artifact_messages import ProgramGraph
from tests.app.presenters.artifacts.test_files_presenter import OTHER, PATH, A, B, Desk, index
from widgets.artifacts.file_view import FileView

CHAIN = (
    ArtifactEntry("0.weight", "tensor", (8, 4), readable=True),
    ArtifactEntry("0.bias", "tensor", (8,), readable=True),
)


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, link, qtbot)


def test_the_parts_of_a_program_are_put_together(desk: Desk) -> None:
    shown: list[Any] = []
    desk.view.show_file = lambda part, entries, program: shown.append((entries, program))

    def graph(name: str) -> ProgramGraph:
        return ProgramGraph(modules=(ProgramModule(name, "M"),), nodes=(ProgramNode(name, "op"),))

    desk.presenter.open(PATH)
    desk.link.answer(OutputSnapshot(stream="stdout", text="none of it"))
    desk.link.answer(replace(index(A, left=1), graph=graph("a")))
    desk.link.answer(replace(index(B), graph=graph("b")))
    ((entries, program),) = shown
    assert [entry.key for entry in entries] == ["fc.weight", "out.weight"]
    assert [module.path for module in program.modules] == ["a", "b"]
    assert [node.name for node in program.nodes] == ["a", "b"]
    desk.presenter.open(PATH)
    desk.link.answer(replace(index(A), graph=graph("c")))
    assert [node.name for node in shown[1][1].nodes] == ["c"]  # not those of before


def test_a_file_without_a_program_has_none(desk: Desk) -> None:
    shown: list[Any] = []
    desk.view.show_file = lambda part, entries, program: shown.append(program)
    desk.open()
    assert shown == [None] and desk.sent(CompareArtifactsCommand) == []


def test_why_a_file_was_not_opened_has_its_traceback(desk: Desk, bench) -> None:
    desk.presenter.open(OTHER)
    error = ErrorReport("ValueError", "It is damaged.", "Choose another.", traceback="line 1")
    desk.link.answer(ErrorSnapshot(command="OpenArtifactCommand", error=error))
    banner = bench.window.banners.banner("file")
    assert banner.title == "other.pt was not opened. It is damaged. Choose another."
    assert banner.toolTip().endswith("line 1")


def test_an_index_that_was_under_way_is_asked_for_again(desk: Desk) -> None:
    desk.presenter.open(PATH)
    desk.link.close()
    desk.link.get_ready()
    assert [each.path for each in desk.sent(OpenArtifactCommand)] == [PATH, PATH]
    desk.link.get_ready()  # it is under way
    assert len(desk.sent(OpenArtifactCommand)) == 2


def test_no_file_is_asked_for_by_an_engine_after_none(desk: Desk) -> None:
    desk.link.close()
    desk.link.get_ready()
    assert desk.sent(OpenArtifactCommand) == []


def test_blocks_are_not_made_if_the_project_stays(desk: Desk, bench) -> None:
    made: list[bool] = []
    desk.presenter.blocks_made.connect(lambda: made.append(True))
    desk.open(*CHAIN)
    bench.edit("Add", lambda project: edits.add_block(project, "nn.ReLU", 0, 0)[0])
    before = bench.project
    bench.dialogs.leave = "cancel"
    del desk.heard[:]
    desk.view.blocks_requested.emit("")
    assert bench.project is before and made == [] and desk.heard == []
    assert bench.window.banners.banner("file") is None


def test_values_that_are_no_tensors_make_no_blocks(desk: Desk, bench) -> None:
    desk.open(*CHAIN, ArtifactEntry("lr", "value"))
    desk.view.blocks_requested.emit("")
    assert [b.kind for b in bench.project.model.blocks].count("nn.Linear") == 1


def test_blocks_of_a_chosen_group_are_loaded_from_it(desk: Desk, bench) -> None:
    entries = [replace(each, key=f"ema.{each.key}") for each in CHAIN]
    desk.open(*entries, ArtifactEntry("other.x", "tensor", (2, 3, 4, 5, 6, 7), readable=True))
    del desk.heard[:]
    desk.view.blocks_requested.emit("ema")
    assert [each[:3] for each in desk.heard] == [("load", PATH, "ema")]
    assert bench.project.name == "net"


def test_the_page_begins_with_no_file_and_the_subject_s_name(bench, qtbot) -> None:
    view, told = FileView(), list[Any]()
    qtbot.addWidget(view)
    view.show_nothing = lambda: told.append("nothing")
    view.show_subject = told.append
    FilesPresenter(bench, view, bench.window)
    assert told == ["Canvas", "nothing"]
    bench.store.set_project(Project(name="other"))
    assert told[2:] == ["Canvas"]


def test_the_other_file_is_compared_once_the_first_is_there(desk: Desk) -> None:
    desk.presenter.open(PATH, OTHER)
    desk.link.answer(index(A, left=1))
    assert desk.sent(CompareArtifactsCommand) == []
    desk.link.answer(index(B))
    assert [each.path for each in desk.sent(CompareArtifactsCommand)] == [PATH]
    desk.presenter.open(PATH)
    desk.link.answer(index(A))
    assert len(desk.sent(CompareArtifactsCommand)) == 1  # it was for that time only
