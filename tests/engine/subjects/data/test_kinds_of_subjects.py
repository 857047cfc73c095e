"""What the canvas, a variable and a file answer about themselves, side by side."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from app.templates import load_template
from engine.handlers.subjects.canvas import SAMPLES, CanvasModel, example_inputs
from engine.handlers.subjects.code import ConsoleModel, FileModel
from engine.handlers.subjects.find import find_subject
from engine.handlers.subjects.subject import first_weights
from engine.lab import Lab
from engine.models.check import check
from engine.models.live import LiveModel
from engine.project.document import Block, DataSetup, Loading, Model, TrainingSetup, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    CheckModelCommand,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    StartForwardCommand,
    WatchCommand,
)
from engine.system.errors import LabError
from tests.engine.handlers.test_training_handlers import chain
from tests.engine.subjects.conftest import Ask, Write

MLP = load_template("mlp")
NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x):
        return self.layer(x)
net = Net()
pair = torch.ones(4, 3), torch.zeros(4, 2)
adam = torch.optim.Adam(net.parameters())
"""


def of_canvas(lab: Lab, training: TrainingSetup = MLP.training) -> CanvasModel:
    found = find_subject(lab, CanvasSubject(), MLP.model, training)
    assert isinstance(found, CanvasModel)
    return found


def of_console(lab: Lab, name: str = "net", written: Objective | None = None) -> ConsoleModel:
    found = find_subject(lab, ConsoleSubject(name), written=written or Objective())
    assert isinstance(found, ConsoleModel)
    return found


@pytest.fixture
def net(lab: Lab, ask: Ask) -> nn.Module:
    ask(RunCellCommand(source=NET))
    return lab.console.namespace.variables["net"]  # type: ignore[return-value]


def test_the_canvas_about_itself(lab: Lab, ask: Ask) -> None:
    ask(CheckModelCommand(model=MLP.model, training=MLP.training))
    canvas = of_canvas(lab)
    live = lab.models.live_model(MLP.model, MLP.training.seed).module
    assert canvas.module is live is canvas.take()
    assert (canvas.title, canvas.made, canvas.own_step) == ("Canvas", False, None)
    assert canvas.saved_beside is True and canvas.has_data is True
    assert canvas.variables is lab.console.namespace.variables
    assert canvas.console_names() == ([], "") and canvas.refusal("py") is None
    assert canvas.python == check(MLP.model, MLP.training).code
    canvas.check()
    assert canvas.python == check(MLP.model, MLP.training).code
    with pytest.raises(LabError, match="The canvas has its own data set and loss") as refused:
        canvas.usual_step()
    assert refused.value.hint == "Set them under Train."
    with pytest.raises(LabError):
        canvas.forward()
    ask(StartForwardCommand(model=MLP.model, training=MLP.training))
    assert canvas.forward() is lab.models.forward


def test_another_canvas_model_has_the_weights_of_the_seed_and_the_live_one_keeps_its_own(
    lab: Lab,
) -> None:
    canvas = of_canvas(lab)
    expected = first_weights(LiveModel(MLP.model, MLP.training.seed).module)
    with torch.no_grad():
        for parameter in canvas.module.parameters():
            parameter.fill_(7.0)
    for other in (canvas.fresh(), canvas.on_trial()):
        assert other.module is not canvas.module
        for name, tensor in other.module.state_dict().items():
            assert torch.equal(tensor, expected[name])
    assert all(bool((p == 7.0).all()) for p in canvas.module.parameters())
    canvas.forget_weights()
    for name, tensor in canvas.module.state_dict().items():
        assert torch.equal(tensor, expected[name])


def test_the_canvas_has_those_optimizers_of_cells_that_feed_it(lab: Lab, net: nn.Module) -> None:
    canvas = of_canvas(lab)
    own = torch.optim.SGD([{"params": net.parameters()}, {"params": canvas.module.parameters()}])
    lab.console.namespace.variables["own"] = own
    assert canvas.optimizers() == {"own": own}
    assert of_console(lab).optimizers().keys() == {"adam", "own"}


