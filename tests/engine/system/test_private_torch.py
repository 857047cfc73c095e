"""What this program needs of torch's private names. A test that fails here on another torch says
which name broke; `grep` finds who uses it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from engine.system import private_torch as private

ROOT = Path(__file__).parents[3]


class Seen(TorchFunctionMode):
    """The functions that torch ran under the mode."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[object] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


class SeenOperators(private.TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operators: list[Any] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators.append(func)
        return func(*args, **(kwargs or {}))


# -- the stacks of modes


def test_a_mode_is_taken_off_and_put_back():
    assert private.len_torch_function_stack() == 0
    with Seen() as below, Seen() as mode:
        assert private.len_torch_function_stack() == 2
        assert private.get_function_stack_at(0) is below
        assert private.pop_torch_function_stack() is mode
        torch.ones(1).exp()
        private.push_on_torch_function_stack(mode)
        torch.ones(1).sin()
    assert Tensor.exp in below.functions and Tensor.exp not in mode.functions
    assert Tensor.sin in mode.functions


def test_a_mode_of_operators_is_counted_and_turned_off():
    assert private.len_torch_dispatch_stack() == 0
    with SeenOperators() as mode:
        assert private.len_torch_dispatch_stack() == 1
        torch.ones(1).exp()
        with private.disable_current_modes():
            assert private.len_torch_dispatch_stack() == 0
            torch.ones(1).sin()
    assert [str(each) for each in mode.operators] == ["aten.ones.default", "aten.exp.default"]


def test_a_mode_of_operators_says_whether_torch_imports_its_compiler():
    """`_should_skip_dynamo` is the method that torch asks, and True its answer without ours."""
    assert private.TorchDispatchMode._should_skip_dynamo() is True


# -- torch.func


def test_a_stand_in_of_a_transform_is_told_from_a_tensor():
    found: list[object] = []

    def function(x: Tensor) -> Tensor:
        found.append(private.is_functorch_wrapped_tensor(x))
        found.append(private.peek_interpreter_stack() is not None)
        return x * 2

    torch.vmap(function)(torch.ones(2))
    torch.func.grad(function)(torch.ones(()))
    assert found == [True] * 4
    assert not private.is_functorch_wrapped_tensor(torch.ones(2))
    assert private.peek_interpreter_stack() is None


# -- the engine of autograd


def test_each_backward_has_an_id_and_an_order():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    found: list[Any] = []

    def ask(*_: object) -> None:
        found.append(private.current_graph_task_id())
        found.append(private.current_graph_task_execution_order())

    assert private.current_graph_task_id() == -1
    root = y.sum()
    root.grad_fn.register_prehook(ask)
    with torch.autograd.set_multithreading_enabled(False):
        root.backward()
    assert found[0] >= 0
    assert [node.name() for node in found[1]] == [
        "SumBackward0",
        "MulBackward0",
        "torch::autograd::AccumulateGrad",
    ]
    assert private.current_graph_task_id() == -1


def test_a_backward_inside_another_has_an_id_of_its_own():
    found: list[int] = []

    def function(x: Tensor) -> Tensor:
        y = x.sin()
        if y.requires_grad:  # when it runs again
            y.register_hook(lambda _: found.append(private.current_graph_task_id()))
        return y

    y = checkpoint(function, torch.ones(2, requires_grad=True), use_reentrant=True)
    y.register_hook(lambda _: found.append(private.current_graph_task_id()))
    y.sum().backward()
    outer, inner = found
    assert outer != inner != -1


def test_the_node_that_runs_is_told():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()

    class Nodes(private.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found.append(private.current_autograd_node())
            return func(*args, **(kwargs or {}))

    found: list[Any] = []
    with Nodes():
        x.cos()
        y.backward(torch.ones(2))
    assert found[0] is None
    assert y.grad_fn._sequence_nr() in [node._sequence_nr() for node in found if node is not None]


def test_nodes_are_counted_in_the_order_of_the_forward():
    x = torch.ones(2, requires_grad=True)
    first = private.next_sequence()
    y = x * 2
    z = y.sum()
    assert [y.grad_fn._sequence_nr(), z.grad_fn._sequence_nr()] == [first, first + 1]
    assert private.next_sequence() == first + 2


def test_a_tensor_written_to_counts_as_unchanged():
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * weight).sum()
    with private.unsafe_preserve_version_counter((weight,)), torch.no_grad():
        weight.mul_(1)
    loss.backward()
    assert weight.grad.tolist() == [2, 2]


# -- one operation on many tensors


def test_norms_and_differences_of_many():
    tensors = [torch.tensor([3.0, 4.0]), torch.ones(2, 2)]
    assert [float(norm) for norm in private.foreach_norm(tensors)] == [5, 2]
    moved = private.foreach_sub(tensors, [torch.ones(2), torch.ones(2, 2)])
    assert [each.tolist() for each in moved] == [[2, 3], [[0, 0], [0, 0]]]


# -- operators


def test_what_torch_ops_holds():
    assert isinstance(torch.ops.aten.add, private.OpOverloadPacket)
    assert isinstance(torch.ops.aten.add.Tensor, private.OpOverload)
    names = [each.name for each in torch.ops.aten.add.Tensor._schema.arguments]
    assert names == ["self", "other", "alpha"]
    assert torch.ops.aten.add.Tensor._overloadpacket is torch.ops.aten.add


def test_a_negated_view():
    t = torch.ones(2)
    view = private.neg_view(t)
    assert view.is_neg() and view.data_ptr() == t.data_ptr() and view.tolist() == [-1, -1]


def test_each_step_of_an_optimizer_begins_with_a_label():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    with Seen() as mode:
        optimizer.step()
    assert private.record_function_enter_new in mode.functions


# -- the profiler


def test_the_profiler_is_seen():
    assert not private.is_profiler_enabled() and not private.profiler_enabled()
    with torch.profiler.profile():
        assert private.is_profiler_enabled() and private.profiler_enabled()
    assert not private.is_profiler_enabled() and not private.profiler_enabled()


# -- modules


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        (private.DropoutNd, {"Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout"}),
        (private.BatchNorm, {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"}),
        (private.NormBase, {"BatchNorm1d", "InstanceNorm2d", "SyncBatchNorm"}),
    ],
)
def test_the_class_that_modules_have_in_common(kind: type, others: set[str]):
    assert all(issubclass(getattr(nn, name), kind) for name in others)
    assert not issubclass(nn.Linear, kind) and not issubclass(nn.LayerNorm, kind)


def test_the_call_of_a_module_is_torchs():
    assert nn.Module.__call__ is private.wrapped_call_impl
    module = nn.Linear(1, 1)
    assert module._compiled_call_impl is None  # what `_wrapped_call_impl` asks for
    x = torch.ones(1, 1)
    result: Any = module._call_impl(x)
    assert torch.equal(result, module(x))


@pytest.mark.parametrize(
    ("register", "hooks"),
    [
        (register_module_forward_pre_hook, private.global_forward_pre_hooks),
        (register_module_forward_hook, private.global_forward_hooks),
        (
            register_module_full_backward_pre_hook,
            private.global_backward_pre_hooks,
        ),
        (register_module_full_backward_hook, private.global_backward_hooks),
        (
            register_optimizer_step_pre_hook,
            private.global_optimizer_pre_hooks,
        ),
        (
            register_optimizer_step_post_hook,
            private.global_optimizer_post_hooks,
        ),
    ],
)
def test_hooks_on_all_modules_and_optimizers(register, hooks):
    before = len(hooks)
    handle = register(print)
    assert len(hooks) == before + 1 and print in hooks.values()
    handle.remove()
    assert len(hooks) == before


# -- torch.compile


COMPILED = """
import torch
from engine.system import private_torch as private

ran = []
def own(x):
    ran.append(torch.compiler.is_compiling())
    return x + 1

own._torchdynamo_disable = True
actions = private.FrameAction
private.set_code_exec_strategy(
    own.__code__, private.FrameExecStrategy(actions.SKIP, actions.SKIP))
print("before", private.is_dynamo_imported(), dict(private.cached_backends()))

def function(x):
    return own(x.sin()).cos()

x = torch.ones(2)
compiled = torch.compile(function, backend="eager")
print("result", torch.equal(compiled(x), function(x)))
print("own function compiled", any(ran))
backends = private.cached_backends().values()
print("after", private.is_dynamo_imported(), any(each is not None for each in backends))
counters = private.dynamo_counters()
print("graphs", counters["stats"]["unique_graphs"])
print("breaks", sum(counters["graph_break"].values()) > 0)
with private.dynamo_config().patch(fail_on_recompile_limit_hit=True, recompile_limit=1):
    twice = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    twice(torch.ones(2))
    try:
        twice(torch.ones(3))
    except Exception as error:
        print(type(error).__name__, type(error).__module__.startswith(private.COMPILERS))
"""


def test_the_compiler_is_kept_out_of_our_functions_and_tells_what_it_did():
    """In a Python of its own: torch imports its compiler for good."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "before False {}",
        "result True",
        "own function compiled False",
        "after True True",
        "graphs 2",
        "breaks True",
        "FailOnRecompileLimitHit True",
    ]


def test_an_error_of_the_backend_is_known_as_one_of_the_compiler():
    from torch._inductor import exc

    assert exc.InvalidCxxCompiler.__module__.startswith(private.COMPILERS)


# -- fake mode


def test_fake_mode_has_layouts_without_numbers():
    with private.FakeTensorMode():
        t = torch.ones(2, 3) @ torch.ones(3, 4)
    assert t.shape == (2, 4) and type(t).__module__.startswith(private.FAKE_TENSORS)


def test_an_operation_that_fake_mode_does_not_know_is_told_by_its_error():
    with private.FakeTensorMode(), pytest.raises(Exception) as raised:
        torch.ones(2).nonzero()
    assert type(raised.value).__module__.startswith(private.FAKE_TENSORS)


# -- trees


def test_the_tensors_in_lists_and_dicts():
    tree = {"a": [1, torch.ones(1)], "b": (torch.zeros(1),)}
    assert len(private.tree_leaves(tree)) == 3
    assert private.tree_map(type, tree) == {"a": [int, Tensor], "b": (Tensor,)}
    made = private.tree_map_only(Tensor, float, tree)
    assert made == {"a": [1, 1.0], "b": (0.0,)}


# -- files


def test_what_torch_allows_in_a_pickle():
    allowed = private.get_allowed_globals()
    assert allowed["torch._utils._rebuild_tensor_v2"] is torch._utils._rebuild_tensor_v2
    assert allowed["collections.OrderedDict"] and "builtins.eval" not in allowed


def test_the_functions_that_torch_has_for_sizes():
    assert {"FloorDiv", "ModularIndexing", "CleanDiv", "Mod"} <= set(private.functions_of_sizes())


# -- devices


def test_the_default_device_that_was_set():
    assert private.default_device() is None
    with torch.device("meta"):
        assert private.default_device() is None
    try:
        torch.set_default_device("cpu")
        assert private.default_device() == torch.device("cpu")
    finally:
        torch.set_default_device(None)
    assert private.default_device() is None


def test_mps_has_a_generator():
    if torch.backends.mps.is_available():
        assert private.default_mps_generator().device.type == "mps"
    else:
        assert callable(torch.mps._get_default_mps_generator)


# -- attributes of torch's objects


def leaf(*shape: int) -> Tensor:
    return torch.ones(*shape, requires_grad=True)


def with_hook() -> Tensor:
    t = leaf(2)
    t.register_hook(lambda gradient: None)
    t.register_post_accumulate_grad_hook(lambda t: None)
    return t


def written() -> Tensor:
    return torch.ones(2).add_(1)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, *gradients):
        return gradients[0] * 2


def is_own_storage(t: Tensor) -> bool:
    view, other = t[1:], torch.ones(2)
    return (
        view.untyped_storage()._cdata == t.untyped_storage()._cdata
        and other.untyped_storage()._cdata != t.untyped_storage()._cdata
    )


def sparse() -> Tensor:
    return torch.tensor([0.0, 3.0]).to_sparse()


def scheduler() -> Any:
    optimizer = torch.optim.SGD([leaf(2)], lr=1.0)
    optimizer._opt_called = True  # else `step` below would warn, and the tests fail on it
    made = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    made.step()
    return made


def has_hooks(add: str, attribute: str) -> bool:
    module = nn.Linear(1, 1)
    before = len(getattr(module, attribute))
    getattr(module, add)(lambda *_: None)
    return (before, len(getattr(module, attribute))) == (0, 1)


def has_steps_hooks(add: str, attribute: str) -> bool:
    optimizer = torch.optim.SGD([leaf(1)])
    getattr(optimizer, add)(lambda *_: None)
    return len(getattr(optimizer, attribute)) == 1


def loader_keeps_workers() -> bool:
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(torch.ones(1)))._iterator is None


def has_writer() -> bool:
    from torch.utils.tensorboard import SummaryWriter

    return callable(SummaryWriter._get_file_writer)


ATTRIBUTES: dict[str, Callable[[], object]] = {
    "_version": lambda: (torch.ones(2)._version, written()._version) == (0, 1),
    "_base": lambda: (t := torch.ones(2))[1:]._base is t and t._base is None,
    "_is_view": lambda: torch.ones(2)[1:]._is_view() and not torch.ones(2)._is_view(),
    "_cdata": lambda: is_own_storage(torch.ones(2)),
    "_backward_hooks": lambda: leaf(2)._backward_hooks is None and with_hook()._backward_hooks,
    "_post_accumulate_grad_hooks": lambda: len(with_hook()._post_accumulate_grad_hooks) == 1,
    "_indices": lambda: sparse()._indices().tolist() == [[1]],
    "_values": lambda: sparse()._values().tolist() == [3.0],
    "_sequence_nr": lambda: leaf(2).exp().grad_fn._sequence_nr() >= 0,
    "_input_metadata": lambda: leaf(2).exp().grad_fn._input_metadata[0].shape == [2],
    "_forward_cls": lambda: type(Doubled.apply(leaf(2)).grad_fn)._forward_cls is Doubled,
    "_saved_dim": lambda: leaf(2, 3).log_softmax(1).grad_fn._saved_dim == 1,
    "_schema": lambda: torch.ops.aten.exp.default._schema.name == "aten::exp",
    "_overloadpacket": lambda: torch.ops.aten.exp.default._overloadpacket is torch.ops.aten.exp,
    "_modules": lambda: list(nn.Sequential(nn.ReLU())._modules) == ["0"],
    "_parameters": lambda: list(nn.Linear(1, 1)._parameters) == ["weight", "bias"],
    "_buffers": lambda: "running_mean" in nn.BatchNorm1d(1)._buffers,
    "_forward_hooks": lambda: has_hooks("register_forward_hook", "_forward_hooks"),
    "_forward_pre_hooks": lambda: has_hooks("register_forward_pre_hook", "_forward_pre_hooks"),
    "_backward_pre_hooks": lambda: has_hooks(
        "register_full_backward_pre_hook", "_backward_pre_hooks"
    ),
    "_metadata": lambda: nn.BatchNorm1d(1).state_dict()._metadata[""]["version"] == 2,
    "_call_impl": lambda: nn.ReLU()._call_impl(torch.ones(1)) == 1,
    "_compiled_call_impl": lambda: nn.ReLU()._compiled_call_impl is None,
    "_torchdynamo_disable": lambda: torch.compiler.disable(lambda: 0)._torchdynamo_disable,
    "_optimizer_step_pre_hooks": lambda: has_steps_hooks(
        "register_step_pre_hook", "_optimizer_step_pre_hooks"
    ),
    "_optimizer_step_post_hooks": lambda: has_steps_hooks(
        "register_step_post_hook", "_optimizer_step_post_hooks"
    ),
    "_opt_called": lambda: scheduler().optimizer._opt_called,
    "_step_count": lambda: scheduler()._step_count == 2,
    "_schedulers": lambda: torch.optim.lr_scheduler.ChainedScheduler([scheduler()])._schedulers,
    "_iterator": loader_keeps_workers,
    "_get_file_writer": has_writer,
}
"""Private attributes of torch's objects, which cannot be bound in one file, each with what is
needed of it. `tests/house/test_private_names.py` asks for an entry for each."""


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_attributes_of_torchs_objects(name: str):
    assert ATTRIBUTES[name]()


def test_what_a_node_saves_is_found_by_the_names_of_its_attributes():
    t = leaf(2)
    node = (t * t).grad_fn
    raw = sorted(name for name in dir(type(node)) if name.startswith("_raw_saved_"))
    assert raw == ["_raw_saved_other", "_raw_saved_self"]
    assert node._saved_self is t
