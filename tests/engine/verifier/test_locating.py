"""Programs run in this process: the first module that differs, and how far each case is apart."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from engine.verifier import program as verifier
from engine.verifier.jobs import LocateJob, ProgramJob
from engine.verifier.locating import locate
from engine.verifier.programs import OnnxProgram
from engine.verifier.values import Case, ModuleCall, leaves, write

pytestmark = pytest.mark.filterwarnings(  # of torch's own, which the verifier's process ignores
    "ignore:`torch.jit:DeprecationWarning", "ignore:.*LeafSpec:FutureWarning"
)
X = torch.arange(6.0).view(2, 3) - 2


class Net(nn.Module):
    """`body` runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.head = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.body(x) * 2))


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return Net()


def calls_of(net: nn.Module, *args: Tensor) -> list[ModuleCall]:
    """The calls in the order in which they end."""
    calls: list[ModuleCall] = []
    hooks = [
        module.register_forward_hook(
            lambda module, given, output, path=path: calls.append(
                ModuleCall(
                    path, sum(each.path == path for each in calls), given, {}, leaves(output)
                )
            )
        )
        for path, module in net.named_modules()
    ]
    with torch.no_grad():
        net(*args)
    for hook in hooks:
        hook.remove()
    return calls


def located(folder: Path, format: str, path: Path, calls: list[ModuleCall]) -> str | None:
    write(folder / "calls", calls)
    return locate(LocateJob(format, str(path), str(folder / "calls"))).path


def exported(net: nn.Module, path: Path) -> None:
    torch.export.save(torch.export.export(net.eval(), (X,)), path)


def scripted(net: nn.Module, path: Path) -> None:
    torch.jit.save(torch.jit.script(net.eval()), path)


@pytest.mark.parametrize(("format", "save"), [("pt2", exported), ("torchscript-script", scripted)])
def test_the_first_module_whose_output_differs(net, tmp_path: Path, format: str, save) -> None:
    calls = calls_of(net, X)
    assert [(each.path, each.number) for each in calls[:4]] == [
        ("body.0", 0), ("body.1", 0), ("body", 0), ("body.0", 1),
    ]  # fmt: skip
    save(net, tmp_path / "same")
    assert located(tmp_path, format, tmp_path / "same", calls) is None
    for path in ("head.bias", "body.0.bias"):
        changed = Net()
        changed.load_state_dict(net.state_dict())
        with torch.no_grad():
            changed.get_parameter(path).add_(0.5)
        save(changed, tmp_path / path)
        assert located(tmp_path, format, tmp_path / path, calls) == path.removesuffix(".bias")
    unknown = [calls[0], ModuleCall("gone", 0, (X,), {}, [X]), calls[-1]]
    assert located(tmp_path, format, tmp_path / "head.bias", unknown) == ""
    two = [*calls[:-2], ModuleCall("head", 0, calls[-2].args, {}, calls[-2].outputs * 2), calls[-1]]
    assert located(tmp_path, format, tmp_path / "same", two) == "head"


def test_a_later_call_of_a_module_is_compared_with_its_own(net, tmp_path: Path) -> None:
    exported(net, tmp_path / "net.pt2")
    calls = calls_of(net, X)
    (second,) = [each for each in calls if each.path == "body.1" and each.number == 1]
    second.outputs = [second.outputs[0] + 1]
    assert located(tmp_path, "pt2", tmp_path / "net.pt2", calls) == "body.1"
    second.number = 2  # there was no such call
    assert located(tmp_path, "pt2", tmp_path / "net.pt2", calls) is None


def test_a_module_that_cannot_be_called_alone_is_left_out(net, tmp_path: Path) -> None:
    scripted(net, tmp_path / "net")
    calls = calls_of(net, X)
    calls[0].args, calls[0].outputs = ("a text",), [X]
    calls[-1].outputs = [calls[-1].outputs[0] + 1]
    assert located(tmp_path, "torchscript-script", tmp_path / "net", calls) == ""


