"""What the process that reads an export finds: where it differs, and what it cannot compare."""

from __future__ import annotations

import copy
import math
import re
import warnings
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from engine.exporting import programs as writers
from engine.exporting.examples import cases_of, example_of
from engine.exporting.verifying import Verifier
from engine.exporting.weights import save_state
from engine.handlers.exporting import export as exports
from engine.handlers.exporting import programs, weight_exports
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import ExportCommand, RunCellCommand
from engine.subjects.model_file import load_model
from engine.system.errors import LabError
from engine.verifier.jobs import ConvertJob, Job, ProgramJob, WeightsJob
from engine.verifier.values import difference, leaves, read_cases

CELL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(torch.relu(self.second(torch.relu(self.first(x)))))

class Convolved(Net):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 1)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return super().forward(self.norm(self.conv(x.unsqueeze(1))).sum(1))

class Branch(Net):
    def forward(self, x):
        y = super().forward(x)
        return -y if len(x) > 3 else y

class Rows(Net):
    def forward(self, x):
        return sum(super(Rows, self).forward(row) for row in x)

class Sized(Net):
    def forward(self, x):
        return super().forward(x.view(4, 3))

class Noise(Net):
    def forward(self, x):
        return super().forward(x) + torch.rand_like(x[:, :2])

class Named(Net):
    def forward(self, x, *, scale):
        y = super().forward(x)
        return {"scaled": y * scale, "plain": y}

net, convolved, branch, rows = Net(), Convolved(), Branch(), Rows()
sized, noise, named = Sized(), Noise(), Named()
x = torch.randn(4, 3)
data = [(x, torch.randn(4, 2))]
named_data = [{"x": x, "scale": torch.full((4, 1), 2.0)}]
"""
TWO_OUTPUTS = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x):
        return self.last(F.dropout(self.first(x), 0.5))

class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(()))
    def forward(self, x):
        self.runs += 1
        return x + self.runs

dropping = nn.Sequential()
dropping.block = nn.Sequential()
dropping.block.attention, dropping.block.head = Attention(), nn.Linear(3, 2)
counting = nn.Sequential(nn.Linear(3, 2), Count())
"""
SETUP = TrainingSetup(batch_size=4)


@pytest.fixture(scope="module", autouse=True)
def cell(ask, verifier) -> None:
    ask(RunCellCommand(source=CELL))


@pytest.fixture
def export(ask, tmp_path):
    def run(name: str, format, data: str = "data", **more):
        path = tmp_path / "out"
        command = ExportCommand(
            model=Model(), training=SETUP, format=format, path=str(path),
            subject=ConsoleSubject(name), objective=Objective(data=data), **more,
        )  # fmt: skip
        return ask(command)[-1]

    return run


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("net", "pt2"),
        ("net", "onnx"),
        ("convolved", "onnx"),  # its normalisation is merged into the convolution
        ("net", "torchscript-trace"),
        ("net", "torchscript-script"),
    ],
)
def test_the_first_module_that_differs_is_named(export, monkeypatch, name, format) -> None:
    def spoilt(module: nn.Module) -> nn.Module:
        with torch.no_grad():
            module.get_parameter("second.bias").add_(1.0)
        return module

    for writer in ("exported", "traced", "scripted"):
        whole = getattr(writers, writer)
        monkeypatch.setattr(
            programs, writer, lambda module, *more, whole=whole: whole(spoilt(module), *more)
        )
    done = export(name, format)
    assert not done.verified and done.differs == "second (Linear)"
    assert done.max_abs_error > 0.1


def test_a_tensor_that_is_another_one_in_the_file_is_named(export, monkeypatch) -> None:
    def spoilt(state, *more):
        return save_state({**state, "second.bias": state["second.bias"] + 1}, *more)

    monkeypatch.setattr(weight_exports, "save_state", spoilt)
    done = export("net", "safetensors")
    assert not done.verified and done.differs == "the tensor second.bias"
    assert done.max_abs_error == math.inf


