"""What the user's code raises to end a process ends only that code: the engine goes on."""

from __future__ import annotations

import pytest

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    CellSnapshot,
    ErrorReport,
    ErrorSnapshot,
    OutputSnapshot,
    RunCellCommand,
    RunFileCommand,
    Snapshot,
    StartTraceCommand,
    TraceSnapshot,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)
from engine.server.session import Session

EXITS = ["raise SystemExit(3)", "exit()", "import sys; sys.exit()", "raise GeneratorExit", "stop()"]
STOP = "class Stop(BaseException): pass\ndef stop(): raise Stop\n"


class Desk:
    def __init__(self) -> None:
        self.sent: list[Snapshot] = []
        self.session = Session(self.sent.append)

    def ask(self, command) -> list[Snapshot]:
        self.sent.clear()
        self.session.handle(command)
        while self.session.advance():
            pass
        return list(self.sent)

    def run(self, source: str) -> tuple[CellSnapshot, str]:
        answers = self.ask(RunCellCommand(source=source))
        text = "".join(each.text for each in answers if isinstance(each, OutputSnapshot))
        (cell,) = [each for each in answers if isinstance(each, CellSnapshot)]
        return cell, text


@pytest.fixture
def desk():
    desk = Desk()
    desk.run("kept = 1")
    yield desk
    assert desk.run("print(kept)")[1] == "1\n"  # it answers, and has its variables


def error_of(answers: list[Snapshot]) -> ErrorReport:
    """Of an ErrorSnapshot, or of a run that has failed."""
    errors = [each.error for each in answers if isinstance(each, ErrorSnapshot)]
    errors += [e.error for e in answers if isinstance(e, TrainingSnapshot) and e.state == "failed"]
    (error,) = errors
    assert error is not None
    return error


@pytest.mark.parametrize("source", EXITS)
def test_a_file_that_is_opened(desk, tmp_path, source):
    path = tmp_path / "leaves.py"
    path.write_text(f"{STOP}{source}\n")
    error = error_of(desk.ask(RunFileCommand(path=str(path))))
    assert error.type in ("SystemExit", "GeneratorExit", "Stop") and error.line in (2, 3)
    assert error.message or error.type == "GeneratorExit"


ARGUMENTS = """
import argparse
p = argparse.ArgumentParser(prog="train.py")
p.add_argument("--dataset", required=True)
opt = p.parse_args()
"""


def test_a_file_that_wants_arguments(desk, tmp_path):
    path = tmp_path / "needs.py"
    path.write_text(ARGUMENTS)
    error = error_of(desk.ask(RunFileCommand(path=str(path))))
    assert error.type == "SystemExit" and error.line == 5
    assert error.message == (
        "The code wants command-line arguments, and has none here.\n"
        "usage: train.py [-h] --dataset DATASET\n"
        "train.py: error: the following arguments are required: --dataset"
    )
    assert "default values" in error.hint and "__main__" in error.hint


def test_a_cell_that_wants_arguments(desk):
    cell, _ = desk.run(ARGUMENTS)
    assert not cell.ok and "--dataset DATASET" in cell.error.message


@pytest.mark.parametrize("source", ["exit()", "quit()", "import sys; sys.exit(0)"])
def test_an_exit_ends_the_cell_with_a_message(desk, source):
    cell, text = desk.run(f"{source}\nprint('not reached')")
    assert cell.ok and text == "exit() ended this cell. The variables stay.\n"


def test_an_exit_with_a_code_is_an_error(desk):
    cell, _ = desk.run("import sys\nsys.exit(4)")
    assert (cell.error.type, cell.error.line) == ("SystemExit", 2)
    assert cell.error.message == "The code ended itself: sys.exit(4)."
    assert "exit()" in cell.error.hint


def test_an_exit_says_its_own_message(desk):
    cell, _ = desk.run("raise SystemExit('no data')")
    assert cell.error.message == "no data"


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x):
        {forward}
        return self.layer(x)
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i):
        {item}
        return torch.ones(3), 1
def collate(samples):
    {collate}
    return torch.utils.data.default_collate(samples)
def hook(*_):
    {hook}
def step(model, batch):
    {step}
    x, y = batch
    return F.cross_entropy(model(x), y)
net = Net()
net.layer.register_forward_hook(hook)
net.layer.weight.register_hook(hook)
data = torch.utils.data.DataLoader(Rows(), 2, collate_fn=collate)
"""
PLACES = ["forward", "item", "collate", "hook", "step"]


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "exit()", "stop()"])
@pytest.mark.parametrize("place", PLACES)
def test_a_run_of_train_fails_with_it(desk, place, source):
    desk.run(STOP + NET.format(**dict.fromkeys(PLACES, "pass") | {place: source}))
    error = error_of(
        desk.ask(
            TrainCommand(
                model=Model(),
                training=TrainingSetup(epochs=1),
                subject=ConsoleSubject("net"),
                objective=Objective("data"),
            )
        )
    )
    assert error.type in ("SystemExit", "Stop") and error.message


def test_a_trace_of_code_ends_with_it(desk):
    answers = desk.ask(StartTraceCommand(source="torch.ones(2) + 1\nexit(3)"))
    (trace,) = [each for each in answers if isinstance(each, TraceSnapshot)]
    assert trace.error is not None and trace.error.type == "SystemExit"


@pytest.mark.parametrize("name", ["__repr__", "__getattr__", "__len__", "__class_getitem__"])
def test_an_object_that_is_listed(desk, name):
    source = f"class Trap:\n    def {name}(self, *_): raise SystemExit\ntrap = Trap()"
    cell, _ = desk.run(source)
    assert cell.ok
    listed = [each for each in desk.sent if isinstance(each, VariablesSnapshot)]
    assert "trap" in [each.name for each in listed[-1].variables]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("what", ["SystemExit(3)", "KeyboardInterrupt"])
def test_a_finalizer(desk, what):
    cell, text = desk.run(
        f"class Trap:\n    def __del__(self): raise {what}\ntrap = Trap()\ndel trap\nprint('on')"
    )
    assert cell.ok and "on\n" in text
