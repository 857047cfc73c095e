"""The real process: started, asked, interrupted, killed, orphaned. Handshakes, no sleeps."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.process import EngineLost, SpawnedEngine, spawned
from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    CellSnapshot,
    CheckModelCommand,
    CompleteCommand,
    ErrorSnapshot,
    FileSnapshot,
    HelloCommand,
    InterruptSignal,
    OutputSnapshot,
    OutputTailSnapshot,
    ReadySnapshot,
    RunCellCommand,
    RunFileCommand,
    StopSignal,
)
from engine.system import folders as temporary
from engine.system.devices import usable_cores
from tests.engine.processes import WAIT_S, answers, receive, run_cell, wait_for_print

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def shared_engine() -> Iterator[SpawnedEngine]:
    """This one is spawned, as the program does it."""
    engine = SpawnedEngine()
    engine.start()
    yield engine
    engine.close()


def lost(engine: SpawnedEngine) -> None:
    with pytest.raises(EngineLost):
        while True:
            receive(engine)


def test_it_tells_when_torch_has_loaded_and_commands_sent_before_wait():
    engine = SpawnedEngine(last_id=41)  # as after a restart: the ids count on
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


def test_openmp_threads_do_not_spin(shared_engine):
    (told, _) = run_cell(shared_engine, "import os; print(os.environ['OMP_WAIT_POLICY'])")
    assert told.text == "PASSIVE\n"


def test_a_program_that_a_cell_starts_does_not_hold_the_connection(shared_engine):
    source = """
        import os, stat
        def is_open_for_programs(number):
            try:
                return stat.S_ISSOCK(os.fstat(number).st_mode) and os.get_inheritable(number)
            except OSError:
                return False
        print([number for number in range(3, 256) if is_open_for_programs(number)])
    """
    (told, _) = run_cell(shared_engine, textwrap.dedent(source))
    assert told.text == "[]\n"


def test_a_script_that_starts_one_imports_no_torch_and_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(  # it has no `__main__` guard
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nprint('run')\n"
        "from engine.process import SpawnedEngine\n"
        "engine = SpawnedEngine(); engine.start(); engine.receive(); engine.close()\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=WAIT_S)
    assert (done.stdout, done.stderr) == ("run\nFalse\n", "")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xc1 nonsense", "DecodeError"),
        (b"\x81\xa4type\xa1\xff", "UnicodeDecodeError"),
        (b"\x82\xa4type\xaeRunCellCommand\xa3zzz" + b"\x91" * 100_000, "RecursionError"),
    ],
    ids=["bytes", "text", "depth"],
)
def test_bytes_that_are_no_command_are_answered_in_words(shared_engine, data, error):
    answers(shared_engine, shared_engine.send(HelloCommand()))
    shared_engine._connection.send_bytes(data)
    told = receive(shared_engine)
    assert isinstance(told, ErrorSnapshot)
    assert told.error.type == error
    assert answers(shared_engine, shared_engine.send(HelloCommand()))[0].pid == shared_engine.pid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_engine_is_seen_at_once_though_a_child_of_it_lives_on(own_engine):
    receive(own_engine)
    own_engine.send(
        RunCellCommand(
            source="import os, time\nchild = os.fork()\n"
            "if child == 0:\n    time.sleep(1e6)\nprint(child)\nwhile True: pass"
        )
    )
    child = psutil.Process(int(receive(own_engine).text))
    os.kill(own_engine.pid, signal.SIGKILL)
    lost(own_engine)
    assert own_engine.exit().code == -signal.SIGKILL
    assert child.is_running()
    child.kill()


def test_a_crash_leaves_the_line_that_crashed(own_engine):
    own_engine.send(RunCellCommand(source="import ctypes\nctypes.string_at(0)\n"))
    lost(own_engine)
    end = own_engine.exit()
    assert end.code == -signal.SIGSEGV
    assert "Segmentation fault" in end.log
    assert 'File "<cell 1>", line 2' in end.log
    with pytest.raises(EngineLost):
        own_engine.send(HelloCommand())


def test_an_exit_of_the_users_is_seen(own_engine):
    own_engine.send(RunCellCommand(source="import os\nprint('last words')\nos._exit(7)"))
    receive(own_engine)
    assert receive(own_engine).text == "last words\n"
    lost(own_engine)
    assert own_engine.exit().code == 7


def test_a_cell_that_hangs_is_interrupted_and_the_namespace_stays(shared_engine):
    run_cell(shared_engine, "kept = torch.ones(2)")
    hanging = shared_engine.send(RunCellCommand(source="print('hanging')\nwhile True:\n    pass"))
    wait_for_print(shared_engine)
    shared_engine.signal(StopSignal())
    shared_engine.signal(InterruptSignal())
    *_, end = answers(shared_engine, hanging)
    assert isinstance(end, CellSnapshot), end
    assert end.error.type == "KeyboardInterrupt"
    assert end.error.line in (1, 2, 3)  # it may strike while the print still returns
    assert "serve.py" not in end.error.traceback
    shown, end = run_cell(shared_engine, "kept + 1")
    assert end.ok
    assert shown.text == "tensor([2., 2.])\n"


def test_a_sleep_is_interrupted_too(shared_engine):
    sleeping = shared_engine.send(RunCellCommand(source="import time\nprint()\ntime.sleep(1e6)"))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    assert answers(shared_engine, sleeping)[-1].error.line in (2, 3)


def test_an_interrupt_that_a_finalizer_takes_comes_again(shared_engine):
    source = (
        "class Slow:\n    def __del__(self):\n        print('ends')\n        while True: pass\n"
        "Slow()\nwhile True: pass"
    )
    hanging = shared_engine.send(RunCellCommand(source=source))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    end = answers(shared_engine, hanging)[-1]
    assert end.error.type == "KeyboardInterrupt" and end.error.line == 6


@pytest.mark.parametrize(
    ("method", "shown"),
    [("__repr__", "stuck"), ("__str__", "str(stuck)"), ("__len__", "len(stuck)")],
)
def test_an_object_whose_text_or_length_never_comes_is_interrupted(shared_engine, method, shown):
    source = (
        f"class Stuck:\n    def {method}(self):\n        print('asked')\n        while True: pass\n"
        f"stuck = Stuck()\n{shown}"
    )
    hanging = shared_engine.send(RunCellCommand(source=source))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    assert answers(shared_engine, hanging)[-1].error.type == "KeyboardInterrupt"
    _, end = run_cell(shared_engine, "del stuck\nprint('free')")
    assert end.ok


def test_of_a_large_log_the_end_is_read(tmp_path):
    log = tmp_path / "engine.log"
    with log.open("wb") as file:
        file.truncate(1_000_000_000)  # takes no room on the disk
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast words\n")
    tracemalloc.start()
    try:
        assert spawned._tail(log).endswith("last words")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_flood_of_prints_is_interrupted_without_breaking_a_message(shared_engine):
    flood = shared_engine.send(RunCellCommand(source="while True:\n    print('x' * 200_000)"))
    wait_for_print(shared_engine)
    shared_engine.signal(InterruptSignal())
    assert answers(shared_engine, flood)[-1].error.type == "KeyboardInterrupt"
    after = answers(shared_engine, shared_engine.send(HelloCommand()))
    assert [type(s) for s in after] == [ReadySnapshot]


def test_an_endless_print_loop_is_bounded_and_its_file_holds_all(shared_engine):
    flood = shared_engine.send(
        RunCellCommand(source="i = 0\nwhile True:\n    print(i)\n    i += 1")
    )
    got: list = []
    while not got or not isinstance(got[-1], OutputTailSnapshot):
        got.append(receive(shared_engine))
    shared_engine.signal(InterruptSignal())
    got += answers(shared_engine, flood)
    assert got[-1].error.type == "KeyboardInterrupt"
    head = "".join(s.text for s in got if isinstance(s, OutputSnapshot))
    tail = [s for s in got if isinstance(s, OutputTailSnapshot)][-1]
    assert len(head.splitlines()) <= 2000
    *lines, _ = Path(tail.path).read_text().split("\n")
    assert lines == [str(i) for i in range(len(lines))]
    assert "".join(piece.text for piece in tail.pieces).split("\n")[-2] == lines[-1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX signals")
def test_control_c_in_the_terminal_is_not_for_the_engine(shared_engine):
    busy = shared_engine.send(
        RunCellCommand(
            source="import os, signal\nprint()\nos.kill(os.getpid(), signal.SIGINT)\nx = 1"
        )
    )
    assert answers(shared_engine, busy)[-1].ok


def test_an_interrupt_while_nothing_of_the_users_runs_does_nothing(shared_engine):
    run_cell(shared_engine, "1")
    shared_engine.signal(InterruptSignal())
    assert answers(shared_engine, shared_engine.send(HelloCommand()))


def test_a_dataloader_with_workers_may_be_used(shared_engine):
    told = run_cell(
        shared_engine,
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "data = TensorDataset(torch.arange(4.0))\n"
        "print(sum(batch[0].sum().item() for batch in DataLoader(data, 2, num_workers=1)))",
    )
    assert told[-1].ok, told[-1].error
    assert told[0].text == "6.0\n"


def test_workers_have_a_dataset_typed_in_a_cell_and_what_they_print_is_shown(shared_engine):
    *told, end = run_cell(
        shared_engine,
        "import os, sys\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Squares(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i):\n"
        "        print(f'item {i}')\n"
        "        print(f'by {os.getpid() != home}', file=sys.stderr)\n"
        "        return torch.tensor(float(i * i))\n"
        "home = os.getpid()\n"
        "total = sum(batch.sum() for batch in DataLoader(Squares(), 2, num_workers=2))\n"
        "print(f'total {total:g}')",
    )
    assert end.ok, end.error
    printed = {stream: "" for stream in ("stdout", "stderr")}
    for piece in told:
        printed[piece.stream] += piece.text
    assert sorted(printed["stdout"].splitlines()) == [*(f"item {i}" for i in range(4)), "total 14"]
    assert printed["stderr"] == "by True\n" * 4


WARNINGS = {
    "python": ("F.mse_loss(a, b)", "Using a target size"),
    "native": ("torch.ones(2, 2, 2).T", "The use of `x.T`"),
    "module": ("nn.MSELoss()(a, b)", "Using a target size"),
    "deprecated": ("F.softmax(a)", "Implicit dimension choice"),
}


@pytest.mark.parametrize(("call", "words"), WARNINGS.values(), ids=WARNINGS)
def test_a_warning_tells_the_users_line_by_the_users_filters(own_engine, call, words):
    run_cell(own_engine, "a = torch.ones(3); b = torch.ones(3, 1)")
    in_library = call == WARNINGS["module"][0]  # a module's own line in torch warns

    def assert_told(pieces: list, cell: int, line: int) -> None:
        text = "".join(piece.text for piece in pieces)
        assert text.count("UserWarning") == 1 and f"UserWarning: {words}" in text
        if in_library:
            assert text.endswith(f"\n  from <cell {cell}>:{line}: _ = {call}\n")
        else:
            assert text.startswith(f"<cell {cell}>:{line}: UserWarning: {words}")
            assert text.endswith(f"\n  _ = {call}\n")

    *told, end = run_cell(own_engine, f"\nfor _ in range(2):\n    _ = {call}")
    assert end.ok
    assert_told(told, cell=2, line=3)
    (end,) = run_cell(own_engine, f"import warnings\nwarnings.simplefilter('ignore')\n_ = {call}")
    assert end.ok
    if call != WARNINGS["native"][0]:  # torch's own native code warns once in a process
        *told, end = run_cell(own_engine, f"warnings.resetwarnings()\n_ = {call}")
        assert_told(told, cell=4, line=2)
        (end,) = run_cell(own_engine, f"warnings.simplefilter('error')\n_ = {call}")
        assert (end.error.type, end.error.line) == ("UserWarning", 2)
        assert "_showwarnmsg" not in end.error.traceback


def test_a_warning_that_is_recorded_tells_the_users_line(shared_engine):
    source = (
        "import warnings\na = torch.ones(3); b = torch.ones(3, 1)\n"
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n"
        "    _ = F.mse_loss(a, b)\nprint([(w.filename[:5], w.lineno) for w in told])"
    )
    *printed, end = run_cell(shared_engine, source)
    assert end.ok and "".join(piece.text for piece in printed) == "[('<cell', 5)]\n"


def test_a_loop_of_different_warnings_takes_bounded_memory(shared_engine):
    source = (
        "import contextlib, io, warnings\n"
        "with contextlib.redirect_stderr(io.StringIO()) as told:\n"
        "    for i in range(2500): warnings.warn(f'text {i}')\n"
        "print(told.getvalue().count('UserWarning'), len(__warningregistry__))"
    )
    (output, end) = run_cell(shared_engine, source)
    shown, known = map(int, output.text.split())
    assert end.ok and shown == 2500 and known <= 1_001


def test_a_warning_of_a_librarys_own_place_names_the_users_line_too(shared_engine):
    *told, _ = run_cell(
        shared_engine,
        "import json, types\n"
        "library = types.ModuleType('library')\n"
        "code = 'import warnings\\ndef f(): warnings.warn(\"mind\")'\n"
        "exec(compile(code, json.__file__, 'exec'), vars(library))\n"
        "library.f()",
    )
    text = "".join(piece.text for piece in told)
    assert "UserWarning: mind\n" in text
    assert re.search(r"\n  from <cell \d+>:5: library.f\(\)\n$", text)


def test_what_programs_and_native_code_write_is_output_of_the_cell(shared_engine):
    source = "import os\nos.write(2, b'native\\n')\n_ = os.system('echo a program')"
    told = run_cell(shared_engine, source)
    assert {s.stream: s.text for s in told[:-1]} == {
        "stderr": "native\n",
        "stdout": "a program\n",
    }
    again, _ = run_cell(shared_engine, "print('only this')")
    assert again.text == "only this\n"


def test_stopping_ends_a_hanging_engine_within_its_grace(own_engine):
    own_engine.send(RunCellCommand(source="print()\nwhile True:\n    pass"))
    wait_for_print(own_engine)
    process = psutil.Process(own_engine.pid)
    own_engine.stop(grace_s=0.1)
    assert not process.is_running()
    assert own_engine.exit().code == -signal.SIGKILL


def test_an_idle_engine_leaves_by_itself_and_what_native_code_printed_is_in_its_log(own_engine):
    run_cell(own_engine, "import os; os.write(2, b'from below\\n')")
    own_engine.stop(grace_s=WAIT_S)
    assert own_engine.exit().code == 0
    assert "from below" in own_engine.exit().log
    own_engine.close()
    own_engine.close()  # twice is harmless


def test_closing_an_engine_that_was_not_started_is_harmless():
    SpawnedEngine().close()


def test_threads_that_the_user_left_running_do_not_keep_it(own_engine):
    run_cell(
        own_engine, "import threading\nthreading.Thread(target=threading.Event().wait).start()"
    )
    own_engine.stop(grace_s=WAIT_S)
    assert own_engine.exit().code == 1


_PIPE = """
import gc
from multiprocessing.connection import Connection
pipe, = (found for found in gc.get_objects() if type(found) is Connection)
"""


def test_an_engine_that_sends_what_is_no_message_is_lost(own_engine):
    own_engine.send(RunCellCommand(source=_PIPE + "pipe.send_bytes(bytes([0xc1]))"))
    lost(own_engine)
    own_engine.stop(grace_s=0.1)
    assert own_engine.exit().garbled


def test_an_answer_with_a_field_of_the_wrong_type_is_an_error_in_words(shared_engine):
    source = (
        f"{_PIPE}import msgspec\n"
        "wrong = {'type': 'CellSnapshot', 'reply_to': 7, 'revision': 3, 'ok': 'yes'}\n"
        "pipe.send_bytes(msgspec.msgpack.encode(wrong))"
    )
    told = answers_of(shared_engine, source)[0]
    assert isinstance(told, ErrorSnapshot)
    assert (told.reply_to, told.revision, told.command) == (7, 3, "CellSnapshot")
    assert told.error.message == (
        "The answer could not be read: Expected `bool`, got `str` - at `$.ok`"
    )


def answers_of(engine: SpawnedEngine, source: str) -> list:
    """All that comes until a cell has ended, also what answers another command."""
    command, got = engine.send(RunCellCommand(source=source)), []
    while not (got and isinstance(got[-1], CellSnapshot) and got[-1].reply_to == command):
        got.append(receive(engine))
    return got


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="POSIX signals")
def test_to_send_never_waits_for_an_engine_that_does_not_read(own_engine):
    """Of commands of which only the newest is wanted one waits; others are refused at last."""
    receive(own_engine)
    superseded = []
    own_engine._superseded = superseded.append
    os.kill(own_engine.pid, signal.SIGSTOP)
    big = "x" * 100_000  # more than a pipe holds
    sent = [own_engine.send(CompleteCommand(source=big, cursor=i)) for i in range(500)]
    assert len(superseded) >= 490
    assert superseded[-1].id == sent[-2]
    with pytest.raises(BufferError):
        for _ in range(2000):
            own_engine.send(RunCellCommand(source=big))
    own_engine.signal(StopSignal())  # a signal is never refused
    own_engine.kill()
    lost(own_engine)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_processes_that_a_cell_started_end_with_the_engine(own_engine, end):
    told = run_cell(
        own_engine,
        "import subprocess\nprint(subprocess.Popen(['sleep', '1000000']).pid, end='')",
    )
    child = psutil.Process(int(told[0].text))
    if end == "stop":
        own_engine.stop(grace_s=WAIT_S)
    else:
        own_engine.kill()
    psutil.wait_procs([child], timeout=WAIT_S)
    assert not child.is_running()


def test_modules_of_the_current_folder_do_not_stand_for_the_librarys(tmp_path):
    """The folder may be a stranger's: opening a project there must run none of its code."""
    (tmp_path / "here").mkdir()
    for name in ("pickle", "signal", "socket", "random", "struct", "torch"):
        (tmp_path / "here" / f"{name}.py").write_text("print('stranger')\nraise SystemExit(9)")
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.insert(1, {str(ROOT)!r})\n"
        "from engine.process import SpawnedEngine\n"
        "from engine.protocol import RunCellCommand, OutputSnapshot\n"
        "engine = SpawnedEngine(); engine.start()\n"
        "engine.send(RunCellCommand(source='import random, sys; print(random.__file__)'))\n"
        "while not isinstance(told := engine.receive(), OutputSnapshot): pass\n"
        "print(told.text); engine.stop(); print(engine.exit().log); engine.close()\n"
    )
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True, text=True, timeout=WAIT_S, cwd=tmp_path / "here",
    )  # fmt: skip
    assert done.stderr == ""
    assert Path(done.stdout.strip()) == Path(random.__file__)


