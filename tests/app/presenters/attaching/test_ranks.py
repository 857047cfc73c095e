"""Two ranks of torch.distributed, in processes of their own: the window is attached to one, draws
the other's curves, and holds both after the same step."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QPushButton

from app.presenters.attaching.attach import AttachPresenter
from app.presenters.attaching.member import Member
from app.presenters.attaching.ranks import RanksPresenter
from app.presenters.attaching.siblings import way_to
from app.presenters.train.pictures.over_time import OverTimePresenter
from app.processes.engine_link import EngineLink
from app.workbench import Workbench
from engine.connecting.dialing import dial
from engine.connecting.engine_place import EnginePlace
from engine.connecting.greeting import About, Unwelcome, Welcome
from engine.connecting.places import listening
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ContinueTrainingCommand,
    HeldSnapshot,
    HistogramsSnapshot,
    LoopSnapshot,
    PauseSignal,
    StepColumns,
    StepTrainingCommand,
    WatchCommand,
    WatchedSnapshot,
)
from engine.version import version
from tests.engine.attaching import ROOT
from tests.engine.processes import WAIT_S
from widgets.training.train_view import TrainView

pytestmark = pytest.mark.usefixtures("forked_processes")
WAIT_MS = 120_000

RANK = """
import os, pathlib, socket, sys
socket.gethostname = lambda: os.environ["HOST"]
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import tensorlab as lab

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
lab.watch(model, optimizer, name="ranks", wait=True)
end, brake = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
torch.manual_seed(rank)
while True:
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    stop = torch.tensor(float(end.exists()))
    dist.all_reduce(stop)
    if stop:
        break
    if rank == 0 and brake.exists():
        brake.unlink()
        breakpoint()
total = model.module.weight.detach().clone()
dist.all_reduce(total)
print(torch.equal(total, 2 * model.module.weight))
dist.destroy_process_group()
"""


@pytest.fixture
def files(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture
def ranks(files: Path, sockets: Path) -> Iterator[list[subprocess.Popen[str]]]:
    with running(files, [("here", sockets.parent)] * 2) as started:
        yield started


@contextmanager
def running(
    files: Path, places: Sequence[tuple[str, Path]]
) -> Iterator[list[subprocess.Popen[str]]]:
    """A rank at each place: the name of its machine, and the folder that its sockets are in."""
    (files / "ranks.py").write_text(RANK)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {
        **os.environ, "PYTHONPATH": str(ROOT), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }  # fmt: skip
    arguments = [sys.executable, "ranks.py", "end", "brake"]
    started = [
        subprocess.Popen(
            arguments, cwd=files,
            env={**env, "RANK": str(rank), "HOST": host, "XDG_RUNTIME_DIR": str(folder)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank, (host, folder) in enumerate(places)
    ]  # fmt: skip
    yield started
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def desk(bench: Workbench) -> Iterator[Workbench]:
    link = EngineLink(bench.window)
    link.snapshot.connect(bench.store.take)
    link.ended.connect(bench.store.end_engine)
    yield replace(bench, link=link)
    link.close()
    link.wait_closed()


def held_step(desk: Workbench) -> int:
    """The step after which the window's rank is held; 0 if it is not."""
    held, loop = desk.newest(HeldSnapshot), desk.newest(LoopSnapshot)
    return loop.step if held is not None and held.at == "step" and loop is not None else 0