def test_a_batch_of_another_size_repeats_the_samples() -> None:
    x, mask = torch.arange(6.0).reshape(3, 2), torch.ones(4)
    example = example_of((x,), {"more": [x + 1, {"mask": mask}], "flag": True})
    assert example.size == 3
    for size, rows in ((1, [0]), (2, [0, 1]), (5, [0, 1, 2, 0, 1])):
        changed = example.of_size(size)
        assert torch.equal(changed.args[0], x[rows]) and changed.size == size
        first, second = changed.kwargs["more"]
        assert torch.equal(first, x[rows] + 1) and second["mask"] is mask
        assert changed.kwargs["flag"] is True


def test_a_branch_that_tracing_has_frozen_is_told_as_the_models_own(export) -> None:
    done = export("branch", "torchscript-trace")
    assert not done.verified and done.batch_sizes == (1, 2, 4, 5)
    assert done.differs == "Branch.forward; the modules inside agree"


def test_a_batch_size_that_the_file_does_not_take_is_told(export) -> None:
    done = export("rows", "torchscript-trace")
    assert not done.verified and done.batch_sizes == (4,)
    assert done.differs == "the run with 1 sample"
    assert done.notes == (
        "With 1 sample it raises RuntimeError: Expected 4 elements in a list but found 1",
    )


def test_a_fixed_number_of_samples_is_told(export) -> None:
    done = export("sized", "pt2")
    assert done.verified and done.batch_sizes == (4,)
    assert done.notes == ("The number of samples is fixed at 4: the model computes with it.",)


RANDOM = "The model itself gives different outputs in two runs in eval mode"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("noise", ": its own forward does, Noise.forward."),
        ("dropping", ": the first module to do so is block.attention (Attention)."),
        ("counting", ": the first module to do so is 1 (Count)."),
    ],
)
def test_a_model_that_gives_two_outputs_for_one_input_is_not_verified(
    ask, export, lab, name, place
) -> None:
    ask(RunCellCommand(source=TWO_OUTPUTS))
    done = export(name, "pt2")
    assert not done.verified and done.unverified == f"{RANDOM}{place}"
    if name != "counting":  # its numbers come from before, not from a seed
        assert done.differs == "" and done.max_abs_error == 0.0
        assert done.notes == ("1 of 1 outputs are drawn at random, and were compared with the"
                              " same seed.",)  # fmt: skip
    done = export(name, "onnx")
    assert not done.verified and done.unverified == f"{RANDOM}{place}"
    assert any("1 of 1 outputs are drawn at random, by ONNX" in note for note in done.notes)


def test_a_file_that_gives_two_outputs_for_one_input_differs(export, ask, monkeypatch) -> None:
    ask(RunCellCommand(source="dropout = nn.Sequential(Net(), nn.Dropout(0.5))"))
    assert export("dropout", "pt2").verified
    write = writers.exported
    monkeypatch.setattr(programs, "exported", lambda module, *more: write(module.train(), *more))
    done = export("dropout", "pt2")
    assert not done.verified and done.differs and not done.unverified


def test_a_program_is_compared_on_three_different_inputs_in_several_sizes(export, verifier) -> None:
    assert export("net", "pt2").verified
    cases = read_cases(str(verifier.folder / "cases.pt"))
    assert [case.batch_size for case in cases] == [1, 2, 4, 4, 4, 5]
    assert len({case.args[0].numpy().tobytes() for case in cases}) == 6
    done = export("sized", "pt2")  # of one size alone
    assert done.verified and done.batch_sizes == (4,)
    cases = read_cases(str(verifier.folder / "cases.pt"))
    assert len({case.args[0].numpy().tobytes() for case in cases}) == 3


def test_a_branch_on_the_numbers_of_an_input_is_seen(export, ask) -> None:
    source = "class Small(Net):\n    def forward(self, x):\n        y = super().forward(x)\n"
    source += "        return y if x.abs().max() > 0.9 * x0.abs().max() else -y\n"
    ask(RunCellCommand(source=f"{source}x0, small = x, Small()"))
    done = export("small", "torchscript-trace")
    assert not done.verified and done.differs == "Small.forward; the modules inside agree"


def test_onnx_is_converted_in_one_process_and_run_in_another(export, verifier, monkeypatch):
    asked: list[list[type[Job]]] = []

    class Told:
        """The shared process; what an export asks of it is written down."""

        folder = verifier.folder

        def __init__(self) -> None:
            self._mine: list[type[Job]] = []
            asked.append(self._mine)

        def __enter__(self) -> Told:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, job: Job):
            self._mine.append(type(job))
            return verifier.ask(job)

    monkeypatch.setattr(exports, "Verifier", Told)
    assert export("net", "onnx").verified
    assert sorted(asked, key=str) == [[ConvertJob], [ProgramJob]]