def test_of_a_crash_the_log_shows_what_it_was_and_where(own_engine):
    """The cell has loaded what courses load: Python lists over a hundred modules at the end."""
    own_engine.send(RunCellCommand(source="import sklearn.datasets, ctypes\nctypes.string_at(0)"))
    lost(own_engine)
    log = own_engine.exit().log
    assert log.startswith("Fatal Python error: Segmentation fault")
    assert 'File "<cell 1>", line 2' in log
    assert "Extension modules" not in log


def test_of_a_large_log_only_the_end_is_read(own_engine, tmp_path):
    run_cell(own_engine, "import os\nos.write(2, b'x' * 10**6 + b'the last words')")
    own_engine.stop(grace_s=WAIT_S)
    log = own_engine.exit().log
    assert len(log) == 4000 and log.endswith("the last words")


def test_folders_of_windows_that_were_killed_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    for name in (f"{killed.pid}-a", f"{os.getpid()}-b", "name-c"):
        (tmp_path / f"tensorlab-engine-{name}").mkdir()
        (tmp_path / f"tensorlab-engine-{name}" / "engine.log").touch()
    temporary.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"tensorlab-engine-{os.getpid()}-b", "tensorlab-engine-name-c",
    ]  # fmt: skip


def test_a_check_that_takes_too_long_is_ended_and_the_namespace_stays(shared_engine):
    run_cell(
        shared_engine,
        "import tensorlab.engine.handlers.models as models, time\n"
        "kept = models.check, models.CHECK_S\n"
        "models.check, models.CHECK_S = lambda *_: time.sleep(10**6), 0.01",
    )
    check = CheckModelCommand(model=Model(), training=TrainingSetup())
    told = answers(shared_engine, shared_engine.send(check))[-1]
    assert isinstance(told, ErrorSnapshot)
    assert told.error.message == ("The check of the model was ended: it took longer than 0.01 s.")
    assert told.error.hint == "Make a number of layers or repetitions smaller."
    assert run_cell(shared_engine, "models.check, models.CHECK_S = kept")[-1].ok