def test_both_ranks_are_shown_held_together_stepped_and_let_go(ranks, desk, files, qtbot):
    overlays: list = []
    attaching = AttachPresenter(desk, lambda *_: True, desk.window)
    presenter = RanksPresenter(desk, attaching, lambda runs: overlays.append(runs), desk.window)
    qtbot.waitUntil(lambda: len(listening()) == 2, timeout=WAIT_MS)
    sockets = {about.rank: str(place) for about, place in listening()}
    way = lambda: dial(sockets[0], version())  # noqa: E731
    attaching.use(way(), way)
    members = presenter._members
    qtbot.waitUntil(lambda: set(members) == {0, 1}, timeout=WAIT_MS)
    qtbot.waitUntil(lambda: all(m.step > 5 for m in members.values()), timeout=WAIT_MS)
    qtbot.waitUntil(lambda: bool(overlays) and bool(overlays[-1]), timeout=WAIT_MS)
    ((title, curve),) = overlays[-1]
    assert title == "rank 1" and len(curve.steps.loss) == len(curve.steps.gradient_norm) > 0
    own = desk.newest(LoopSnapshot)
    assert own is not None

    desk.link.signal(PauseSignal())
    qtbot.waitUntil(lambda: all(m.is_after_step for m in members.values()), timeout=WAIT_MS)
    qtbot.waitUntil(lambda: members[0].step == members[1].step, timeout=WAIT_MS)
    step = held_step(desk)
    assert step == members[1].step > 0
    text = f"rank 0 of 2 · all held after step {step:,}"
    qtbot.waitUntil(lambda: desk.window.ranks[0] == text, timeout=WAIT_MS)
    assert desk.window.ranks[1][1] == f"rank 1: held after step {step:,}"

    presenter._settle_timer.setInterval(1)  # one that is late does not make them take more steps
    desk.link.send(StepTrainingCommand())
    both = lambda: all(m.is_after_step and m.step == step + 1 for m in members.values())  # noqa: E731
    qtbot.waitUntil(both, timeout=WAIT_MS)
    desk.link.send(ContinueTrainingCommand())
    goes_on = lambda: all(m.step > step + 1 for m in members.values())  # noqa: E731
    qtbot.waitUntil(goes_on, timeout=WAIT_MS)

    # One that is held alone: the other waits in a collective, and the window says so.
    (files / "brake").touch()
    qtbot.waitUntil(lambda: members[0].is_held, timeout=WAIT_MS)
    text = "rank 0 of 2 · rank 1 waits for rank 0"
    qtbot.waitUntil(lambda: desk.window.ranks[0] == text, timeout=WAIT_MS)
    desk.link.send(ContinueTrainingCommand())
    qtbot.waitUntil(lambda: desk.window.ranks[0] == "rank 0 of 2", timeout=WAIT_MS)

    desk.window.rank_chosen.emit(1)
    qtbot.waitUntil(
        lambda: desk.link.script is not None and desk.link.script.about.rank == 1, timeout=WAIT_MS
    )
    assert desk.link.script.role == "steer"
    qtbot.waitUntil(lambda: desk.window.ranks[0] == "rank 1 of 2", timeout=WAIT_MS)
    qtbot.waitUntil(lambda: len(presenter._members) == 2, timeout=WAIT_MS)
    assert presenter._members[0].link.attached.role == "steer"

    end(ranks, files)
    qtbot.waitUntil(lambda: desk.link.state == "lost", timeout=WAIT_MS)
    assert desk.window.ranks == ("", [])
    assert [title for title, _ in overlays[-1]] in (["rank 0"], ["rank 0 (ended)"])
    presenter.close()


def test_histograms_of_another_rank_are_chosen(ranks, desk, files, qtbot):
    """They come from that rank; so do the norms, and what the user watches is watched in all."""
    view = TrainView()
    qtbot.addWidget(view)
    over_time = OverTimePresenter(desk, view, desk.window)
    attaching = AttachPresenter(desk, lambda *_: True, desk.window)
    presenter = RanksPresenter(desk, attaching, lambda _: None, desk.window, over_time.show_ranks)
    qtbot.waitUntil(lambda: len(listening()) == 2, timeout=WAIT_MS)
    pids = {about.rank: about.pid for about, _ in listening()}
    way = way_to(pids[0], None)
    assert view.rank.isHidden()
    attaching.use(way(), way)
    view.tabs.setCurrentWidget(view.histograms)
    view.show()
    qtbot.waitUntil(lambda: not view.rank.isHidden(), timeout=WAIT_MS)
    assert [view.rank.itemText(i) for i in range(2)] == ["rank 0", "rank 1"]
    assert view.rank.currentText() == "rank 0"
    link = presenter._members[1].link
    assert link is not None
    told: list[HistogramsSnapshot] = []
    watched: list[WatchedSnapshot] = []
    kinds = {HistogramsSnapshot: told, WatchedSnapshot: watched}
    link.snapshot.connect(lambda s: kinds.get(type(s), []).append(s))
    view.rank.setCurrentIndex(1)
    view.rank.activated.emit(1)
    qtbot.waitUntil(lambda: bool(told and told[-1].steps), timeout=WAIT_MS)
    assert told[-1].names == ("ranks.module.weight", "ranks.module.bias")
    assert view.histograms._found == told[-1]
    desk.link.send(WatchCommand(subject=ConsoleSubject("ranks"), paths=("module",)))
    qtbot.waitUntil(lambda: bool(watched), timeout=WAIT_MS)
    assert watched[-1].paths == ("module",)
    end(ranks, files)
    qtbot.waitUntil(lambda: view.rank.isHidden(), timeout=WAIT_MS)
    presenter.close()


