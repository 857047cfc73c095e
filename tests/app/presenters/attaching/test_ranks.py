"""Two ranks of torch.distributed, in processes of their own: the window is attached to one, draws
the other's curves, and holds both after the same step."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.presenters.attaching.attach import AttachPresenter
from app.presenters.attaching.member import Member
from app.presenters.attaching.ranks import RanksPresenter
from app.presenters.attaching.siblings import way_to
from app.presenters.train.pictures.over_time import OverTimePresenter
from app.processes.engine_link import EngineLink
from app.workbench import Workbench
from engine.connecting.dialing import dial
from engine.connecting.greeting import About, Welcome
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
from engine.system.program import version
from tests.engine.attaching import ROOT
from tests.engine.processes import WAIT_S
from widgets.training.train_view import TrainView

pytestmark = pytest.mark.usefixtures("forked_processes")
WAIT_MS = 120_000

RANK = """
import pathlib, sys
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
            env={**env, "RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
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
    way = way_to(pids[0])
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
