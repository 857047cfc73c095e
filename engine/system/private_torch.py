"""Every private name of torch that this program uses, once, under torch's own word without the
underscore. No other file names one (`tests/house/test_private_names.py`), and
`tests/engine/system/test_private_torch.py` says what each is to do. Each group: what it is for, and
why no public name does.

A name is bound here to torch's own object, so that a call costs no frame more. What torch replaces
is read when it is asked for; what takes long to import is imported by a function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch._C._dynamo import eval_frame
from torch._C._functorch import is_functorch_wrapped_tensor as is_functorch_wrapped_tensor
from torch._C._functorch import peek_interpreter_stack as _peek_interpreter_stack
from torch._ops import OpOverload as OpOverload
from torch._ops import OpOverloadPacket as OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from torch._weights_only_unpickler import _get_allowed_globals
from torch.autograd import profiler
from torch.nn.modules import batchnorm, dropout
from torch.nn.modules import module as _module
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves as tree_leaves
from torch.utils._pytree import tree_map as tree_map
from torch.utils._pytree import tree_map_only as tree_map_only

if TYPE_CHECKING:
    from collections import Counter
    from contextlib import AbstractContextManager

    from torch.overrides import TorchFunctionMode

# -- the stacks of modes: to take a mode off for a while and put it back, and to work unseen by the
# user's. (`with mode:` only puts one on; `torch.overrides` has no public way to ask or to take off;
# TorchDispatchMode, though documented, has this name only.)

len_torch_function_stack: Callable[[], int] = torch._C._len_torch_function_stack
push_on_torch_function_stack: Callable[[TorchFunctionMode], None] = (
    torch._C._push_on_torch_function_stack
)
pop_torch_function_stack: Callable[[], TorchFunctionMode] = torch._C._pop_torch_function_stack
get_function_stack_at: Callable[[int], TorchFunctionMode] = torch._C._get_function_stack_at
len_torch_dispatch_stack: Callable[[], int] = torch._C._len_torch_dispatch_stack
disable_current_modes: Callable[[], AbstractContextManager[Any]] = _disable_current_modes

# -- torch.func: whether a tensor is a stand-in of vmap or grad, without numbers of its own, and
# whether such a transform runs. (`torch.func` does not tell.)

peek_interpreter_stack: Callable[[], object] = _peek_interpreter_stack

# -- the engine of autograd: which backward runs, in which order, for which node. (A public `Node`
# tells only of itself.)

current_graph_task_id: Callable[[], int] = torch._C._current_graph_task_id
"""Of the backward that runs in this thread; -1 where none does."""
current_graph_task_execution_order: Callable[[], list[Any]] = (
    torch._C._current_graph_task_execution_order  # pyright: ignore[reportAttributeAccessIssue]
)
current_autograd_node: Callable[[], Any] = torch._C._current_autograd_node
next_sequence: Callable[[], int] = torch.autograd._get_sequence_nr  # pyright: ignore[reportAttributeAccessIssue]
"""The number that the next node of this thread's graphs gets."""
unsafe_preserve_version_counter: Callable[[tuple[Tensor, ...]], AbstractContextManager[None]] = (
    torch.autograd._unsafe_preserve_version_counter
)

# -- one operation on many tensors. (`torch.nn.utils.get_total_norm` gives the norm of all together
# only, and in twice the time.)

foreach_norm = torch._foreach_norm
foreach_sub = torch._foreach_sub

# -- operators: what `torch.ops` holds, a view whose numbers are negated (`Tensor.is_neg` asks for
# it, nothing public makes it), and the label that each step of an optimizer begins with. (The
# classes are public only as the types of `torch.ops.aten.add` and `torch.ops.aten.add.Tensor`.)

neg_view: Callable[[Tensor], Tensor] = torch._neg_view
record_function_enter_new: Callable[..., Any] = torch.ops.profiler._record_function_enter_new

# -- the profiler: whether anybody wants to know of labels. (Nothing public tells.)

profiler_enabled: Callable[[], bool] = torch.autograd._profiler_enabled  # pyright: ignore[reportAttributeAccessIssue]
"""In this thread."""
is_profiler_enabled: Callable[[], bool] = partial(attrgetter("_is_profiler_enabled"), profiler)
"""In any thread: torch sets the flag anew each time."""

# -- modules: the class that all norms, all BatchNorms or all dropouts have in common, those that
# users derive from it too; torch's own call; hooks on all modules and optimizers. (Public are only
# each class, and the functions that add a hook.)

NormBase = batchnorm._NormBase
BatchNorm = batchnorm._BatchNorm
DropoutNd = dropout._DropoutNd
wrapped_call_impl: Callable[..., Any] = nn.Module._wrapped_call_impl
global_forward_pre_hooks: Mapping[int, Callable] = _module._global_forward_pre_hooks
global_forward_hooks: Mapping[int, Callable] = _module._global_forward_hooks
global_backward_pre_hooks: Mapping[int, Callable] = _module._global_backward_pre_hooks
global_backward_hooks: Mapping[int, Callable] = _module._global_backward_hooks
global_optimizer_pre_hooks: Mapping[int, Callable] = _global_optimizer_pre_hooks
global_optimizer_post_hooks: Mapping[int, Callable] = _global_optimizer_post_hooks

# -- torch.compile: to keep it out of our functions without a frame around each (which
# `torch.compiler.disable` adds), to hear of what it compiled, and to know its errors.

FrameAction = eval_frame._FrameAction
FrameExecStrategy = eval_frame._FrameExecStrategy
set_code_exec_strategy = eval_frame.set_code_exec_strategy
COMPILERS = ("torch._dynamo", "torch._inductor")
"""The modules that its errors come from."""
FAKE_TENSORS = "torch._subclasses"
"""The modules that the errors of fake mode come from."""


def is_dynamo_imported() -> bool:
    """Whether anything can be compiled yet: `torch.compile` imports the compiler, for seconds."""
    return "torch._dynamo" in sys.modules


def cached_backends() -> Mapping[int, Any]:
    """What compiles, once anything was compiled."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "cached_backends", {})


def dynamo_config() -> Any:
    """The options of the compiler; imports it."""
    from torch._dynamo import config

    return config


def dynamo_counters() -> Mapping[str, Counter[str]]:
    """What the compiler has counted in this process; imports it."""
    from torch._dynamo.utils import counters

    return counters


# -- files: what torch would take from a pickle with `weights_only=True`
# (`torch.serialization.get_safe_globals` has only what was added), and the functions of sizes that
# a program of torch.export may hold.

get_allowed_globals: Callable[[], dict[str, Any]] = _get_allowed_globals


def functions_of_sizes() -> tuple[str, ...]:
    """Their names; imports sympy."""
    from torch.utils._sympy import functions

    return tuple(functions.__all__)


# -- devices


def default_device() -> torch.device | None:
    """The device that `torch.set_default_device` has set in this thread; None without.
    (`torch.get_default_device` does not tell the CPU from none, and one that is set slows every
    function of torch down.)"""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def default_mps_generator() -> torch.Generator:
    """As `torch.default_generator` and `torch.cuda.default_generators`; for MPS there is no public
    name."""
    return torch.mps._get_default_mps_generator()