def graph_of(*nodes: tuple[str, list[str], str, str]) -> onnx.ModelProto:
    """A model of nodes: operator, inputs, output, and the modules that it came from."""
    made = []
    for op, inputs, output, scopes in nodes:
        node = helper.make_node(op, inputs, [output])
        if scopes:
            node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
        made.append(node)
    sizes = ["batch", 3]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
    outputs = [helper.make_tensor_value_info(nodes[-1][2], TensorProto.FLOAT, sizes)]
    graph = helper.make_graph(made, "net", inputs, outputs)
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def test_the_modules_of_onnx_are_compared_by_the_last_value_of_each(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(
        graph_of(
            ("Abs", ["x"], "a", "['', 'first', 'abs']"),
            ("Neg", ["a"], "b", "['', 'first', 'neg']"),
            ("Relu", ["b"], "c", "['', 'second', 'relu']"),
            ("Identity", ["c"], "y", ""),
        ),
        path,
    )
    a = X.abs()

    def calls(first: list[Tensor], second: Tensor, more: list[ModuleCall]) -> list[ModuleCall]:
        return [
            ModuleCall("first", 0, (X,), {}, first), *more,
            ModuleCall("second", 0, (-a,), {}, [second]),
            ModuleCall("", 0, (X,), {}, [second]),
        ]  # fmt: skip

    zero = torch.zeros_like(X)
    gone = ModuleCall("merged", 0, (X,), {}, [X])
    again = ModuleCall("first", 1, (X,), {}, [-a])
    for first, second, more, expected in (
        ([-a], zero, [], None), ([a], zero, [], "first"), ([-a], zero + 1, [], "second"),
        ([-a], zero + 1, [gone], "second"),
        ([a], zero, [again], None),  # of two calls, the file does not tell which is which
        ([a, a], zero, [], None),  # an output of several tensors
        ([a.view(3, 2)], zero, [], None),  # another value of the module's
    ):  # fmt: skip
        assert located(tmp_path, "onnx", path, calls(first, second, more)) == expected


def test_a_program_of_onnx_gives_the_values_inside_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(graph_of(("Abs", ["x"], "a", ""), ("Neg", ["a"], "y", "")), path)
    plain = OnnxProgram(str(path))
    assert plain.outputs == ["y"] and torch.equal(plain(X)[0], -X.abs())
    more = OnnxProgram(str(path), ("a", "y"))
    assert more.outputs == ["y", "a"]
    assert all(map(torch.equal, more(x=X), (-X.abs(), X.abs())))


def test_each_case_is_compared_and_the_last_one_is_timed(net, tmp_path: Path, monkeypatch) -> None:
    exported(net, tmp_path / "net.pt2")
    with torch.no_grad():
        y = net(X)
    cases = [
        Case(2, (X,), {}, [y + torch.tensor([[0.0], [0.5]])], [False]),
        Case(2, (X,), {}, [y + 0.25], [True]),  # random, and torch draws the same
        Case(3, (X[:1],), {}, [y], [False]),
        Case(2, (X,), {}, [y, y], [False, False]),
        Case(2, (X,), {}, [y], [False]),
    ]
    write(tmp_path / "cases", cases)
    called = []
    timed = verifier._timed
    monkeypatch.setattr(
        verifier, "_timed", lambda *given: called.append(given[1].outputs) or timed(*given)
    )
    told = verifier._run(ProgramJob("pt2", str(tmp_path / "net.pt2"), str(tmp_path / "cases")))
    apart, drawn, size, several, same = told.cases
    assert apart.max_abs_error == pytest.approx(0.5, rel=1e-5) and not apart.agrees
    share = 0.5 / (y[1] + 0.5).abs().item()
    assert apart.max_rel_error == pytest.approx(share, rel=1e-4)
    assert drawn.max_abs_error == pytest.approx(0.25, rel=1e-5) and not drawn.agrees
    assert size.batch_size == 3 and size.problem and not size.agrees
    assert several.problem == "ValueError: 1 outputs instead of 2"
    assert (same.batch_size, same.agrees, same.max_abs_error, same.problem) == (2, True, 0, "")
    assert told.seconds > 0 and len(called) == verifier.TIMED_CALLS


def test_a_case_agrees_only_if_all_its_outputs_do(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(
        "from torch import nn\n\nclass Model(nn.Module):\n"
        "    def forward(self, x):\n        return x, x * 2\n"
    )
    outputs = ([X + 1, X * 2], [X, X * 2 + 3], [X, X * 2])
    write(tmp_path / "cases", [Case(2, (X,), {}, each, [False, False]) for each in outputs])
    told = verifier._run(ProgramJob("py", str(path), str(tmp_path / "cases")))
    assert [(each.agrees, each.max_abs_error) for each in told.cases] == [
        (False, 1.0), (False, 3.0), (True, 0.0),
    ]  # fmt: skip


def test_random_outputs_of_onnx_are_compared_by_their_shapes(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(graph_of(("Abs", ["x"], "y", "")), path)
    expected = {"same": (X * 9, True), "other": (X[:1], True), "plain": (X * 9, False)}
    write(tmp_path / "cases", [Case(2, (X,), {}, [y], [drawn]) for y, drawn in expected.values()])
    told = verifier._run(ProgramJob("onnx", str(path), str(tmp_path / "cases")))
    assert [each.agrees for each in told.cases] == [True, False, False]
    assert [each.max_abs_error for each in told.cases] == [0, 0, (X * 9 - X.abs()).abs().max()]