def test_names_of_a_batch_and_of_a_dict_are_those_of_the_file(export, tmp_path) -> None:
    import onnx

    done = export("named", "onnx", data="named_data", opset=20)
    graph = onnx.load(tmp_path / "out").graph
    assert [value.name for value in graph.input] == ["x", "scale"]
    assert [value.name for value in graph.output] == ["scaled", "plain"]
    assert done.verified and done.opset == 20
    assert not any("stack_trace" in p.key for node in graph.node for p in node.metadata_props)


def test_without_data_there_is_no_program_but_there_are_weights(export) -> None:
    with pytest.raises(LabError, match="There is no batch to call net with"):
        export("net", "pt2", data="")
    assert export("net", "pt", data="").verified


@pytest.mark.parametrize(
    ("opened", "format"),
    [
        ("pt2", "zip"), ("pt2", "pt"), ("pt2", "onnx"), ("pt2", "torchscript-trace"),
        ("torchscript-script", "zip"), ("torchscript-trace", "torchscript-trace"),
        ("torchscript-script", "torchscript-script"),
    ],
)  # fmt: skip
def test_an_opened_program_is_a_subject_too(
    ask, export, write_data, tmp_path, opened, format
) -> None:
    export("net", opened)
    whole = (tmp_path / "out").rename(tmp_path / f"whole.{'pt2' if opened == 'pt2' else 'pt'}")
    command = ExportCommand(
        model=Model(), training=SETUP, format=format, path=str(tmp_path / "again"),
        subject=FileSubject(str(whole), "model"), objective=Objective(data=write_data),
    )  # fmt: skip
    assert ask(command)[-1].verified


@pytest.mark.parametrize("format", ["pt2", "torchscript-trace", "torchscript-script"])
def test_a_program_can_be_trained(ask, export, lab, tmp_path, format) -> None:
    """Its parameters require gradients as those of the module do."""
    ask(RunCellCommand(source="part = Net()\npart.first.weight.requires_grad_(False)"))
    export("part", format)
    suffix = ".pt2" if format == "pt2" else ".pt"
    module = load_model((tmp_path / "out").rename(tmp_path / f"whole{suffix}"))
    plain = lab.console.namespace.variables["part"]
    x = torch.randn(4, 3)
    for model in (module, plain):
        model(x).square().sum().backward()
    gradients = {name: each.grad for name, each in module.named_parameters()}
    assert gradients["first.weight"] is None and len(gradients) == 6
    for name, parameter in plain.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(gradients[name], parameter.grad)


@pytest.fixture
def write_data(ask, tmp_path) -> str:
    from engine.protocol import RunFileCommand

    file = tmp_path / "batches.py"
    file.write_text("import torch\ndata = [(torch.ones(4, 3), torch.ones(4, 2))]\n")
    ask(RunFileCommand(path=str(file)))
    return f"{file}:data"