PARENT = """
import sys, time
from engine.process import SpawnedEngine
from engine.protocol import RunCellCommand
engine = SpawnedEngine()
engine.start()
engine.send(RunCellCommand(source=sys.argv[1]))
engine.receive()
time.sleep(1e6)
"""


_HOLDS_THE_GIL = "import ctypes; ctypes.PyDLL(None).sleep(10**6)"


@pytest.mark.parametrize(
    "then", ["while True: pass", "", _HOLDS_THE_GIL], ids=["busy", "idle", "holds the GIL"]
)
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


def test_an_engine_is_started_once(shared_engine):
    with pytest.raises(RuntimeError, match="before"):
        shared_engine.start()


def test_the_files_of_a_user_may_have_the_names_of_our_folders(shared_engine, tmp_path):
    """As in many a repository: an `engine.py` beside the script, and a package `app`."""
    (tmp_path / "engine.py").write_text(
        "from torch import nn\n\nclass Block(nn.Linear):\n    pass\n"
    )
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("WIDTH = 4\n")
    net = tmp_path / "main.py"
    net.write_text("import app, torch\nfrom engine import Block\nnet = Block(app.WIDTH, 3)\n")
    (ran,) = answers(shared_engine, shared_engine.send(RunFileCommand(path=str(net))))
    assert isinstance(ran, FileSnapshot)
    assert [(each.name, each.type) for each in ran.objects] == [("net", "Block")]
    assert {Path(path).name for path in ran.imports} == {"engine.py", "__init__.py"}
    source = (
        "from tensorlab.engine.exporting.verifying import PROGRAM\n"
        "from tensorlab.engine.training.distributed.launch import LAUNCHER, RANK\n"
        "starts = [PROGRAM, RANK, LAUNCHER]\n"
        "assert all(name.startswith('tensorlab.engine.') for name in starts), starts"
    )
    (cell,) = (s for s in run_cell(shared_engine, source) if isinstance(s, CellSnapshot))
    assert cell.ok, cell.error
