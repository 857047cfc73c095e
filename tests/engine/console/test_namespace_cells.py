"""Cells: run in one namespace, output as it comes, errors at the user's own line."""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
import threading
import traceback

import pytest
import torch
from torch import nn

from engine.console.output import MAX_CHARACTERS, Output
from engine.protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    EnterFolderCommand,
    NewNamespaceCommand,
    OutputSnapshot,
    RunCellCommand,
    TensorsSnapshot,
    encode_snapshot,
)
from engine.server.session import Session
from engine.training.objectives.code_objective import compile_step


class Console:
    """A session, and what the last cell gave."""

    def __init__(self) -> None:
        self.sent: list = []
        self.session = Session(self.sent.append)

    def run(
        self, source: str, filename: str = "<cell>", *, all_output: bool = False
    ) -> CellSnapshot:
        self.sent.clear()
        command = RunCellCommand(
            id=1, source=source, filename=filename, all_output=all_output, report_tensors=True
        )
        self.session.handle(command)
        assert isinstance(self.sent[-1], CellSnapshot), self.sent[-1]
        return self.sent[-1]

    def names(self) -> dict:
        return self.session.lab.console.namespace.variables

    def text(self, stream: str = "stdout") -> str:
        return "".join(
            s.text for s in self.sent if isinstance(s, OutputSnapshot) and s.stream == stream
        )

    def tensors(self) -> dict:
        return {
            name: report
            for s in self.sent
            if isinstance(s, TensorsSnapshot)
            for name, report in s.tensors.items()
        }


@pytest.fixture
def console():
    return Console()


def test_names_stand_ready_and_last_through_cells(console):
    assert console.run("x = torch.ones(2); y = F.relu(x); z = torch.from_numpy(np.ones(1))").ok
    assert console.run("w = nn.Linear(2, 1).weight; x += 1").ok
    assert list(console.tensors()) == ["x", "y", "z", "w"]
    assert console.tensors()["x"].values == [2.0, 2.0]


def test_a_last_expression_is_shown_apart_from_what_is_printed(console):
    console.run("print('seen')\n1 + 1")
    assert (console.text(), console.text("result")) == ("seen\n", "2\n")
    console.run("None")
    assert console.text("result") == ""


def test_streams_keep_their_order_and_bytes(console):
    console.run(
        "import sys\nprint('a', end='')\nprint('b', file=sys.stderr)\nprint('ü\\ud800')\n"
        "sys.stdout.buffer.write(b'raw\\n')"
    )
    assert console.text() == "aü\\ud800\nraw\n"
    assert console.text("stderr") == "b\n"
    assert [s.stream for s in console.sent[:3]] == ["stdout", "stderr", "stdout"]


def test_stdout_is_given_back(console):
    before = sys.stdout, sys.stderr, sys.modules["__main__"], list(sys.path), sys.argv
    console.run("import sys; sys.stdout.close(); 1/0")
    assert before == (sys.stdout, sys.stderr, sys.modules["__main__"], list(sys.path), sys.argv)


def test_an_error_names_its_line_and_hides_our_frames(console):
    cell = console.run("def f():\n    return 1 / 0\n\n\ntry:\n    f()\nfinally:\n    x = 1\n")
    assert not cell.ok
    assert (cell.error.type, cell.error.message) == ("ZeroDivisionError", "division by zero")
    assert cell.error.line == 2
    assert "namespace.py" not in cell.error.traceback
    assert "return 1 / 0" in cell.error.traceback


def test_a_shape_error_of_torchs_is_placed_at_the_users_line(console):
    cell = console.run("a = torch.ones(2, 3)\nb = nn.Linear(4, 1)(a)\n")
    assert (cell.error.type, cell.error.line) == ("RuntimeError", 2)
    with pytest.raises(RuntimeError) as own:
        torch.nn.Linear(4, 1)(torch.ones(2, 3))
    assert cell.error.message == str(own.value)


