"""What a recorder tells of each node, against the graph that torch made, over many kinds."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd.graph.reading import Node, read_graph
from engine.recording.argument_values import Keeper, KeptTensor
from engine.recording.light.light_recorder import LightRecorder
from engine.recording.light.light_recording import LightRecording
from engine.recording.recorder import Recorder
from engine.recording.recording import Call, GradientCut, Recordings, find_recording
from tests.engine.autograd import backward_cases


def names_agree(call: Call, node: Node) -> bool:
    """`aten::nll_loss_forward` makes NllLossBackward0."""
    aten = call.name.removeprefix("aten::").split(".")[0]
    return aten.replace("_", "").startswith(node.op.replace("_", ""))


@pytest.mark.parametrize("name", backward_cases.CASES)
def test_every_node_has_its_operator(name: str) -> None:
    with Recorder() as recorder:
        roots, _ = backward_cases.CASES[name]()
    for node in read_graph(roots).nodes:
        if node.is_leaf:
            continue
        call = recorder.recording.call_of(node.sequence)
        assert call is not None, node
        if node.is_custom:
            assert call.kind == "function" and f"{call.name}Backward" == node.name
        elif node.name == "CopySlices" or (
            node.name == "AsStridedBackward0" and call.kind == "function"
        ):
            assert call.kind == "function"  # torch makes these after the operator in place
        else:
            assert call.kind == "op" and names_agree(call, node), (node, call)
        chain = recorder.recording.chain_of(node.sequence)
        assert chain[-1] is call and all(c.holds(node.sequence) for c in chain)
        assert call.place is not None and call.place[0].endswith("backward_cases.py")


@pytest.mark.parametrize("keep_values", [False, True])
@pytest.mark.parametrize("name", backward_cases.CASES)
def test_recording_changes_no_result_and_light_no_graph(name: str, keep_values: bool) -> None:
    plain, _ = backward_cases.CASES[name]()
    with (Recorder if keep_values else LightRecorder)():
        recorded, _ = backward_cases.CASES[name]()
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))
    if not keep_values:
        kinds = [[n.name for n in read_graph(roots).nodes] for roots in (plain, recorded)]
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", backward_cases.CASES)
def test_a_light_recording_has_the_function_of_every_node(name: str) -> None:
    with LightRecorder() as light:
        roots, _ = backward_cases.CASES[name]()
    for node in read_graph(roots).nodes:
        if not node.is_leaf:
            call = light.recording.call_of(node.sequence)
            assert call is not None and call.kind == "function"
            assert call.place is not None and call.place[0].endswith("backward_cases.py")
            assert call.args == () and call.result is None


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a, _ = self.attn(x, x, x)  # attention
        x = self.norm(x + a)  # joined
        for _ in range(2):
            x = x + self.mlp(x)  # turn
        return x * 2 if x.sum() > 1e9 else x.tanh()  # branch


def test_op_line_and_module_of_every_node_of_a_block() -> None:
    """The example of the notes: attention, a norm, and a loop of two turns."""
    block = Block()
    with Recorder(modules={block: "net"}) as recorder:
        y = block(torch.randn(2, 3, 8)).square().sum()  # root
    nodes = [n for n in read_graph(y).nodes if not n.is_leaf]
    assert len(nodes) >= 40
    turns: dict[str, list[int]] = {}
    lines = {
        "net.attn": "# attention",
        "net.norm": "# joined",
        "net.mlp.0": "# turn",
        "net.mlp.1": "# turn",
        "net.mlp.2": "# turn",
    }
    for node in nodes:
        call = recorder.recording.call_of(node.sequence)
        assert call is not None and call.kind == "op" and names_agree(call, node)
        assert call.source is not None and call.source.file == __file__
        if call.module in lines:
            assert call.source.text.endswith(lines[call.module])
        else:
            assert call.module in ("net", "")
        expected = {"TanhBackward0": "# branch", "PowBackward0": "# root", "SumBackward0": "# root"}
        if node.name in expected:
            assert call.source.text.endswith(expected[node.name])
        if node.name == "GeluBackward0":
            turns.setdefault(call.module, []).append(call.index)
    assert len(turns["net.mlp.1"]) == 2 and len(set(turns["net.mlp.1"])) == 2
    gelu = next(n for n in nodes if n.name == "GeluBackward0")
    chain = recorder.recording.chain_of(gelu.sequence)
    assert [c.kind for c in chain] == ["module", "module", "module", "function", "op"]
    assert [c.module for c in chain[:3]] == ["net", "net.mlp", "net.mlp.1"]
    assert recorder.recording.classes["net.mlp.1"] == "GELU"


def test_the_tree_holds_calls_in_the_order_they_ran() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    with Recorder() as recorder:
        net(torch.ones(1, 2))
    calls = recorder.recording.calls
    told = [(c.parent, c.kind, c.name, c.module) for c in calls]
    assert told == [
        (-1, "function", "ones", ""),
        (0, "op", "aten::ones", ""),
        (-1, "module", "Sequential", "Sequential"),
        (2, "module", "Linear", "Sequential.0"),
        (3, "function", "linear", "Sequential.0"),
        (4, "op", "aten::t", "Sequential.0"),
        (4, "op", "aten::addmm", "Sequential.0"),
        (2, "module", "ReLU", "Sequential.1"),
        (7, "function", "relu", "Sequential.1"),
        (8, "op", "aten::relu", "Sequential.1"),
        (8, "op", "aten::detach", "Sequential.1"),  # how its result is saved for backward
    ]
    assert [c.index for c in calls] == list(range(len(calls)))


def test_values_are_kept_as_they_were() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with Recorder() as recorder:
        y = x * 2
        part = y[1:]
        y.add_(10)
        part.mul_(0)
    by_name = {c.name: c for c in recorder.recording.calls if c.kind == "op"}
    multiplied, sliced = by_name["aten::mul.Tensor"], by_name["aten::slice.Tensor"]
    added, zeroed = by_name["aten::add_.Tensor"], by_name["aten::mul_.Tensor"]
    assert multiplied.result.tensor.tolist() == [2, 4, 6]
    assert sliced.result.tensor.tolist() == [4, 6]
    assert added.args[0].tensor.tolist() == [2, 4, 6] and added.args[1] == 10
    assert added.result.tensor.tolist() == [12, 14, 16]
    assert zeroed.args[0].tensor.tolist() == [14, 16]
    assert zeroed.result.tensor.tolist() == [0, 0] and y.tolist() == [12, 0, 0]
    assert added.writes and zeroed.writes and not multiplied.writes
    function = next(c for c in recorder.recording.calls if c.name == "add_")
    assert (function.args[0].version, function.result.version) == (0, 1)
    assert function.result.tensor.tolist() == [12, 14, 16]
    for call in recorder.recording.calls:
        for value in (*call.args, call.result):
            if isinstance(value, KeptTensor):
                assert value.tensor.grad_fn is None and not value.tensor.requires_grad


def test_the_same_tensor_is_kept_once() -> None:
    x = torch.ones(3)
    with Recorder() as recorder:
        x + x
        x.sin()
    calls = [c for c in recorder.recording.calls if c.kind == "op"]
    assert calls[0].args[0] is calls[0].args[1] is calls[1].args[0]


def test_writes_through_data_and_out_are_seen() -> None:
    x = torch.ones(2)
    with Recorder() as recorder:
        x.sin()
        x.data.zero_()
        x.sin()
        torch.add(x, 5, out=x)
        x.sin()
    sines = [c for c in recorder.recording.calls if c.name == "aten::sin"]
    assert [c.args[0].tensor.tolist() for c in sines] == [[1, 1], [0, 0], [5, 5]]


def test_what_is_too_much_is_left_out_and_said() -> None:
    with Recorder(keeper=Keeper(max_bytes=4_000)) as recorder:
        torch.ones(1000).sin().cos()
    ones, sin = (
        next(c for c in recorder.recording.calls if c.name == f"aten::{n}") for n in ("ones", "sin")
    )
    assert ones.result.tensor.sum() == 1000
    assert sin.result.tensor is None and "not kept" in sin.result.note
    assert sin.result.shape == (1000,) and sin.result.dtype == "float32"
    assert any("not kept" in note for note in recorder.recording.notes)
    with Recorder(max_calls=10) as short:
        for _ in range(20):
            torch.ones(1).sin()
    assert len(short.recording.calls) == 10
    assert short.recording.notes == ["Only the first 10 calls are recorded."]


def test_a_light_recording_keeps_first_and_last_turns_and_no_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    numbers: list[list[int]] = []
    with LightRecorder(max_calls=50) as recorder:
        y = (x + 1).exp()
        before = y.grad_fn._sequence_nr()
        for _ in range(500):
            y = y * 2
            numbers.append([y.grad_fn._sequence_nr()])
            y = y.sin()
            numbers[-1].append(y.grad_fn._sequence_nr())
            gone = weakref.ref(y)
    recording = recorder.recording
    assert len(recording) == len(recording.calls) <= 50 + 6
    assert recording.notes
    calls = [[recording.call_of(each) for each in turn] for turn in numbers]
    whole = [[c is not None and c.name for c in turn] == ["mul", "sin"] for turn in calls]
    kept = [turn for turn, is_whole in enumerate(whole) if is_whole]
    assert kept[:2] == [0, 1] and kept[2:] == list(range(500 - len(kept) + 2, 500))
    assert len(kept) >= 12
    ahead = recording.call_of(before)
    assert ahead is not None and ahead.name == "exp"
    y = None
    gc.collect()
    assert gone() is None


def test_an_error_ends_the_calls_that_it_passes() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(2, 3))
    with Recorder() as recorder:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            net(torch.ones(1, 2))
        torch.ones(3).sin()
    calls = recorder.recording.calls
    failed = [(c.name, c.module) for c in calls if c.error]
    assert failed == [
        ("Sequential", "Sequential"),
        ("Linear", "Sequential.1"),
        ("linear", "Sequential.1"),
        ("aten::addmm", "Sequential.1"),
    ]
    assert calls[-1].name == "aten::sin" and calls[-1].module == ""
    assert calls[calls[-1].parent].parent == -1


def test_custom_functions_are_recorded_and_torch_is_left_as_it_was() -> None:
    original = torch.autograd.Function.__dict__["apply"]
    x = torch.ones(3, requires_grad=True)
    with LightRecorder() as recorder:
        y, _ = backward_cases.Scaled.apply(x, 3.0, torch.ones(3))  # applied
    assert torch.autograd.Function.__dict__["apply"] is original
    call = recorder.recording.call_of(y.grad_fn._sequence_nr())
    assert call is not None and call.name == "Scaled"
    assert call.source is not None and call.source.text.endswith("# applied")
    assert torch.nn.modules.module._global_forward_hooks == {}
    assert torch.nn.modules.module._global_forward_pre_hooks == {}


@pytest.mark.parametrize("keep_values", [False, True])
def test_what_another_thread_runs_is_not_recorded(keep_values: bool) -> None:
    x = torch.ones(3, requires_grad=True)

    def work() -> None:
        backward_cases.Scaled.apply(nn.ReLU()(x), 3.0, torch.ones(3))

    thread = threading.Thread(target=work)
    with (Recorder if keep_values else LightRecorder)() as recorder:
        thread.start()
        thread.join()
        x.sin()
    assert {call.name.removeprefix("aten::") for call in recorder.recording.calls} == {"sin"}


def test_nodes_made_before_the_recording_belong_to_none_of_its_calls() -> None:
    """The backward of sign runs an operator that makes no node, outside of any torch function."""
    x = torch.ones(3, requires_grad=True)
    earlier, node, gradient = x.sin(), x.sign().grad_fn, torch.ones(3, requires_grad=True)
    assert earlier.grad_fn is not None and node is not None
    with Recorder() as recorder:
        node(gradient)
    assert [call.kind for call in recorder.recording.calls] == ["op"]
    assert recorder.recording.call_of(earlier.grad_fn._sequence_nr()) is None
    assert recorder.recording.call_of(node._sequence_nr()) is None


@pytest.mark.parametrize("keep_values", [False, True])
def test_why_an_argument_needs_no_gradient(keep_values: bool) -> None:
    w = nn.Parameter(torch.ones(3, 3), requires_grad=False)
    x, data = torch.ones(3, requires_grad=True), torch.ones(3)
    with (Recorder if keep_values else LightRecorder)() as recorder:
        cut = (x * 2).detach()  # cut here
        with torch.no_grad():
            still = x.sin()  # off here
        told = {
            "frozen": x * w,
            "detach": x * cut,
            "no_grad": x * (still + 1),
            "input": x * data,
            "integer": x * torch.tensor([1, 2, 3]),
        }
    for reason, y in told.items():
        call = recorder.recording.call_of(y.grad_fn._sequence_nr())
        assert call is not None and len(call.slots) == 2 and call.slots[0] is True
        stop = call.slots[1]
        assert isinstance(stop, GradientCut) and stop.reason == reason
    frozen = recorder.recording.call_of(told["frozen"].grad_fn._sequence_nr()).slots[1]
    assert frozen.tensor() is w
    lines = {"detach": "# cut here", "no_grad": "# off here"}
    for reason, text in lines.items():
        stop = recorder.recording.call_of(told[reason].grad_fn._sequence_nr()).slots[1]
        assert stop.place is not None
        file, line = stop.place
        source = linecache.getline(file, line).strip()
        assert source.endswith(text)


@pytest.mark.parametrize("keep_values", [False, True])
def test_why_an_argument_of_a_custom_function_needs_no_gradient(keep_values: bool) -> None:
    x = torch.ones(3, requires_grad=True)
    with (Recorder if keep_values else LightRecorder)() as recorder:
        y, _ = backward_cases.Scaled.apply(x, 3.0, torch.ones(3))
    call = recorder.recording.call_of(y.grad_fn._sequence_nr())
    assert call is not None and len(call.slots) == 2 and call.slots[0] is True
    assert isinstance(call.slots[1], GradientCut) and call.slots[1].reason == "input"


def test_recordings_are_found_by_number_and_the_oldest_go_first() -> None:
    kept = Recordings(max_calls=5)
    x = torch.ones(2, requires_grad=True)
    roots = []
    for _ in range(4):
        with LightRecorder() as recorder:
            roots.append(x.sin().cos())
        x.exp()  # between two recordings
        kept.add(recorder.recording)
    found = [find_recording(kept.kept, y.grad_fn._sequence_nr()) for y in roots]
    assert found[:2] == [None, None] and found[2:] == kept.kept
    assert find_recording(kept.kept, x.exp().grad_fn._sequence_nr()) is None


def test_cutting_a_recording_forgets_the_end() -> None:
    x = torch.ones(2, requires_grad=True)
    with Recorder() as recorder:
        first = x.sin()
        length = len(recorder.recording.calls)
        second = first.cos()
    recorder.recording.cut(length)
    assert recorder.recording.call_of(first.grad_fn._sequence_nr()) is not None
    assert recorder.recording.call_of(second.grad_fn._sequence_nr()) is None


def test_a_compiled_function_is_left_alone() -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return F.relu(x) * 2

    x = torch.ones(3, requires_grad=True)
    with LightRecorder() as recorder:
        y = doubled(x)
    assert torch.equal(y, torch.full((3,), 2.0))
    assert isinstance(recorder.recording, LightRecording)


DEEP = """
import resource, torch
from engine.system.control import Control
from engine.console.output import Output
from engine.console.namespace import Namespace
resource.setrlimit(resource.RLIMIT_STACK, (2**20, -1))
space = Namespace()
def run(source):
    error, _ = space.run(source, "<cell>", Output(lambda told: None), Control())
    assert error is None, error
run("x = torch.ones(2, requires_grad=True)\\ny = x\\nfor _ in range(20_000): y = y * 1.0")
call = space.recordings.kept[-1].calls[-1]
assert call.name == "mul" and call.place == ("<cell 1>", 3), call
run("del y")
run("z = x * 2")
print("freed")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the main thread's stack")
def test_a_deep_chain_of_a_cell_is_freed_without_a_crash() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEEP], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "freed"), done.stderr
