"""How torch shows the recorder what it runs: a mode for functions, one for operators, and what
stands in for `torch.autograd.Function.apply`, which no mode sees."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(Protocol):
    """The methods of the recorder that the modes call at the begin and the end of each call.

    The result of a `begin_` is an argument of the `end_` or `fail_` of the same call."""

    @property
    def quiet(self) -> bool: ...
    def begin_function(self, name: str | Callable, args: tuple, kwargs: dict[str, Any]) -> Any: ...
    def end_function(
        self, begun: Any, name: str | Callable, args: tuple, result: object
    ) -> None: ...
    def fail_function(self, begun: Any, error: BaseException) -> None: ...
    def begin_op(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any: ...
    def end_op(
        self, call: Any, func: Any, args: tuple, kwargs: dict[str, Any], result: object
    ) -> None: ...
    def fail_op(self, call: Any, error: BaseException) -> None: ...


class FunctionMode(TorchFunctionMode):
    """Shows the recorder every function of torch that Python calls."""

    def __init__(self, recorder: Calls) -> None:
        super().__init__()
        self._recorder = recorder

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


WATCHING = FunctionMode.__torch_function__.__code__
"""The code of the frame under which every function of torch runs in a cell: its locals are `func`,
`args` and `kwargs`."""


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
def custom_functions(recorder: Calls) -> Iterator[None]:
    """Show the recorder each `torch.autograd.Function`: torch calls no mode for these."""
    function = torch.autograd.Function
    original = function.__dict__["apply"]
    thread = threading.get_ident()

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or threading.get_ident() != thread:
            return original.__func__(cls, *args, **kwargs)
        begun = recorder.begin_function(cls.__name__, args, kwargs)
        try:
            result = original.__func__(cls, *args, **kwargs)
        except BaseException as error:
            recorder.fail_function(begun, error)
            raise
        recorder.end_function(begun, cls.__name__, args, result)
        return result

    function.apply = classmethod(apply)  # pyright: ignore
    try:
        yield
    finally:
        function.apply = original