def test_ranks_of_another_machine_are_found_and_called_there(
    ranks, machine, desk, files, qtbot, monkeypatch
):
    """A stand-in for ssh leads to them; on this machine none is seen. Another one is chosen there,
    too."""
    attaching = AttachPresenter(desk, lambda *_: True, desk.window)
    presenter = RanksPresenter(desk, attaching, lambda _: None, desk.window)
    qtbot.waitUntil(lambda: len(listening()) == 2, timeout=WAIT_MS)
    (about,) = (about for about, _ in listening() if about.rank == 0)
    place = EnginePlace.on("box", sys.executable)
    monkeypatch.setattr("engine.connecting.places.listening", list)
    way = way_to(about.pid, place)
    attaching.use(way(), way)
    qtbot.waitUntil(lambda: len(presenter._members) == 2, timeout=WAIT_MS)
    other = presenter._members[1].link.attached.about
    assert (other.rank, other.group) == (1, about.group)
    called: list = []
    monkeypatch.setattr(attaching, "attach", lambda address, way: called.append((address, way)))
    desk.window.rank_chosen.emit(1)
    ((address, way),) = called
    assert address == f"ssh box {other.pid}" and way.args == (address, sys.executable)
    end(ranks, files)
    presenter.close()


def test_ranks_on_two_machines_are_shown_and_held_by_one_window(
    desk, files, qtbot, sockets, tmp_path, monkeypatch
):
    """The stand-in for ssh leads to the sockets of the machine that it is given. The user is asked
    once; from then on the window finds its way, also back to the machine that it began at."""
    folders = {host: sockets.parent / host for host in ("one", "two")}
    stand_in = tmp_path / "ssh"
    stand_in.write_text(
        "#!/bin/sh\nfor each; do host=$there; there=$each; done\n"
        f'XDG_RUNTIME_DIR={sockets.parent}/$host exec sh -c "exec $there"\n'
    )
    stand_in.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folders["one"]))
    for folder in folders.values():
        folder.mkdir()
    attaching = AttachPresenter(desk, lambda *_: True, desk.window)
    presenter = RanksPresenter(desk, attaching, lambda _: None, desk.window)
    members = presenter._members
    with running(files, list(folders.items())) as ranks:
        qtbot.waitUntil(lambda: len(listening()) == 1, timeout=WAIT_MS)
        (about,) = (about for about, _ in listening())
        way = way_to(about.pid, None)
        attaching.use(way(), way)
        asks = lambda: desk.window.banners.banner("ranks") is not None  # noqa: E731
        qtbot.waitUntil(asks, timeout=WAIT_MS)
        banner = desk.window.banners.banner("ranks")
        assert banner.title == "Of this run there is also rank 1 on two."
        assert f"ssh two {sys.executable}" in banner.text and len(members) == 1
        row = "rank 1: on two, call it by ssh"
        shown = lambda: row in getattr(desk.window, "ranks", ("", ()))[1]  # noqa: E731
        qtbot.waitUntil(shown, timeout=WAIT_MS)
        banner.findChild(QPushButton, "banner_call_them").click()
        qtbot.waitUntil(lambda: set(members) == {0, 1}, timeout=WAIT_MS)
        assert desk.settings.rank_hosts == ("two",)
        desk.link.signal(PauseSignal())
        are_held = lambda: all(m.is_after_step for m in members.values())  # noqa: E731
        qtbot.waitUntil(are_held, timeout=WAIT_MS)
        qtbot.waitUntil(lambda: members[0].step == members[1].step > 0, timeout=WAIT_MS)
        desk.link.send(ContinueTrainingCommand())
        desk.window.rank_chosen.emit(1)
        is_shown = lambda: desk.link.script is not None and desk.link.script.about.rank == 1  # noqa: E731
        qtbot.waitUntil(is_shown, timeout=WAIT_MS)
        assert attaching.place == EnginePlace.on("two", sys.executable)
        qtbot.waitUntil(lambda: set(members) == {0, 1}, timeout=WAIT_MS)
        assert presenter._siblings.place_of(0) is None
        end(ranks, files)
    presenter.close()


def end(ranks: list[subprocess.Popen[str]], files: Path) -> None:
    """Let both end by themselves."""
    (files / "end").touch()
    for rank in ranks:
        out, err = rank.communicate(timeout=WAIT_S)
        assert (out, rank.returncode) == ("True\n", 0), err


class Told:
    """A link to a rank that keeps what the rank was told."""

    def __init__(self) -> None:
        self.sent: list = []

    def send(self, command: object) -> None:
        self.sent.append(command)

    def go_to_step(self, step: int, is_held: bool) -> None:
        self.sent.append((step, is_held))

    def close(self) -> None: ...
    def deleteLater(self) -> None: ...
    def wait_closed(self) -> None: ...


