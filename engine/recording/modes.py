"""How torch shows a recorder what it runs: modes for functions and operators, and what stands in
for `torch.autograd.Function.apply`, which no mode sees, and for the call of a module."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MethodWrapperType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..system.private_torch import (
    TorchDispatchMode,
    len_torch_function_stack,
    next_sequence,
    record_function_enter_new,
)
from .compiled import only_calls_compiled
from .kernel_asserts import Check
from .tensor_arguments import given_tensors
from .writes import Given


class Functions(Protocol):
    """The methods of a recorder that are called at the begin and the end of each function.

    The result of a `begin_` is an argument of the `end_` or `fail_` of the same call."""

    def begin_function(self, name: str | Callable, args: tuple, kwargs: dict[str, Any]) -> Any: ...
    def end_function(
        self, begun: Any, name: str | Callable, args: tuple, result: object
    ) -> None: ...
    def fail_function(self, begun: Any, error: BaseException) -> None: ...


class Light(Functions, Protocol):
    """The methods of a light recorder."""

    def ran(self, func: Callable, args: tuple, given: Given, first: int, result: object) -> None:
        """`func(*args)` has run, as at the end of a function; `given` and `first` were read
        before."""


class Calls(Functions, Protocol):
    """The methods that are called for each operator too."""

    @property
    def quiet(self) -> bool: ...
    def begin_op(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any: ...
    def end_op(
        self, call: Any, func: Any, args: tuple, kwargs: dict[str, Any], result: object
    ) -> None: ...
    def fail_op(self, call: Any, error: BaseException) -> None: ...


Running = Sequence[nn.Module | None]
"""The modules that run, the outermost first; None is a scope."""
Tell = Callable[[Callable, tuple, dict[str, Any], Any, Running], None]
"""Is given a call that has returned: the function, its arguments, its result, and the modules that
run it."""
Told = Mapping[Callable, Tell]
"""The functions whose calls are told, and to what."""


class FunctionMode(TorchFunctionMode):
    """Shows the recorder every function of torch that Python calls."""

    def __init__(self, recorder: Calls) -> None:
        super().__init__()
        self._recorder = recorder

    @only_calls_compiled
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # leaves nothing of this in a compiled graph
            return func(*args, **kwargs)
        begun = self._recorder.begin_function(func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            self._recorder.fail_function(begun, error)
            raise
        self._recorder.end_function(begun, func, args, result)
        return result


class LightMode(TorchFunctionMode):
    """Shows a light recorder the functions of torch that Python calls, the properties only where
    they give a tensor. Those of `checks` are checked before they run."""

    def __init__(
        self, recorder: Light, told: Told, modules: Running, checks: Mapping[Callable, Check]
    ) -> None:
        super().__init__()
        self._recorder = recorder
        self._told = told
        self._modules = modules
        self._checks = checks

    @only_calls_compiled
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _NOTHING_TO_TELL or torch.compiler.is_dynamo_compiling():
            if func is Tensor.item and func in self._told:
                self._told[func](func, args, kwargs, None, self._modules)
            return func(*args, **kwargs)
        if self._checks and func in self._checks:
            self._checks[func](args, kwargs)
        recorder = self._recorder
        if type(func) is MethodWrapperType and func.__name__ == "__get__":
            first = next_sequence()
            result = func(*args)
            if isinstance(result, Tensor):
                with torch.DisableTorchFunction():
                    begun = recorder.begin_function(func, args, kwargs)._replace(first=first)
                    recorder.end_function(begun, func, args, result)
            return result
        if types in _PLAIN and not len_torch_function_stack():
            if not kwargs and func not in self._told:
                given = given_tensors(args, kwargs)
                first = next_sequence()
                result = func(*args)
                recorder.ran(func, args, given, first, result)
                return result
            begun = recorder.begin_function(func, args, kwargs)
            result = func(*args, **kwargs)
            recorder.end_function(begun, func, args, result)
            if func in self._told:
                self._told[func](func, args, kwargs, result, self._modules)
            return result
        with torch.DisableTorchFunction():  # another mode or class is not to see what we read
            begun = recorder.begin_function(func, args, kwargs)
        result = func(*args, **kwargs)
        with torch.DisableTorchFunction():
            recorder.end_function(begun, func, args, result)
            if func in self._told:
                self._told[func](func, args, kwargs, result, self._modules)
        return result


_PLAIN = frozenset({(), (Tensor,), (nn.Parameter,), (Tensor, nn.Parameter), (nn.Parameter, Tensor)})
"""Types of arguments that do nothing of their own when their attributes are read."""
_NOTHING_TO_TELL = frozenset(
    {
        record_function_enter_new,  # what each step of an optimizer begins with
        *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.stride, Tensor.is_contiguous),
        *(Tensor.is_floating_point, Tensor.is_complex, Tensor.item, Tensor.__len__),
    }
)
"""Functions that give no tensor and write to none. They are not recorded."""

WATCHING = frozenset(mode.__torch_function__.__code__ for mode in (FunctionMode, LightMode))
"""The codes of the frames under which every function of torch runs in a cell: their locals are
`func`, `args` and `kwargs`."""


class OperatorMode(TorchDispatchMode):
    """Shows the recorder every operator that torch runs."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch need not import its compiler (a second) to keep it out of here, for it
        never compiles while such a mode is on."""
        return False

    def __init__(self, recorder: Calls) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        recorder = self._recorder
        if recorder.quiet or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        call = recorder.begin_op(func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            recorder.fail_op(call, error)
            raise
        recorder.end_op(call, func, args, kwargs, result)
        return result


@contextmanager
def replaced(owner: type, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Have `make(original)` in place of an attribute of a class. If other code has replaced it as
    well by then, it is left alone."""
    original = owner.__dict__[name]
    ours = make(original)
    setattr(owner, name, ours)
    try:
        yield
    finally:
        if owner.__dict__.get(name) is ours:
            setattr(owner, name, original)


def custom_functions(
    recorder: Functions, unless: Callable[[], bool] = lambda: False
) -> AbstractContextManager[None]:
    """Show the recorder each `torch.autograd.Function`: torch calls no mode for these. Not shown is
    what runs while `unless` returns True."""
    thread = threading.get_ident()

    def make(original: Any) -> Any:
        @only_calls_compiled
        def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or threading.get_ident() != thread or unless():
                return original.__func__(cls, *args, **kwargs)
            with torch.DisableTorchFunction():
                begun = recorder.begin_function(cls.__name__, args, kwargs)
            try:
                result = original.__func__(cls, *args, **kwargs)
            except BaseException as error:
                recorder.fail_function(begun, error)
                raise
            with torch.DisableTorchFunction():
                recorder.end_function(begun, cls.__name__, args, result)
            return result

        return classmethod(apply)

    return replaced(torch.autograd.Function, "apply", make)