@pytest.mark.parametrize(
    ("format", "dtype"),
    [
        ("pt2", "float16"),
        ("pt2", "float64"),
        ("torchscript-trace", "bfloat16"),
        ("torchscript-script", "float16"),
        ("zip", "bfloat16"),
        ("onnx", "float16"),
    ],
)
def test_a_program_in_another_dtype_is_that_of_the_cast_module(
    export, lab, tmp_path, format, dtype
) -> None:
    done = export("net", format, dtype=dtype)
    assert done.verified and done.batch_sizes == (1, 2, 4, 5)
    net = copy.deepcopy(lab.console.namespace.variables["net"]).eval()
    wanted = getattr(torch, dtype)
    cases = cases_of(net, example_of((lab.console.namespace.variables["x"],), {}))
    before = torch.cat([case.outputs[0] for case in cases])
    net.to(wanted)
    with torch.no_grad():
        after = torch.cat([net(case.args[0].to(wanted)) for case in cases])
    apart = (after.double() - before.double()).abs()
    said = re.fullmatch(
        rf"Its numbers are {dtype}, and so are those that it takes: its outputs are at most"
        r" (\S+) away from those of the model\.",
        *done.notes,
    )
    assert said
    # A float32 sum may round otherwise where its memory lies otherwise.
    rounding = 4 * torch.finfo(torch.float32).eps * before.abs().max().item()
    assert float(said[1]) == pytest.approx(apart.max().item(), rel=0.005, abs=rounding)
    assert lab.console.namespace.variables["net"].first.weight.dtype == torch.float32
    if format not in ("onnx", "zip"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = load_model(
                (tmp_path / "out").rename(tmp_path / f"whole{'.pt2' if format == 'pt2' else '.pt'}")
            )
        assert {each.dtype for each in program.parameters()} == {wanted}


def test_a_model_that_does_not_run_in_a_dtype_says_so(export, ask) -> None:
    ask(
        RunCellCommand(
            source="class Fixed(Net):\n"
            "    def forward(self, x):\n"
            "        return super().forward(x + torch.ones(3))\n"
            "fixed = Fixed()"
        )
    )
    assert export("fixed", "pt2").verified
    with pytest.raises(
        LabError, match="does not run on its batch in float16: RuntimeError"
    ) as told:
        export("fixed", "pt2", dtype="float16")
    assert told.value.hint == "Export it without a dtype."


def test_an_option_of_another_format_is_refused(export) -> None:
    with pytest.raises(LabError, match=r"no dtype to choose\. Its numbers are as they are:"):
        export("net", "checkpoint", dtype="float16")
    with pytest.raises(LabError, match="ONNX Runtime has no bfloat16 on a CPU") as refused:
        export("net", "onnx", dtype="bfloat16")
    assert "float16" in refused.value.hint
    with pytest.raises(LabError, match="Only ONNX has an opset"):
        export("net", "pt", opset=18)


def test_a_missing_package_is_told_with_the_line_that_installs_it(export, monkeypatch) -> None:
    found = exports.importlib.util.find_spec
    monkeypatch.setattr(
        exports.importlib.util, "find_spec",
        lambda name: None if name == "onnxscript" else found(name),
    )  # fmt: skip
    with pytest.raises(LabError, match="not installed: onnxscript") as refused:
        export("net", "onnx")
    assert refused.value.hint == "pip install onnxscript"


def test_differences_are_those_of_plain_torch() -> None:
    x = torch.tensor([1.0, -2.0, 0.0, math.nan, math.inf])
    y = torch.tensor([1.5, -2.0, 0.25, math.nan, math.inf])
    assert difference(x, y) == (0.5, math.inf, False)
    assert difference(x[:3] + 1, y[:3] + 1) == (0.5, 0.25, False)
    assert difference(x, x.clone()) == (0.0, 0.0, True)
    assert difference(x, torch.full_like(x, math.nan)).absolute == math.inf
    assert difference(x, x[:4]) == (math.inf, math.inf, False)
    assert difference(torch.ones(3), torch.ones(3) + 5e-4).agrees
    assert not difference(torch.ones(3), torch.ones(3) + 5e-3).agrees
    assert not difference(torch.tensor([1]), torch.tensor([2])).agrees
    zeros = torch.zeros(3, dtype=torch.complex64)
    assert difference(zeros, zeros + 5e-6j).agrees and not difference(zeros, zeros + 5e-5j).agrees
    assert difference(zeros + 1, zeros + 1 + 5e-4j).agrees
    assert not difference(zeros + 1, zeros + 1 + 5e-3j).agrees


def test_the_tensors_of_an_output_of_any_kind() -> None:
    @dataclass
    class Output:
        first: Tensor
        more: list[Tensor]
        none: None = None

    x, y = torch.ones(2), torch.zeros(3)
    found = leaves({"own": Output(x, [y]), "number": 2, "pair": (x, None)})
    assert [each is one for each, one in zip(found, (x, y, None, x), strict=True)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert torch.equal(found[2], torch.tensor(2))


def test_a_process_that_dies_is_told() -> None:
    with Verifier() as verifier:
        verifier._process.kill()
        with pytest.raises(LabError, match="ended with exit code -9"):
            verifier.ask(WeightsJob("pt", "nothing.pt"))
    assert not verifier.folder.exists()