def test_a_rank_that_is_heard_late_takes_one_step(bench):
    """Both are held after step 100 and told to step; all of what rank 0 says of step 101 comes
    before the first word of rank 1."""
    attaching = AttachPresenter(bench, lambda *_: True, bench.window)
    presenter = RanksPresenter(bench, attaching, lambda _: None, bench.window)
    link = Told()
    for rank in range(2):
        about = About(name="ranks", pid=rank + 1, rank=rank, world_size=2, group="run")
        presenter._members[rank] = Member(about, link if rank else None)  # pyright: ignore
    own, late = presenter._members.values()
    presenter._own = own
    at_100 = LoopSnapshot(
        run="r", title="r", state="paused", step=100, steps_per_second=1.0, steps=StepColumns(),
        device="cpu",
    )  # fmt: skip
    held = HeldSnapshot(at="step")
    for member in (own, late):
        presenter._take(member, at_100)
        presenter._take(member, held)

    bench.link.steered.emit(StepTrainingCommand())
    presenter._take(own, HeldSnapshot())
    presenter._take(own, replace(at_100, step=101))
    presenter._take(own, held)
    assert link.sent == [StepTrainingCommand()]
    presenter._take(late, HeldSnapshot())
    presenter._take(late, replace(at_100, step=101))
    presenter._take(late, held)
    assert link.sent == [StepTrainingCommand()]
    assert late.words == "rank 1: held after step 101"
    presenter.close()


def loop_of(step: int, **columns) -> LoopSnapshot:
    return LoopSnapshot(
        run="r", title="r", state="running", step=step, steps_per_second=1.0,
        steps=StepColumns(step=(step,), **columns), device="cpu",
    )  # fmt: skip


def test_the_curves_of_a_rank_stay_when_it_has_ended(bench, link):
    """All that it has told of its steps is drawn, until the window works with another engine."""
    drawn: list = []
    attaching = AttachPresenter(bench, lambda *_: True, bench.window)
    presenter = RanksPresenter(bench, attaching, drawn.append, bench.window)
    own, other = (About(name="r", pid=n + 1, rank=n, world_size=2, group="g") for n in range(2))
    link.attach_to(Welcome(own, "steer"))
    member = presenter._members[1] = Member(other, Told())  # pyright: ignore
    first = {"loss": (0.5,), "accuracy": (0.25,), "gradient_norm": (2.0,)}
    presenter._take(member, loop_of(1, **first))
    presenter._take(member, loop_of(2, **first, figures={"seen": (7.0,)}))
    presenter._show()
    ((title, told),) = drawn[-1]
    assert title == "rank 1" and told.steps.step == (1, 2)
    assert told.steps.loss == (0.5, 0.5) and told.steps.accuracy == (0.25, 0.25)
    assert told.steps.gradient_norm == (2.0, 2.0)
    assert math.isnan(told.steps.figures["seen"][0]) and told.steps.figures["seen"][1] == 7.0
    presenter._drop(member)
    presenter._show()
    ((title, kept),) = drawn[-1]
    assert title == "rank 1 (ended)" and kept.steps.loss == (0.5, 0.5)
    link.close()  # this one has ended, too
    assert [title for title, _ in drawn[-1]] == ["rank 1 (ended)"]
    link.start()
    assert not drawn[-1]
    presenter.close()


def test_what_the_window_cannot_reach_is_said(bench, link, qtbot, monkeypatch):
    """Two of three ranks listen nowhere that it can look, and then it cannot look at all."""
    tips: list[str] = []
    bench.window.show_ranks = lambda text, tip, rows: tips.append(tip)
    attaching = AttachPresenter(bench, lambda *_: True, bench.window)
    presenter = RanksPresenter(bench, attaching, lambda _: None, bench.window)
    monkeypatch.setattr("engine.connecting.places.listening", list)
    about = About(name="r", pid=1, rank=0, world_size=3, group="g")
    link.attach_to(Welcome(about, "steer"))
    presenter._show()
    assert (
        "2 of them do not listen on this machine, nor tell where: this window cannot show or hold"
        " them." in tips[-1]
    )
    link.close()

    def refuse(host: str, python: str):
        raise Unwelcome(f"ssh: no route to {host}.")

    monkeypatch.setattr("engine.connecting.ssh.listening_at", refuse)
    attaching.place = EnginePlace("ssh box 1")
    link.attach_to(Welcome(about, "steer"))
    qtbot.waitUntil(lambda: bool(presenter._siblings.problem), timeout=WAIT_MS)
    presenter._show()
    assert "2 of them do not listen on box, nor tell where:" in tips[-1]
    assert tips[-1].endswith("The ranks on box cannot be listed. ssh: no route to box.")
    presenter.close()
