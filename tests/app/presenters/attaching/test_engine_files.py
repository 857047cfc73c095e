"""Files where the engine is on another machine: whose files a dialog shows, and what is copied."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PySide6.QtWidgets import QLabel
from safetensors.torch import load_file, save_file

from app.presenters.attaching.engine_files import EngineFiles
from app.presenters.export import ExportPresenter
from app.presenters.train.runs.event_files import SEE, EventFilesPresenter
from app.presenters.train.runs.run_fetches import RunFetches
from app.templates import load_template
from app.weights import Weights
from engine.connecting.engine_place import EnginePlace
from engine.events.reading import read_events
from engine.project import files
from engine.project.document import replace
from engine.protocol import (
    ExportSnapshot,
    ListFolderCommand,
    ListRunsCommand,
    OpenWeightsCommand,
    PartSnapshot,
    ReadPartCommand,
    RunsSnapshot,
    TrainCommand,
)
from engine.protocol.exporting.messages import WrittenFile
from engine.protocol.transfers.messages import PART_BYTES
from engine.runs.summary import rows_in
from tests.app.presenters.attaching.conftest import choose
from tests.app.presenters.attaching.test_place import WELCOME
from widgets.runs.run_pane import RunPane


def test_the_machine_is_named_while_the_engine_is_there(there, bench, link):
    assert there.machine == "me@box" and Path(there.folder).is_dir()
    assert bench.actions["file.open_there"].isVisible()
    link.attached = None
    link.close()
    assert there.machine == there.folder == ""
    assert not bench.actions["file.open_there"].isVisible()


@pytest.mark.parametrize("address", ["box", "/run/user/1/tensorlab/1.sock"])
def test_an_engine_of_this_machine_sees_the_same_files(address: str):
    assert not EnginePlace(address).is_other_machine


def test_data_are_chosen_among_the_files_there(there, bench, engine, tmp_path):
    (tmp_path / "digits.csv").touch()
    seen = []

    def act(dialog) -> None:
        seen.append(dialog.windowTitle())
        seen.append(dialog.view.findChild(QLabel, "whose_files").text())
        dialog.view.folder_wanted.emit(str(tmp_path))
        engine.work()
        dialog.view.table.selectRow(0)
        dialog.view.button.click()

    choose(bench, engine, act)
    assert bench.files.ask_data_path("file") == str(tmp_path / "digits.csv")
    assert seen == ["Choose the data: me@box", "Files of me@box, where the engine runs."]
    # It begins where the last one ended.
    choose(bench, engine, lambda dialog: None)
    assert bench.files.ask_data_path("folder") == ""
    assert bench.link.sent[-1] == ListFolderCommand(
        path=str(tmp_path), id=len(bench.link.sent), revision=bench.store.revision
    )


def test_runs_go_to_the_data_folder_there(there, bench, link):
    bench.files.path = "/home/me/net.tlab"
    assert bench.files.runs_folder == ""
    link.attached = None
    assert bench.files.runs_folder == files.runs_folder("/home/me/net.tlab")


@pytest.mark.parametrize("size", [0, 10, 2 * PART_BYTES + 1])
def test_files_are_copied_both_ways_bit_for_bit(there, engine, tmp_path, size: int):
    data = torch.randint(256, (size,), dtype=torch.uint8).numpy().tobytes()
    (tmp_path / "here").write_bytes(data)
    ends: list[str] = []
    there.bring(tmp_path / "here", str(tmp_path / "there"), ends.append)
    engine.work()
    there.fetch(str(tmp_path / "there"), tmp_path / "again", ends.append)
    engine.work()
    assert ends == ["", ""]
    assert data == (tmp_path / "there").read_bytes() == (tmp_path / "again").read_bytes()
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_is_copied_with_all_that_it_holds(there, engine, tmp_path):
    (tmp_path / "there" / "inner").mkdir(parents=True)
    (tmp_path / "there" / "config.json").write_text("{}")
    (tmp_path / "there" / "inner" / "a.bin").write_bytes(b"1")
    ends: list[str] = []
    there.fetch(str(tmp_path / "there"), tmp_path / "here", ends.append)
    engine.work()
    assert ends == [""]
    assert (tmp_path / "here" / "config.json").read_text() == "{}"
    assert (tmp_path / "here" / "inner" / "a.bin").read_bytes() == b"1"


def pane_with_runs(bench, engine, qtbot, count: int) -> RunPane:
    """It lists so many runs of the engine's."""
    mlp = load_template("mlp")
    setup = replace(mlp.training, epochs=1, batch_size=512)
    for _ in range(count):
        bench.link.send(TrainCommand(model=mlp.model, training=setup))
        engine.work()
        engine.train()
    pane = RunPane()
    qtbot.addWidget(pane)
    bench.link.send(ListRunsCommand())
    bench.link.snapshot.connect(
        lambda told: isinstance(told, RunsSnapshot) and pane.show_runs(told)
    )
    engine.work()
    return pane


