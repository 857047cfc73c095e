"""A subject of the console, of a file, of the canvas: one module each, with its weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from app.templates import load_template
from engine.handlers.subjects.find import find_subject
from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.project.subject import (
    CanvasSubject,
    ConsoleSubject,
    FileSubject,
    Objective,
    files_of,
    split_reference,
    title,
)
from engine.protocol import (
    RunCellCommand,
    RunFileCommand,
    ShowSubjectCommand,
    WriteStepCommand,
)
from engine.system.errors import LabError
from tests.engine.subjects.conftest import Ask, Write

NET = """\
class Net(nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.layer = nn.Linear(size, 2)
    def forward(self, x):
        return self.layer(x)
"""
FILE = "from torch import nn\n" + NET


@pytest.fixture
def module(lab: Lab):
    """The module of a subject, with a seed."""

    def find(subject, seed: int = 0) -> nn.Module:
        return find_subject(lab, subject, Model(), TrainingSetup(seed=seed)).module

    return find


def weights_after(seed: int, size: int = 3) -> torch.Tensor:
    torch.manual_seed(seed)
    return nn.Linear(size, 2).weight


def test_a_variable_is_its_own_module(lab, ask, module):
    ask(RunCellCommand(source=f"{NET}model = Net()\nparts = [model]"))
    model = lab.console.namespace.variables["model"]
    assert module(ConsoleSubject("model")) is model
    assert module(ConsoleSubject("model.layer")) is model.layer
    assert module(ConsoleSubject("parts[0]")) is model
    ask(RunCellCommand(source="model = Net(5)"))
    assert module(ConsoleSubject("model")) is lab.console.namespace.variables["model"]


@pytest.mark.parametrize(("expression", "size"), [("Net", 3), ("Net()", 3), ("Net(5)", 5)])
def test_a_class_or_call_makes_a_module_after_the_seed_and_keeps_it(
    ask, module, write, expression, size
):
    path = write("net.py", FILE)
    ask(RunFileCommand(path=str(path)))
    before = torch.get_rng_state()
    subject = FileSubject(str(path), expression)
    made = module(subject, seed=7)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(made.layer.weight, weights_after(7, size))
    assert module(subject, seed=7) is made
    other = module(subject, seed=8)
    assert torch.equal(other.layer.weight, weights_after(8, size))


def test_it_is_made_again_when_its_class_is_another(ask, module):
    ask(RunCellCommand(source=NET))
    made = module(ConsoleSubject("Net"))
    ask(RunCellCommand(source=NET))
    assert module(ConsoleSubject("Net")) is not made


def test_an_expression_of_the_console_is_a_name_and_is_not_computed(ask, module, lab):
    """Names, attributes and constant indices: nothing that a document says is evaluated."""
    ask(RunCellCommand(source=f"{NET}model = Net(); ran = []"))
    for text in (
        "Net()",
        "[model][ran.append(1)]",
        "ran.append(1) or model",
        "model.train().layer",
    ):
        with pytest.raises(LabError, match="calls something: a subject of the console is a name"):
            module(ConsoleSubject(text))
    for text in ("f'{model!r}'", "model if model else 0", "[m for m in (model,)]", "lambda: model"):
        with pytest.raises(LabError, match="only names can be looked at"):
            module(ConsoleSubject(text))
    assert lab.console.namespace.variables["ran"] == []


def test_a_subject_of_a_file_is_what_it_held_when_it_ran_last(ask, module, write):
    path = write("net.py", FILE + "count = Net()\nopen(__file__ + '.ran', 'w').close()\n")
    with pytest.raises(LabError, match=r"net\.py has not run in this engine\."):
        module(FileSubject(str(path), "Net"))
    assert not path.with_name("net.py.ran").exists()
    ask(RunFileCommand(path=str(path)))
    assert path.with_name("net.py.ran").exists()
    made = module(FileSubject(str(path), "Net"))
    assert torch.equal(made.layer.weight, weights_after(0))
    instance = module(FileSubject(str(path), "count"))
    assert module(FileSubject(str(path), "count")) is instance
    assert module(FileSubject(str(path), "Net")) is made
    ask(RunFileCommand(path=str(path)))
    assert module(FileSubject(str(path), "count")) is not instance
    assert module(FileSubject(str(path), "Net")) is not made


def test_the_canvas_is_a_subject_too(lab):
    project = load_template("mlp")
    found = find_subject(lab, CanvasSubject(), project.model, project.training)
    assert found.module is lab.models.live_model(project.model, project.training.seed).module


def test_fresh_weights_are_those_after_the_seed(lab, ask, module):
    ask(RunCellCommand(source=f"{NET}model = Net()"))
    subject, training = ConsoleSubject("Net"), TrainingSetup(seed=3)
    with torch.no_grad():
        module(subject, seed=3).layer.weight.zero_()
    find_subject(lab, subject, training=training).forget_weights()
    assert torch.equal(module(subject, seed=3).layer.weight, weights_after(3))
    with pytest.raises(LabError, match="made by your code"):
        find_subject(lab, ConsoleSubject("model"), training=training).forget_weights()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("missing", "no variable named `missing`"),
        ("Net(", "is not a Python expression"),
        ("Deep", r"`Deep` needs arguments: width, depth\."),
        ("Other", "`Other` is a class, but of no nn.Module"),
        ("number", "is of type int"),
        ("make", r"`make\(\)` returned an object of type int"),
        ("Net('x')", "calls something"),
    ],
)
def test_what_makes_no_module_is_told(ask, module, expression, words):
    ask(
        RunCellCommand(
            source=f"{NET}class Deep(nn.Module):\n    def __init__(self, width, depth): ...\n"
            "class Other: ...\nnumber = 3\ndef make(): return 3"
        )
    )
    with pytest.raises(LabError, match=words):
        module(ConsoleSubject(expression))


def test_a_reference_is_split_at_the_file():
    assert split_reference("net.py:Net(10)") == ("net.py", "Net(10)")
    assert split_reference("C:\\x\\net.py:parts[1:2]") == ("C:\\x\\net.py", "parts[1:2]")
    assert split_reference("a.py:b.py:c") == ("a.py", "b.py:c")
    for text in ("net.py", "net.py:", "net.py: ", ":Net", ".py:Net", "model", "x.tlab"):
        assert split_reference(text) is None, text


def test_titles_name_the_subject():
    assert title(CanvasSubject()) == "Canvas"
    assert title(ConsoleSubject("model")) == "model"
    assert title(FileSubject("/home/x/net.py", "Net()")) == "net.py: Net()"


def test_files_of_a_subject_and_its_data_are_named_once():
    objective = Objective(data="data.py:train", validation="/x/net.py:x")
    subject = FileSubject("/x/net.py", "Net()")
    assert files_of(subject, objective) == ("/x/net.py", "data.py")
    assert files_of(ConsoleSubject("model"), objective) == ("data.py", "/x/net.py")
    assert files_of(ConsoleSubject("model"), Objective(data="loader")) == ()
    assert files_of(CanvasSubject(), objective) == ()


def test_lab_subject_is_the_module_that_the_workspaces_work_on(
    lab: Lab, ask: Ask, write: Write
) -> None:
    path = write(
        "net.py",
        "from torch import nn\nclass Net(nn.Linear):\n"
        "    def __init__(self, n=2):\n        super().__init__(n, 1)\n",
    )
    ask(RunFileCommand(path=str(path)))
    namespace = lab.console.namespace
    with pytest.raises(LabError, match="The canvas has no model yet"):
        namespace.tensor("lab.subject.weight")
    for subject in (FileSubject(str(path), "Net"), FileSubject(str(path), "Net(3)")):
        ask(ShowSubjectCommand(subject=subject))
        module = find_subject(lab, subject, Model(), TrainingSetup()).module
        assert namespace.tensor("lab.subject.weight") is module.get_parameter("weight")
        ask(RunCellCommand(source="found = lab.subject"))
        assert namespace.variables["found"] is module
    ask(ShowSubjectCommand(subject=ConsoleSubject("nothing")))
    with pytest.raises(LabError, match="no variable named `nothing`"):
        namespace.tensor("lab.subject.weight")
    ask(ShowSubjectCommand(subject=CanvasSubject()))
    with pytest.raises(LabError, match="The canvas has no model yet"):
        namespace.tensor("lab.subject.weight")


def test_no_step_is_written_for_the_canvas_whose_data_and_loss_are_its_own(ask):
    command = WriteStepCommand(
        subject=CanvasSubject(), objective=Objective(), training=TrainingSetup()
    )
    with pytest.raises(LabError, match="its own data set and loss"):
        ask(command)
