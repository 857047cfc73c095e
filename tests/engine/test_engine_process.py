"""The real process: started, asked, interrupted, killed, orphaned. Handshakes, no sleeps."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.devices import usable_cores
from engine.process import EngineLost, EngineProcess
from engine.protocol import (
    CellSnapshot,
    DoneSnapshot,
    ErrorSnapshot,
    HelloCommand,
    InterruptSignal,
    OutputSnapshot,
    ReadySnapshot,
    RunCellCommand,
    Snapshot,
    StopSignal,
    TensorsSnapshot,
    VariablesSnapshot,
)

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    """A new engine: for tests that end it or watch it start."""
    engine = EngineProcess()
    engine.start()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[EngineProcess]:
    """One engine for all tests that leave it well."""
    engine = EngineProcess()
    engine.start()
    yield engine
    engine.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server


def receive(engine: EngineProcess) -> Snapshot:
    snapshot = engine.receive(WAIT_S)
    assert snapshot is not None, "the engine did not answer"
    return snapshot


def answers(engine: EngineProcess, command_id: int) -> list[Snapshot]:
    """All answers to a command, in order."""
    found = []
    while True:
        snapshot = receive(engine)
        if snapshot.reply_to == command_id:
            if isinstance(snapshot, DoneSnapshot):
                return found
            found.append(snapshot)


def run_cell(engine: EngineProcess, source: str) -> list[Snapshot]:
    """The answers to a cell, without the list of variables that follows each."""
    got = answers(engine, engine.send(RunCellCommand(source=source)))
    return [snapshot for snapshot in got if not isinstance(snapshot, VariablesSnapshot)]


def wait_for_print(engine: EngineProcess) -> None:
    while not isinstance(receive(engine), OutputSnapshot):
        pass


def lost(engine: EngineProcess) -> None:
    with pytest.raises(EngineLost):
        while True:
            receive(engine)


def test_it_tells_when_torch_has_loaded_and_commands_sent_before_wait():
    engine = EngineProcess(last_id=41)  # as after a restart: the ids count on
    engine.start()
    first, second = engine.send(HelloCommand()), engine.send(HelloCommand())
    assert (first, second) == (42, 43)
    ready = receive(engine)
    assert isinstance(ready, ReadySnapshot)
    assert ready.reply_to == 0
    assert ready.pid == engine.pid
    assert ready.devices[0].name == "cpu"
    assert ready.torch_threads == max(1, usable_cores() - 1)
    assert [type(s) for s in answers(engine, first)] == [ReadySnapshot]
    assert [type(s) for s in answers(engine, second)] == [ReadySnapshot]
    engine.close()


def test_openmp_threads_do_not_spin(shared):
    (told, _) = run_cell(shared, "import os; print(os.environ['OMP_WAIT_POLICY'])")
    assert told.text == "PASSIVE\n"


def test_a_script_that_starts_one_imports_no_torch_and_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(  # it has no `__main__` guard
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nprint('run')\n"
        "from engine.process import EngineProcess\n"
        "engine = EngineProcess(); engine.start(); engine.receive(); engine.close()\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=WAIT_S)
    assert (done.stdout, done.stderr) == ("run\nFalse\n", "")


def test_bytes_that_are_no_command_are_answered_in_words(shared):
    answers(shared, shared.send(HelloCommand()))
    shared._connection.send_bytes(b"\xc1 nonsense")
    told = receive(shared)
    assert isinstance(told, ErrorSnapshot)
    assert told.error.type == "DecodeError"
    assert answers(shared, shared.send(HelloCommand()))[0].pid == shared.pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_engine_is_seen_at_once_though_a_child_of_it_lives_on(engine):
    receive(engine)
    engine.send(
        RunCellCommand(
            source="import os, time\nchild = os.fork()\n"
            "if child == 0:\n    time.sleep(1e6)\nprint(child)\nwhile True: pass"
        )
    )
    child = psutil.Process(int(receive(engine).text))
    os.kill(engine.pid, signal.SIGKILL)
    lost(engine)
    assert engine.exit().code == -signal.SIGKILL
    assert child.is_running()
    child.kill()


def test_a_crash_leaves_the_line_that_crashed(engine):
    engine.send(RunCellCommand(source="import ctypes\nctypes.string_at(0)\n"))
    lost(engine)
    end = engine.exit()
    assert end.code == -signal.SIGSEGV
    assert "Segmentation fault" in end.log
    assert 'File "<cell 1>", line 2' in end.log
    with pytest.raises(EngineLost):
        engine.send(HelloCommand())


def test_an_exit_of_the_users_is_seen(engine):
    engine.send(RunCellCommand(source="import os\nprint('last words')\nos._exit(7)"))
    receive(engine)
    assert receive(engine).text == "last words\n"
    lost(engine)
    assert engine.exit().code == 7


def test_a_cell_that_hangs_is_interrupted_and_the_namespace_stays(shared):
    run_cell(shared, "kept = torch.ones(2)")
    hanging = shared.send(RunCellCommand(source="print('hanging')\nwhile True:\n    pass"))
    wait_for_print(shared)
    shared.signal(StopSignal())
    shared.signal(InterruptSignal())
    *_, end = answers(shared, hanging)
    assert isinstance(end, CellSnapshot), end
    assert end.error.type == "KeyboardInterrupt"
    assert end.error.line in (1, 2, 3)  # it may strike while the print still returns
    assert "serve.py" not in end.error.traceback
    *_, tensors, end = run_cell(shared, "more = kept + 1")
    assert isinstance(tensors, TensorsSnapshot)
    assert end.ok
    assert tensors.tensors["more"].values == [2.0, 2.0]


def test_a_sleep_is_interrupted_too(shared):
    sleeping = shared.send(RunCellCommand(source="import time\nprint()\ntime.sleep(1e6)"))
    wait_for_print(shared)
    shared.signal(InterruptSignal())
    assert answers(shared, sleeping)[-1].error.line in (2, 3)


def test_a_flood_of_prints_is_interrupted_without_breaking_a_message(shared):
    flood = shared.send(RunCellCommand(source="while True:\n    print('x' * 200_000)"))
    wait_for_print(shared)
    shared.signal(InterruptSignal())
    assert answers(shared, flood)[-1].error.type == "KeyboardInterrupt"
    assert [type(s) for s in answers(shared, shared.send(HelloCommand()))] == [ReadySnapshot]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX signals")
def test_control_c_in_the_terminal_is_not_for_the_engine(shared):
    busy = shared.send(
        RunCellCommand(
            source="import os, signal\nprint()\nos.kill(os.getpid(), signal.SIGINT)\nx = 1"
        )
    )
    assert answers(shared, busy)[-1].ok


def test_an_interrupt_while_nothing_of_the_users_runs_does_nothing(shared):
    run_cell(shared, "1")
    shared.signal(InterruptSignal())
    assert answers(shared, shared.send(HelloCommand()))


def test_a_dataloader_with_workers_may_be_used(shared):
    told = run_cell(
        shared,
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "data = TensorDataset(torch.arange(4.0))\n"
        "print(sum(batch[0].sum().item() for batch in DataLoader(data, 2, num_workers=1)))",
    )
    assert told[-1].ok, told[-1].error
    assert told[0].text == "6.0\n"


def test_stopping_ends_a_hanging_engine_within_its_grace(engine):
    engine.send(RunCellCommand(source="print()\nwhile True:\n    pass"))
    wait_for_print(engine)
    process = psutil.Process(engine.pid)
    engine.stop(grace_s=0.1)
    assert not process.is_running()
    assert engine.exit().code == -signal.SIGKILL


def test_an_idle_engine_leaves_by_itself_and_what_native_code_printed_is_in_its_log(engine):
    run_cell(engine, "import os; os.write(2, b'from below\\n')")
    engine.stop(grace_s=WAIT_S)
    assert engine.exit().code == 0
    assert "from below" in engine.exit().log
    engine.close()
    engine.close()  # twice is harmless


def test_closing_an_engine_that_was_not_started_is_harmless():
    EngineProcess().close()


def test_threads_that_the_user_left_running_do_not_keep_it(engine):
    run_cell(engine, "import threading\nthreading.Thread(target=threading.Event().wait).start()")
    engine.stop(grace_s=WAIT_S)
    assert engine.exit().code == 1


PARENT = """
import sys, time
from engine.process import EngineProcess
from engine.protocol import RunCellCommand
engine = EngineProcess()
engine.start()
engine.send(RunCellCommand(source=sys.argv[1]))
engine.receive()
time.sleep(1e6)
"""


@pytest.mark.parametrize("then", ["while True: pass", ""], ids=["busy", "idle"])
def test_a_parent_that_dies_takes_its_engine_with_it(listener, then):
    cell = (
        "import os, socket\n"
        f"line = socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}))\n"
        f"line.sendall(b'here')\n{then}"
    )
    parent = subprocess.Popen([sys.executable, "-c", PARENT, cell], cwd=ROOT)
    with parent:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WAIT_S)
            assert connection.recv(4) == b"here"
            parent.kill()
            assert connection.recv(1) == b""  # the engine's end of it has gone with the engine
    assert parent.returncode == -signal.SIGKILL


def test_an_engine_is_started_once(shared):
    with pytest.raises(RuntimeError, match="before"):
        shared.start()