def test_runs_are_copied_here_whole_or_not_at_all(
    there, bench, engine, qtbot, tmp_path, monkeypatch
):
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    pane = pane_with_runs(bench, engine, qtbot, 2)
    fetches = RunFetches(bench, pane, bench.window)
    newer, older = [Path(row.folder) for row in pane.table.rows]
    assert pane.buttons.offers(pane.fetch) and "from me@box" in pane.fetch.toolTip()
    pane.table.selectAll()
    here = tmp_path / "here"
    here.mkdir()
    bench.dialogs.open_folder = lambda parent, title, start: str(here)
    pane.fetch.click()
    assert pane.told.text() == f"Copying {newer.name} into {here}…" and not pane.fetch.isEnabled()
    engine.work()
    assert pane.told.text() == f"Copied into {here}: {newer.name}, {older.name}."
    for run in (newer, older):
        copied = {path.relative_to(here / run.name): path for path in (here / run.name).rglob("*")}
        whole = {path.relative_to(run): path for path in run.rglob("*")}
        assert set(copied) == set(whole) and any(path.suffix == ".pt" for path in copied)
        for name, path in whole.items():
            assert path.is_dir() or path.read_bytes() == copied[name].read_bytes()
    assert [row.step for row in rows_in(here)] == [row.step for row in pane.table.rows]

    pane.fetch.click()
    assert pane.told.text() == f"{here / newer.name} is there already."
    bench.dialogs.open_folder = lambda parent, title, start: str(tmp_path)
    pane.fetch.click()
    pane.stop.click()
    assert pane.told.text() == f"{newer.name} was not copied. It was stopped."
    engine.work()
    assert not (tmp_path / newer.name).exists() and pane.fetch.isEnabled()
    there.folder = ""
    bench.link.attached = None
    fetches._show_machine()
    assert not pane.buttons.offers(pane.fetch)


def test_event_files_are_had_here(there, bench, engine, qtbot, tmp_path, monkeypatch):
    """They are what the engine writes beside itself, and nothing of them stays there."""
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    pane = pane_with_runs(bench, engine, qtbot, 1)
    EventFilesPresenter(bench, pane, RunFetches(bench, pane, bench.window), bench.window)
    assert pane.buttons.offers(pane.events_here) and "on me@box" in pane.events_here.toolTip()
    (run,) = [Path(row.folder) for row in pane.table.rows]
    here, beside = tmp_path / "here", tmp_path / "beside"
    here.mkdir()
    bench.dialogs.open_folder = lambda parent, title, start: str(here)
    pane.table.selectAll()
    pane.events_here.click()
    assert pane.told.text() == f"Writing event files into {here}…"
    engine.work()
    engine.train()
    engine.work()
    assert pane.told.text() == f"Copied into {here}: {run.name}. {SEE}"
    there.ask = lambda title, wanted: str(beside)
    pane.events.click()
    engine.work()
    engine.train()
    assert pane.told.text() == f"Written into {beside}: {run.name}. {SEE}"
    assert not list((Path(there.folder)).iterdir())
    scalars = [read_events(folder / run.name).scalars for folder in (here, beside)]
    assert scalars[0] == scalars[1] and scalars[0]