def test_no_frame_of_ours_stands_between_the_users_and_torchs(console):
    cell = console.run("def f(a):\n    return F.linear(a, a.T)\nf(torch.ones(2, 3))")
    folder = os.path.dirname(sys.modules["engine"].__file__ or "")
    assert folder and folder not in cell.error.traceback
    assert "return F.linear(a, a.T)" in cell.error.traceback


@pytest.mark.parametrize(
    "call",
    [
        "F.mse_loss(a, torch.ones(2))",
        "torch.einsum('ij,jk', a, a)",
        "(a.requires_grad_() * 2).backward()",
        "F.cross_entropy(torch.ones(2, 3), torch.ones(2, 3).long())",
        "nn.MultiheadAttention(4, 2)(a, a, a)",
    ],
)
def test_a_traceback_is_the_one_that_plain_python_gives(console, call):
    console.run("a = torch.ones(3)")
    told = console.run(call).error.traceback
    plain: list[str] = []
    try:
        exec(compile(call, "<cell 2>", "exec"), {**vars(torch.nn), **console.names()})
    except Exception as error:
        plain = [frame.name for frame in traceback.extract_tb(error.__traceback__)[1:]]
    # With hooks, which the recorder has, a module calls its forward by an inner function.
    shown = [name for name in re.findall(r"File .*, line \d+, in (.+)", told) if name != "inner"]
    assert shown == plain


def test_breakpoint_says_what_to_use_instead_and_the_code_goes_on(console):
    before = sys.breakpointhook
    assert console.run("for i in range(3):\n    breakpoint()\nx = torch.ones(1)").ok
    assert console.text("stderr").count("\n") == 1
    assert console.text("stderr").startswith("breakpoint() in line 2 did not stop.")
    assert "“Forward, op by op”" in console.text("stderr")
    assert list(console.tensors()) == ["x"]
    assert sys.breakpointhook is before