def test_what_the_canvas_needs_of_the_console_is_what_its_loader_is_given(lab: Lab) -> None:
    loading = Loading(sampler="order")
    setup = replace(MLP.training, data=replace(MLP.training.data, loading=loading))
    assert of_canvas(lab, setup).console_names() == (["order"], "")


def test_a_variable_about_itself(lab: Lab, net: nn.Module) -> None:
    subject = of_console(lab)
    assert subject.module is net is subject.take()
    assert (subject.title, subject.made, subject.own_step) == ("net", False, None)
    assert subject.saved_beside is False and subject.has_data is False
    assert subject.forward() is None and subject.check() is None
    assert subject.variables is lab.console.namespace.variables
    assert list(subject.optimizers()) == ["adam"]
    assert of_console(lab, "Net").made is True
    assert subject.refusal("pt") is None is subject.refusal("zip")
    with pytest.raises(LabError, match="Only a model of blocks is written as Python") as refused:
        _ = subject.python
    assert refused.value.hint == "Export its weights, or a package (.zip) with your file in it."
    with pytest.raises(LabError, match="There is no data to train net on") as refused:
        subject.data()
    assert refused.value.hint.startswith("Choose a data set under Train, or name a Dataset")
    with pytest.raises(LabError, match="There is no batch to call net with") as refused:
        subject.example()
    assert refused.value.hint.startswith("Name its data under Train, or with --data")


def test_what_a_variable_needs_of_the_console(lab: Lab, net: nn.Module) -> None:
    assert of_console(lab).console_names() == (["net"], "step")
    written = Objective("pair", "pair[:2]", step="def step(batch): return 0")
    setup = TrainingSetup(data=DataSetup(loading=Loading(sampler="order")))
    found = find_subject(lab, ConsoleSubject("net"), training=setup, written=written)
    assert found.console_names() == (["pair", "pair[:2]", "order", "net"], written.step)


def test_only_a_function_is_the_step_of_the_own_code(lab: Lab, ask: Ask, net: nn.Module) -> None:
    variables = lab.console.namespace.variables
    variables["step"] = 3
    assert of_console(lab).own_step is None
    ask(RunCellCommand(source="def step(batch):\n    return net(batch[0]).sum()"))
    subject = of_console(lab, written=Objective("pair"))
    assert subject.own_step is variables["step"]
    told = subject.usual_step()
    assert (told.task, told.source) == ("step of your code", "") and told.batch
    of_setup = of_console(lab, written=Objective("pair", loss_of_setup=True))
    assert "def step(batch)" in of_setup.usual_step().source
    ask(RunCellCommand(source="def step(one, two, three):\n    return one"))
    with pytest.raises(LabError, match="`step` of your code takes 3 arguments") as refused:
        of_console(lab, written=Objective("pair")).objective()
    assert refused.value.hint == "Write step(batch) or step(model, batch)."
    ask(RunCellCommand(source="def step(batch):\n    return model(batch[0]).sum()"))
    with pytest.raises(LabError, match="`step` of your code uses `model`") as refused:
        of_console(lab, written=Objective("pair")).objective()
    assert refused.value.hint == "Let it take the model: def step(model, batch)."
    source = "class Of:\n    model = net\ndef step(batch):\n    return Of.model(batch[0]).sum()"
    ask(RunCellCommand(source=source))  # another name
    assert of_console(lab, written=Objective("pair")).objective().source == ""
    ask(RunCellCommand(source="def step(batch):\n    return model(batch[0]).sum()\nmodel = net"))
    assert of_console(lab, written=Objective("pair")).objective().source == ""


def test_the_usual_step_is_told_with_its_task_and_batch(lab: Lab, net: nn.Module) -> None:
    told = of_console(lab, written=Objective("pair")).usual_step()
    assert told.task and "mse_loss" in told.source and "(4, 3)" in told.batch