def test_a_copy_that_fails_leaves_the_file_as_it_was(there, engine, link, tmp_path):
    (tmp_path / "here").write_text("old")
    ends: list[str] = []
    there.fetch(str(tmp_path / "no"), tmp_path / "here", ends.append)
    engine.work()
    assert ends == [f"{tmp_path / 'no'}: No such file or directory."]
    there.fetch(str(tmp_path / "big"), tmp_path / "here", ends.append)
    part = PartSnapshot(path=str(tmp_path / "big"), data=b"new", size_bytes=10)
    link.answer(part)
    assert isinstance(link.sent[-1], ReadPartCommand) and link.sent[-1].offset == 3
    link.close()
    assert ends[1:] == ["The connection was lost."]
    assert (tmp_path / "here").read_text() == "old"


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a\\b", "..", ""])
def test_a_folder_with_names_that_lead_out_of_it_is_refused(there, link, tmp_path, name):
    ends: list[str] = []
    there.fetch("/data/run", tmp_path / "run", ends.append)
    link.answer(PartSnapshot(path="/data/run", is_folder=True, names=("ok", name)))
    assert len(ends) == 1 and "names that lead out of its folder" in ends[0]
    assert not list(tmp_path.iterdir())


def test_weights_beside_the_project_go_to_the_engine_and_back(
    there, bench, engine, tmp_path, training_snapshot
):
    project = load_template("mlp")
    path = tmp_path / "net.tlab"
    files.save(project, str(path))
    bench.files.open(str(path))
    engine.work()
    bench.store.take(training_snapshot(run="r", step=2))
    bench.link._receive(training_snapshot(run="r", step=3))
    assert bench.weights.modified
    settled = []
    bench.weights.settled.connect(lambda: settled.append(bench.weights.writing))
    assert bench.files.save()
    assert bench.weights.writing
    engine.work()
    assert settled == [False] and not bench.weights.modified
    saved = load_file(tmp_path / "net.safetensors")
    assert {tuple(tensor.shape) for tensor in saved.values()} >= {(10,)}

    changed = {name: tensor + 1 for name, tensor in saved.items()}
    save_file(changed, tmp_path / "net.safetensors")
    bench.files.open(str(path))
    engine.work()
    opened = [each for each in bench.link.sent if isinstance(each, OpenWeightsCommand)][-1]
    copy = Path(opened.path.decode())
    assert copy.parent == Path(there.folder)
    live = load_file(copy)
    assert all(torch.equal(live[name], tensor) for name, tensor in changed.items())


def test_an_export_lands_on_the_side_that_the_user_chooses(there, bench, engine, qtbot, tmp_path):
    presenter = ExportPresenter(bench, bench.window)
    dialog = presenter.dialog
    qtbot.addWidget(dialog)
    dialog.show_machine(there.machine)
    assert [dialog.side.itemText(i) for i in range(2)] == ["this machine", "me@box"]
    dialog.view.formats.choose("safetensors")
    here = tmp_path / "mine.safetensors"
    bench.dialogs.path = str(here)
    presenter._ask_path("safetensors", "", 0)
    there_path = Path(there.folder) / here.name
    assert bench.link.sent[-1].path == str(there_path)
    there_path.write_bytes(b"weights")
    written = ExportSnapshot(
        path=str(there_path), format="safetensors", size_bytes=7, sha256="", max_abs_error=0.0,
        keys=(), files=(WrittenFile(here.name, 7),),
    )  # fmt: skip
    engine._answered = len(bench.link.sent)
    bench.link.answer(written)
    engine.work()
    assert here.read_bytes() == b"weights" and bench.window.said[-1] == f"Exported {here}."
    assert not there_path.exists() and Path(there.folder).is_dir()  # the copy there has gone

    dialog.side.setCurrentIndex(1)
    choose(bench, engine, lambda dialog: setattr(dialog, "path", "/there/net.safetensors"))
    presenter._ask_path("safetensors", "", 0)
    assert bench.link.sent[-1].path == "/there/net.safetensors"
    bench.link.answer(replace(written, path="/there/net.safetensors"))
    assert bench.window.said[-1] == "Exported /there/net.safetensors."


def test_a_file_of_tensors_of_this_machine_is_copied_to_be_read(there, bench, engine, tmp_path):
    save_file({"w": torch.ones(2)}, tmp_path / "w.safetensors")
    chosen: list[str] = []
    bench.files.artifact_chosen.connect(chosen.append)
    failed: list[str] = []
    bench.files.failed.connect(failed.append)
    bench.files.open(str(tmp_path / "w.safetensors"))
    engine.work()
    assert chosen == [f"{there.folder}/w.safetensors"]
    assert torch.equal(load_file(chosen[0])["w"], torch.ones(2))
    bench.files.open(str(tmp_path))
    assert "is a folder of this machine" in failed[0]