def test_python_s_debugger_and_input_are_answered_in_words(console, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    quits = console.run("import pdb\npdb.Pdb().set_trace()\nx = 1")
    assert quits.error.type == "BdbQuit"
    assert "“Forward, op by op”" in quits.error.hint
    assert "Write the answer in the code." in console.run("input('name? ')").error.hint


def test_relative_paths_start_from_the_projects_folder(console, tmp_path):
    own = os.getcwd()
    folder, other = tmp_path / "project", tmp_path / "other"
    folder.mkdir()
    other.mkdir()

    def enter(path) -> None:
        console.session.handle(EnterFolderCommand(folder=str(path)))

    def where() -> str:
        console.run("import os; print(os.getcwd())")
        assert os.getcwd() == own
        return console.text().strip()

    assert where() == own
    enter(folder)
    assert console.run("np.save('a.npy', np.ones(2))").ok
    assert (folder / "a.npy").exists()
    assert where() == str(folder)
    console.session.handle(NewNamespaceCommand())
    assert where() == str(folder)
    assert console.run(f"import os; os.chdir({str(other)!r})").ok
    assert where() == str(other)
    enter(folder)
    assert where() == str(folder)
    enter(other)
    assert console.run("import os, shutil; shutil.rmtree(os.getcwd())").ok
    gone = console.run("x = 1")
    assert gone.error.message == f"The folder {other} cannot be entered: No such file or directory."
    assert where() == own
    enter("")
    assert where() == own


def test_causes_are_told(console):
    cell = console.run("try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('v') from e")
    assert cell.error.line == 4
    assert "KeyError: 'k'" in cell.error.traceback
    assert "direct cause" in cell.error.traceback


@pytest.mark.parametrize(
    ("source", "type_", "line"),
    [
        ("x = 1\ny = (\n", "SyntaxError", 2),
        ("if True:\nx = 1", "IndentationError", 2),
        ("raise SystemExit('why')", "SystemExit", 1),
        ("import sys; sys.exit(3)", "SystemExit", 1),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ("class Own(BaseException): pass\nraise Own", "Own", 2),
        ("class E(Exception):\n def __str__(self): 1/0\nraise E", "E", 3),
        ("class R:\n def __repr__(self): 1/0\nR()", "ZeroDivisionError", 2),
        ("def f(): f()\nf()", "RecursionError", 1),
        ("raise ValueError('\\ud800' + 'x' * 10**6)", "ValueError", 1),
    ],
)
def test_whatever_ends_a_cell_is_reported(console, source, type_, line):
    cell = console.run(source)
    assert (cell.ok, cell.error.type) == (False, type_)
    assert cell.error.line == line
    encode_snapshot(cell)
    assert console.run("1").ok


def test_the_null_byte_of_older_pythons_is_an_error_too(console):
    assert console.run("x = 1\0").error.type in ("SyntaxError", "ValueError")


def test_an_exit_without_a_fault_is_fine(console):
    assert console.run("x = torch.ones(1)\nimport sys\nsys.exit()").ok
    assert list(console.tensors()) == ["x"]


def test_classes_can_be_pickled_inspected_and_used_by_later_cells(console):
    assert console.run("class Net(nn.Module):\n    def forward(self, x):\n        return x + 1").ok
    cell = console.run(
        "import inspect, pickle\nassert 'return x + 1' in inspect.getsource(Net.forward)\n"
        "y = pickle.loads(pickle.dumps(Net()))(torch.ones(1))\nassert __name__ == '__main__'"
    )
    assert cell.ok, cell.error
    assert console.tensors()["y"].values == [2.0]


def test_future_imports_hold_for_the_last_expression_too(console):
    console.run("from __future__ import annotations\n(lambda: 0)\n")
    cell = console.run(
        "from __future__ import annotations\ndef f(x: Undefined): pass\nf.__annotations__"
    )
    assert cell.ok, cell.error
    assert console.text("result") == "{'x': 'Undefined'}\n"


def test_a_file_finds_its_neighbours_and_its_own_name(console, tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 3\n")
    file = tmp_path / "main.py"
    source = "import sys, neighbour\nprint(neighbour.VALUE, __file__ == sys.argv[0])\n1/0\n"
    cell = console.run(source, str(file))
    assert not cell.ok  # the file is not there yet: a name only
    file.write_text(source)
    cell = console.run(source, str(file))
    assert console.text() == "3 True\n"
    assert (cell.error.type, cell.error.line) == ("ZeroDivisionError", 3)
    assert str(tmp_path) not in sys.path
    assert "neighbour" not in sys.modules


def test_a_cell_that_is_no_file_has_no_name_of_a_file(console):
    assert console.run("import sys\nassert '__file__' not in globals()").ok
    assert console.run(f"assert sys.argv == {sys.argv!r} and sys.path == {sys.path!r}").ok


def test_modes_of_the_user_hold_for_cells_and_not_for_the_engine(console):
    console.run("torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64)")
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() == torch.float32
    console.run("y = torch.ones(1, requires_grad=True) * 2")
    assert console.tensors()["y"].dtype == "torch.float64"
    assert console.tensors()["y"].requires_grad is False


def test_the_users_default_device_holds_for_cells_and_not_for_the_engine(console):
    assert console.run("torch.set_default_device('meta')").ok
    assert torch.ones(1).device.type == torch.get_default_device().type == "cpu"
    assert console.run("x = torch.ones(2)").ok
    with console.session.lab.console.namespace.users_defaults():
        assert torch.ones(1).device.type == "meta"
    assert console.run("torch.set_default_device('cpu'); y = torch.ones(2)").ok
    assert torch.overrides._get_current_function_mode() is None  # it would slow the engine down
    assert console.run("z = torch.ones(2)").ok
    devices = {name: report.device for name, report in console.tensors().items()}
    assert devices == {"x": "meta", "y": "cpu", "z": "cpu"}
    assert console.run("torch.set_default_device(None)").ok
    assert torch.overrides._get_current_function_mode() is None


def test_many_tensors_come_in_parts_that_fit(console):
    assert console.run("for i in range(300): globals()[f't{i}'] = torch.full((1000,), 1/3)").ok
    parts = [s for s in console.sent if isinstance(s, TensorsSnapshot)]
    assert len(parts) > 1
    assert all(len(encode_snapshot(part)) <= MAX_SNAPSHOT_BYTES for part in parts)
    assert len(console.tensors()) == 300
    assert console.tensors()["t299"].values == torch.full((1000,), 1 / 3).tolist()


def test_values_are_sent_only_to_who_asks_for_them(console):
    sent = []
    session = Session(sent.append)
    session.handle(RunCellCommand(source="x = torch.full((1000,), 1 / 3)"))
    assert [type(each).__name__ for each in sent] == ["VariablesSnapshot", "CellSnapshot"]
    assert len(encode_snapshot(sent[0])) < 1000
    session.handle(RunCellCommand(source="", report_tensors=True))
    values = sent[2].tensors["x"].values
    assert values == torch.full((1000,), 1 / 3).tolist()


def test_names_that_are_no_identifiers_do_no_harm(console):
    assert console.run("globals()['\\ud800'] = torch.ones(1); globals()[3] = torch.ones(1)").ok
    assert list(console.tensors()) == ["\\ud800"]


def test_a_cell_for_a_script_sends_all_of_its_output(console):
    console.run("for i in range(20000): print(i)", all_output=True)
    assert console.text() == "".join(f"{i}\n" for i in range(20000))
    assert len(console.sent) < 10_000
    console.run(f"print('x' * {3 * MAX_CHARACTERS})", all_output=True)
    assert len(console.text()) == 3 * MAX_CHARACTERS + 1
    console.run("print('a\\rb', end='\\r')", all_output=True)
    assert console.text() == "a\rb\r"
    assert all(len(encode_snapshot(s)) <= MAX_SNAPSHOT_BYTES for s in console.sent)


def test_text_without_a_line_end_is_sent_while_the_code_still_runs():
    arrived = threading.Event()
    output = Output(lambda told: arrived.set() if told.text == "waiting" else None)
    with output.redirected():
        print("waiting", end="")
        assert arrived.wait(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # a fork beside threads
def test_a_forked_worker_does_not_write_into_the_pipe():
    sent = []
    output = Output(sent.append)
    read, write = os.pipe()
    with output.redirected():
        saved = os.dup(1)
        os.dup2(write, 1)
        child = os.fork()
        if child == 0:
            print("from the worker")
            os._exit(0)
        os.waitpid(child, 0)
        os.dup2(saved, 1)
        os.close(saved)
    assert os.read(read, 100) == b"from the worker\n"
    assert sent == []
    os.close(read)
    os.close(write)


def test_a_text_that_runs_under_a_name_that_another_has_keeps_its_own(console):
    assert console.run("def first():\n    return 1\n", "<kept cell 1>").ok
    other = console.run("def second():\n    return 1 / 0\n", "<kept cell 1>")
    assert other.file not in ("<kept cell 1>", "")
    names = console.names()
    assert inspect.getsource(names["first"]) == "def first():\n    return 1\n"
    assert inspect.getsource(names["second"]) == "def second():\n    return 1 / 0\n"
    assert "return 1 / 0" in console.run("second()").error.traceback


def test_an_expression_takes_no_name_that_other_code_has(console):
    step = compile_step("def step(batch):\n    return model(batch)\n", nn.Identity(), {})
    session = console.session
    assert console.run("step = torch.ones(1)").ok
    session.lab.console.namespace.evaluate("step", session.lab.control)
    assert inspect.getsource(step) == "def step(batch):\n    return model(batch)\n"
