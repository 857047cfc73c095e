"""`tensorlab serve`: an engine that windows come to and leave; `tensorlab relay`: the way to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from app.templates import load_template
from engine.connecting.dialing import dial, dial_through
from engine.connecting.greeting import Refused, Unwelcome
from engine.connecting.places import listening
from engine.protocol import (
    CellSnapshot,
    ContinueTrainingCommand,
    HeldSnapshot,
    OutputSnapshot,
    PauseSignal,
    ReadySnapshot,
    RunCellCommand,
    RunHeldCommand,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)
from engine.system.program import version
from tests.engine.attaching import ROOT, Window
from tests.engine.processes import WAIT_S

pytestmark = pytest.mark.usefixtures("forked_processes")
PROGRAM = [sys.executable, str(ROOT / "tensorlab.py")]

SIGNALLED_WHILE_WAITING = """
import signal, sys, threading

def end():
    main = threading.main_thread()
    while sys._current_frames()[main.ident].f_code.co_name != "next":
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

threading.Thread(target=end, daemon=True).start()
"""


@pytest.fixture
def served(sockets: Path) -> Iterator[subprocess.Popen[str]]:
    engine = subprocess.Popen(
        [*PROGRAM, "serve", "--name", "box"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert engine.stdout is not None
    assert engine.stdout.readline() == f"Tensor Lab: tensorlab attach {engine.pid}\n"
    yield engine
    engine.kill()
    engine.communicate()


def attach() -> Window:
    """As soon as the engine has read that the window before has gone."""
    while True:
        try:
            window = Window(dial("box", version()))
        except Refused:
            continue
        window.until(ReadySnapshot)
        return window


def test_variables_stay_when_the_window_goes(served) -> None:
    first = attach()
    first.send(RunCellCommand(source="x = 6 * 7\nprint(x)"))
    assert first.until(OutputSnapshot).text == "42\n"
    assert first.until(CellSnapshot).ok
    with pytest.raises(Unwelcome, match="Another window"):
        dial("box", version())
    first.close()
    second = attach()
    assert [v.name for v in second.until(VariablesSnapshot).variables] == ["x"]
    second.send(RunCellCommand(source="print(x + 1)"))
    assert second.until(OutputSnapshot).text == "43\n"
    second.close()


def test_a_run_goes_on_while_no_window_is_there_and_the_next_one_is_shown_all_of_it(served) -> None:
    project = load_template("mlp")
    window = attach()
    window.send(TrainCommand(model=project.model, training=project.training))
    seen = window.until(TrainingSnapshot, lambda run: run.step >= 3)
    assert seen.state == "running"
    window.close()
    window = attach()
    again = window.until(TrainingSnapshot)
    assert again.run == seen.run
    assert again.step >= seen.step
    steps = again.steps.step
    assert steps[0] == 1
    assert all(a < b for a, b in pairwise(steps))
    ended = (
        again
        if again.state != "running"
        else window.until(TrainingSnapshot, lambda run: run.state != "running")
    )
    assert (ended.state, ended.step) == ("finished", ended.total_steps)
    window.close()
    window = attach()
    whole = window.until(TrainingSnapshot)
    assert (whole.state, whole.step) == ("finished", ended.step)
    assert len(whole.epoch_rows) == project.training.epochs
    window.close()


def test_a_window_that_comes_while_a_cell_is_held_is_told_so(served) -> None:
    window = attach()
    window.send(RunCellCommand(source="z = 3\nbreakpoint()\nprint('on', z)"))
    window.until(HeldSnapshot, lambda held: held.at)
    window.close()
    window = attach()
    assert (held := window.until(HeldSnapshot)).at == "line"
    assert held.line == 2
    assert "z" in {v.name for v in window.until(VariablesSnapshot).variables}
    window.send(RunHeldCommand(source="z = 4"))
    assert window.until(CellSnapshot).ok
    window.send(ContinueTrainingCommand())
    assert window.until(OutputSnapshot).text == "on 4\n"


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(served, sockets: Path, ending: signal.Signals) -> None:
    window = attach()
    os.kill(served.pid, ending)
    window.to_end()
    assert served.wait(WAIT_S) == 0
    assert list(sockets.iterdir()) == []


def test_a_signal_to_another_thread_ends_it(served) -> None:
    """As one that comes in the moment before the main thread waits, it does not end the wait."""
    window = attach()
    window.send(RunCellCommand(source=SIGNALLED_WHILE_WAITING))
    window.to_end()
    assert served.wait(WAIT_S) == 0


def test_the_end_of_the_terminal_does_not_end_it(served) -> None:
    os.kill(served.pid, signal.SIGHUP)
    window = attach()
    window.send(PauseSignal())
    window.send(RunCellCommand(source="print('there')"))
    assert window.until(OutputSnapshot).text == "there\n"


def test_another_version_is_refused(served) -> None:
    with pytest.raises(Unwelcome, match=r"Tensor Lab .*, your window of 0\.0"):
        dial("box", "0.0")


def test_a_relay_starts_the_engine_and_the_engine_outlives_it(sockets: Path) -> None:
    """As `ssh HOST tensorlab relay --start box` does."""
    call = dial_through([*PROGRAM, "relay", "--start", "box"], version())
    window = Window(call)
    assert window.until(ReadySnapshot).pid == call.welcome.about.pid
    window.send(RunCellCommand(source="y = 1"))
    window.until(CellSnapshot)
    window.close()
    assert call.through is not None
    assert call.through.wait(WAIT_S) == 0
    engine = psutil.Process(call.welcome.about.pid)
    again = dial_through([*PROGRAM, "relay", "--start", "box"], version())
    assert again.welcome.about.pid == engine.pid
    window = Window(again)
    assert [v.name for v in window.until(VariablesSnapshot).variables] == ["y"]
    engine.terminate()
    window.to_end()
    assert again.through is not None
    again.through.wait(WAIT_S)
    psutil.wait_procs([engine], WAIT_S)
    assert listening() == []
    window.close()


def test_a_relay_to_nobody(sockets: Path) -> None:
    ended = subprocess.run([*PROGRAM, "relay", "nobody"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert "No process nobody listens" in ended.stderr


def test_the_option_that_started_an_engine_anew_is_gone() -> None:
    ended = subprocess.run([*PROGRAM, "relay", "--anew", "box"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "--anew is gone: a signal or Ctrl+C ends an engine, and --start" in ended.stderr


def test_an_engine_at_a_port_is_called_with_its_key_and_a_wrong_key_is_told(sockets: Path) -> None:
    engine = subprocess.Popen(
        [*PROGRAM, "serve", "--host", "127.0.0.1"], stdout=subprocess.PIPE, text=True
    )
    assert engine.stdout is not None
    *_, address, _, key = engine.stdout.readline().split()
    window = Window(dial(address, version(), key))
    assert window.until(ReadySnapshot).pid == engine.pid
    for wrong, words in (("0" * 32, "The key is another one"), ("", "asks for its key")):
        with pytest.raises(Unwelcome, match=words):
            dial(address, version(), wrong)
    window.close()
    engine.kill()
    engine.communicate()


def test_it_does_not_listen_to_other_machines(sockets: Path) -> None:
    ended = subprocess.run([*PROGRAM, "serve", "--host", "0.0.0.0"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert "this machine only" in ended.stderr