@pytest.mark.parametrize("agrees", [True, False])
def test_a_file_there_is_replaced_only_if_the_user_says_so(there, bench, engine, tmp_path, agrees):
    (tmp_path / "net.pt").touch()
    bench.dialogs.agrees = agrees

    def act(dialog) -> None:
        dialog.view.folder_wanted.emit(str(tmp_path))
        engine.work()
        dialog.view.button.click()

    choose(bench, engine, act)
    path = str(tmp_path / "net.pt")
    assert there.ask("Export", "save", "net.pt") == (path if agrees else "")
    assert bench.dialogs.asked == [f"{path} is on me@box already. Replace it?"]


@pytest.mark.parametrize("address", ["ssh box", "box"])
@pytest.mark.parametrize("state", ["running", "paused", "finished", "", "found again"])
def test_a_run_that_goes_on_elsewhere_keeps_its_weights(
    bench, link, engine, tmp_path, training_snapshot, address: str, state: str
):
    """The project has weights of before beside it, and the window comes again."""
    path = tmp_path / "net.tlab"
    files.save(load_template("mlp"), str(path))
    save_file({"w": torch.ones(2)}, tmp_path / "net.safetensors")
    there = EngineFiles(bench, bench.window)
    bench.files.there = there
    bench.weights.use_there(there)
    there.began.connect(bench.weights.begin_there)
    link.place = EnginePlace(address)
    link.start()
    bench.files.open(str(path))
    assert not any(isinstance(each, OpenWeightsCommand) for each in link.sent)
    link.attached, link.is_found_again = WELCOME, state == "found again"
    link.get_ready()
    assert not any(isinstance(each, OpenWeightsCommand) for each in link.sent)
    if state and state != "found again":
        link._receive(training_snapshot(state=state))
    engine.work()
    opened = [each for each in link.sent if isinstance(each, OpenWeightsCommand)]
    assert len(opened) == (state in ("finished", ""))


@pytest.mark.parametrize("opens", ["before", "after", "another"])
@pytest.mark.parametrize("remembers", [True, False])
def test_a_run_that_has_ended_while_no_window_was_there_keeps_its_weights(
    bench, link, engine, tmp_path, training_snapshot, opens: str, remembers: bool
):
    """The window before has seen the run go on; this one opens its project before the engine has
    told the run, or after."""
    path, other = str(tmp_path / "net.tlab"), str(tmp_path / "other.tlab")
    for each in (path, other):
        files.save(load_template("mlp"), each)
        save_file({"w": torch.ones(2)}, Path(each).with_suffix(".safetensors"))
    if remembers:
        bench.settings.going_run = "run 1", path
    there = EngineFiles(bench, bench.window)
    weights = Weights(bench.store, link, settings=bench.settings)
    weights.use_there(there)
    there.began.connect(weights.begin_there)
    link.place = EnginePlace("box")
    link.start()
    if opens == "before":
        weights.open(path)
    link.attached = WELCOME
    link.get_ready()
    link._receive(training_snapshot(run="run 1", step=9, state="finished"))
    engine.work()
    if opens != "before":
        weights.open(path if opens == "after" else other)
        engine.work()
    opened = [each for each in link.sent if isinstance(each, OpenWeightsCommand)]
    stay = remembers and opens != "another"
    assert len(opened) == (not stay)
    # The file that is opened does not fit the model, which then has new weights.
    assert weights.modified == weights.learnt == stay
    assert bench.settings.going_run == (("run 1", path) if remembers and not stay else ("", ""))


def test_the_run_that_goes_on_is_remembered_until_its_end_is_seen(
    bench, link, tmp_path, training_snapshot
):
    weights = Weights(bench.store, link, settings=bench.settings)
    path = str(tmp_path / "net.tlab")

    def told(state: str) -> tuple[str, str]:
        link._receive(training_snapshot(run="run 1", step=1, state=state))
        return bench.settings.going_run

    weights.open(path)
    assert told("running") == ("", "")  # the engine is the window's own: it ends with the window
    link.place, link.attached = EnginePlace("box"), WELCOME
    assert told("running") == told("paused") == ("run 1", path)
    assert told("finished") == ("", "") and not weights._ended_unseen