def test_the_usual_step_asks_for_no_data_of_validation(lab: Lab, net: nn.Module) -> None:
    subject = of_console(lab, written=Objective("pair", "missing"))
    assert subject.usual_step().source
    with subject.on_first_batch() as (batch, run):
        assert tuple(batch[0].shape) == (4, 3)
        assert torch.equal(run(), net(batch[0]))
    with pytest.raises(LabError, match="missing"):
        subject.data()


def test_a_variable_is_itself_on_trial_and_where_it_is_fresh(lab: Lab, net: nn.Module) -> None:
    subject = of_console(lab)
    assert subject.on_trial().module is subject.module is net
    assert subject.fresh().module is net
    made = of_console(lab, "Net")
    before = made.module
    anew = made.fresh()
    assert anew.module is not before and made.module is before


def test_a_file_about_itself(lab: Lab, ask: Ask, write: Write) -> None:
    path = str(write("net.py", NET))
    ask(RunFileCommand(path=path))
    found = find_subject(lab, FileSubject(path, "net"), written=Objective("pair"))
    assert isinstance(found, FileModel)
    assert (found.title, found.made, found.has_data) == ("net.py: net", False, True)
    assert found.variables["net"] is found.module is not None
    assert "net" not in lab.console.namespace.variables
    assert found.console_names() == ([], "")
    assert find_subject(lab, FileSubject(path, "Net")).made is True


def test_first_weights_are_a_copy_of_the_whole_state() -> None:
    norm = nn.BatchNorm1d(2)
    told = first_weights(norm)
    assert told.keys() == norm.state_dict().keys()
    norm.weight.data.fill_(5.0)
    assert told["weight"].tolist() == [1.0, 1.0] and not told["weight"].requires_grad


def test_the_inputs_of_an_example_are_normal_numbers_or_zeros_and_ones() -> None:
    for dtype in ("float32", "int64"):
        model = chain(
            Block("b1", "Input", "x", {"shape": (5, 6), "dtype": dtype}),
            Block("b2", "nn.Flatten", "flatten", {}),
            Block("b3", "Output", "output"),
        )
        (x,) = example_inputs(LiveModel(model, 0))
        assert x.shape == (SAMPLES, 5, 6) and str(x.dtype) == f"torch.{dtype}"
        generator = torch.Generator().manual_seed(0)
        if dtype == "float32":
            assert torch.equal(x, torch.randn(SAMPLES, 5, 6, generator=generator))
        else:
            assert set(x.flatten().tolist()) == {0, 1}
        (again,) = example_inputs(LiveModel(model, 1))
        assert torch.equal(x, again)


def test_nothing_is_given_where_a_command_has_neither_blocks_nor_data(lab: Lab) -> None:
    canvas = find_subject(lab, CanvasSubject())
    assert isinstance(canvas, CanvasModel)
    assert (canvas.model, canvas.training) == (Model(), TrainingSetup())
    assert canvas.written == Objective()


@pytest.mark.parametrize(("rows", "size"), [(1, 2), (2, 2), (3, 3)])
def test_the_example_of_one_sample_has_two(lab: Lab, ask: Ask, rows: int, size: int) -> None:
    """In eval mode, in which a normalisation takes one sample too; then the mode is as before."""
    ask(RunCellCommand(source="net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))"))
    net = lab.console.namespace.variables["net"]
    lab.console.namespace.variables["pair"] = torch.ones(rows, 3), torch.zeros(rows, 2)
    step = "def step(batch):\n    return model(batch[0]).sum()"
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    example = of_console(lab, written=Objective("pair", step=step)).example()
    assert example.size == size and tuple(example.tensors[0].shape) == (size, 3)
    assert net.training
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_only_the_watched_subject_tells_what_is_watched(lab: Lab, ask: Ask, net: nn.Module) -> None:
    lab.console.namespace.variables["other"] = nn.Sequential(nn.Linear(3, 2))
    ask(WatchCommand(subject=ConsoleSubject("net"), paths=("layer",)))
    for name, paths in (("net", ("layer",)), ("other", ())):
        (told,) = ask(ReadStructureCommand(subject=ConsoleSubject(name)))
        assert told.watched == paths and told.title == name and told.made is False
        assert told.optimizers == ("adam",) and told.unregistered == ()
