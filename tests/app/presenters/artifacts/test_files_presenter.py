"""The page Files without an engine: what is asked for a file, and what is shown or said."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.artifacts.files import FilesPresenter, name_for
from engine.project.document import ParamValue, replace
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ArtifactDifference,
    ArtifactDifferenceSnapshot,
    ArtifactEntry,
    ArtifactSnapshot,
    ArtifactTotals,
    CompareArtifactsCommand,
    OpenArtifactCommand,
    OutputSnapshot,
    ReadValuesCommand,
    Snapshot,
    StopSignal,
    Variable,
    VariablesSnapshot,
)
from widgets.artifacts.file_view import FileView

PATH, OTHER = "/work/net.pt", "/work/other.pt"
TOTALS = ArtifactTotals(tensors=2, values=0, elements=8, tensor_bytes=32)
A, B = (
    ArtifactEntry(key, "tensor", (2, 2), "float32", 16, readable=True)
    for key in ("fc.weight", "out.weight")
)


def index(*entries: ArtifactEntry, left: int = 0, path: str = PATH) -> ArtifactSnapshot:
    return ArtifactSnapshot(
        path=path, kind="torch", title="PyTorch file", size_bytes=9, entries=entries,
        totals=TOTALS, left=left,
    )  # fmt: skip


class Desk:
    def __init__(self, bench, link, qtbot) -> None:
        self.bench, self.link = bench, link
        self.view = FileView()
        qtbot.addWidget(self.view)
        self.presenter = FilesPresenter(bench, self.view, bench.window)
        self.heard: list[Any] = []
        presenter = self.presenter
        presenter.opened.connect(lambda: self.heard.append("opened"))
        presenter.load_requested.connect(lambda *given: self.heard.append(("load", *given)))
        presenter.work_requested.connect(lambda path: self.heard.append(("work", path)))
        presenter.cell_requested.connect(lambda *given: self.heard.append(("cell", *given)))

    def open(self, *entries: ArtifactEntry) -> None:
        self.presenter.open(PATH)
        self.link.answer(index(*(entries or (A, B))))

    def sent(self, kind: type) -> list[Any]:
        return [each for each in self.link.sent if isinstance(each, kind)]

    @property
    def compared(self) -> str:
        return self.view.difference._words.text()


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    return Desk(bench, link, qtbot)


def test_a_file_is_shown_when_all_parts_of_its_index_are_there(desk, bench) -> None:
    desk.presenter.open(PATH)
    assert [each.path for each in desk.sent(OpenArtifactCommand)] == [PATH]
    assert bench.window.said == ["Reading net.pt …"]
    desk.link.answer(index(A, left=1))
    assert desk.view.path == "" and desk.heard == []
    desk.link.answer(index(B))
    assert desk.view.path == PATH and desk.heard == ["opened"]
    assert [entry.key for entry in desk.presenter._entries] == ["fc.weight", "out.weight"]
    assert bench.window.said[1:] == [""] and bench.settings.recent_files[0] == PATH
    desk.open(A)
    assert [entry.key for entry in desk.presenter._entries] == ["fc.weight"]  # not those of before


def test_a_file_that_was_not_opened_is_told_and_the_one_before_stays(desk, bench) -> None:
    desk.open()
    for message, title in (
        ("net.pt is empty.", "other.pt was not opened. net.pt is empty."),
        ("other.pt is empty.", "other.pt is empty."),
    ):
        desk.presenter.open(OTHER)
        assert bench.window.banners.banner("file") is None
        desk.link.fail(message)
        assert bench.window.banners.banner("file").title == title
        assert bench.window.said[-1] == ""
        assert (desk.view.path, desk.presenter._path) == (PATH, PATH)


def test_without_an_engine_a_file_is_read_by_the_next_one(desk, bench) -> None:
    desk.link.close()
    desk.presenter.open(PATH, OTHER)
    assert desk.sent(OpenArtifactCommand) == []
    assert bench.window.said == [f"net.pt is read when there is an engine. {desk.link.unsent}"]
    desk.link.get_ready()
    assert [each.path for each in desk.sent(OpenArtifactCommand)] == [PATH]
    desk.link.answer(index(A))
    assert [each.other for each in desk.sent(CompareArtifactsCommand)] == [OTHER]
    desk.link.close()
    desk.link.get_ready()
    assert len(desk.sent(OpenArtifactCommand)) == 2
    desk.presenter.close()
    desk.link.close()
    desk.link.get_ready()
    assert len(desk.sent(OpenArtifactCommand)) == 2


def test_a_file_that_was_closed_is_not_shown_any_more(desk) -> None:
    desk.presenter.open(PATH)
    desk.view.close_requested.emit()
    desk.link.answer(index(A))
    assert desk.view.path == "" and desk.heard == []


def test_two_files_are_compared_as_the_keys_come(desk) -> None:
    desk.presenter.open(PATH, OTHER)
    desk.link.answer(index(A, B))
    (command,) = desk.sent(CompareArtifactsCommand)
    assert (command.path, command.other) == (PATH, OTHER)
    assert desk.view.tabs.currentWidget() is desk.view.difference
    assert desk.compared == "Comparing with other.pt: 0 of 2 keys …"
    rows = tuple(ArtifactDifference(key, "equal") for key in ("fc.weight", "out.weight"))

    def part(**fields: Any) -> Snapshot:
        return ArtifactDifferenceSnapshot(path=PATH, other=OTHER, total=2, **fields)

    desk.link.answer(OutputSnapshot(stream="stdout", text="none of it"))
    desk.link.answer(part(rows=rows[:1], done=1, left=1))
    assert desk.compared == "Comparing with other.pt: 1 of 2 keys …"
    desk.link.answer(part(rows=rows[1:], done=2))
    assert desk.compared == "a is this file, b is other.pt. All keys are equal."
    assert desk.presenter._differences == list(rows)
    desk.presenter.compare_with(OTHER)
    desk.link.answer(part(rows=rows[:1], done=2))
    assert len(desk.presenter._differences) == 1  # not those of before
    desk.link.fail("It is gone.", "Look for it.")
    assert desk.compared == "It is gone. Look for it."


def test_the_other_file_is_chosen_and_a_comparison_stopped(desk, bench) -> None:
    desk.open()
    desk.view.difference.compare_requested.emit()
    assert desk.sent(CompareArtifactsCommand) == []  # none was chosen
    bench.dialogs.path = OTHER
    desk.view.difference.compare_requested.emit()
    assert bench.dialogs.asked[-1].startswith("Compare with")
    assert [each.other for each in desk.sent(CompareArtifactsCommand)] == [OTHER]
    desk.view.difference.stop_requested.emit()
    assert StopSignal(command=len(desk.link.sent)) in desk.link.signals
    assert desk.compared == "The comparison was stopped."
    desk.link.close()
    desk.presenter.compare_with(OTHER)
    assert desk.compared == f"other.pt was not compared. {desk.link.unsent}"


def test_numbers_are_asked_of_the_open_file(desk) -> None:
    command = ReadValuesCommand(expression="fc.weight")
    desk.view.values.asked.emit(command)
    assert desk.sent(ReadValuesCommand) == []  # none is open
    desk.open()
    desk.link.sent.clear()
    desk.view.values.asked.emit(command)
    assert [(each.file, each.expression) for each in desk.sent(ReadValuesCommand)] == [
        (PATH, "fc.weight")
    ]
    shown: list[Any] = []
    desk.view.values.show_error = lambda command, error: shown.append((command, error.message))
    desk.view.values.show_snapshot = shown.append
    desk.link.fail("It is gone.")
    assert shown == [(command, "It is gone.")]


def test_what_the_page_wants_is_passed_on(desk, bench) -> None:
    desk.open()
    del desk.heard[:]
    desk.view.load_requested.emit("fc")
    desk.view.work_requested.emit()
    bench.store.take(VariablesSnapshot(variables=(Variable("fc_weight", "tensor", "Tensor"),)))
    desk.view.variable_requested.emit("fc.weight")
    assert desk.heard == [
        ("load", PATH, "fc", {}), ("work", PATH),
        ("cell", f"fc_weight_2 = lab.open({PATH!r})['fc.weight']", "fc_weight_2"),
    ]  # fmt: skip
    asked: list[str] = []
    bench.files.open = lambda: asked.append("file")
    bench.files.open_folder = lambda: asked.append("folder")
    desk.view.open_requested.emit()
    desk.view.folder_requested.emit()
    assert asked == ["file", "folder"]


def test_the_button_names_the_subject(desk, bench) -> None:
    desk.open()
    assert desk.view.load.text() == "Load into Canvas"
    bench.store.set_project(replace(bench.project, subject=ConsoleSubject("net")))
    assert desk.view.load.text() == "Load into net"


@pytest.mark.parametrize(
    ("key", "taken", "name"),
    [
        ("fc.weight", set(), "fc_weight"),
        ("a.b.c.d", set(), "b_c_d"),
        ("fc.weight", {"fc_weight"}, "fc_weight_2"),
        ("fc.weight", {"fc_weight", "fc_weight_2"}, "fc_weight_3"),
        ("0.weight", set(), "t_0_weight"),
        ("class", set(), "t_class"),
        ("...", set(), "tensor"),
        ("größe", set(), "gr__e"),
    ],
)
def test_a_tensor_s_name_in_python(key: str, taken: set[str], name: str) -> None:
    assert name_for(key, taken) == name


def test_blocks_are_made_of_the_tensors_of_a_group(desk, bench) -> None:
    def linear(name: str, rows: int, columns: int) -> tuple[ArtifactEntry, ArtifactEntry]:
        return (
            ArtifactEntry(f"{name}.weight", "tensor", (rows, columns), readable=True),
            ArtifactEntry(f"{name}.bias", "tensor", (rows,), readable=True),
        )

    made: list[Any] = []
    desk.presenter.blocks_made.connect(lambda: made.append(True))
    desk.open(*linear("0", 8, 4), *linear("2", 3, 8))
    del desk.heard[:]
    desk.view.blocks_requested.emit("")
    assert bench.project.name == "net" and made == [True]
    kinds = [block.kind for block in bench.project.model.blocks]
    assert kinds.count("nn.Linear") == 2
    widths: list[ParamValue] = [
        block.params["out_features"] for block in bench.project.model.blocks
        if block.kind == "nn.Linear"
    ]  # fmt: skip
    assert widths == [8, 3]
    assert [each[:3] for each in desk.heard] == [("load", PATH, "")]
    title = bench.window.banners.banner("file").title
    assert title == f"{len(kinds)} blocks from net.pt"


def test_tensors_that_are_no_chain_make_no_blocks(desk, bench) -> None:
    before = bench.project
    desk.open(ArtifactEntry("x", "tensor", (2, 3, 4, 5, 6, 7), readable=True))
    desk.view.blocks_requested.emit("")
    assert bench.project is before
    title = bench.window.banners.banner("file").title
    assert title == "No model of blocks was made from net.pt."
    desk.view.blocks_requested.emit("gone")
    title = bench.window.banners.banner("file").title
    assert title == "No model of blocks was made from gone of net.pt."
