"""Records which modules run, and nothing else: for code that is only looked at now and then."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from ..system.private_torch import cached_backends, next_sequence
from ..system.user_files import UsersFrames, is_user_file, variables_of
from .module_paths import ModulePaths
from .recording import Call, Recording

MAX_CALLS = 50_000


class ModuleRecorder:
    """`begin` and `end` are for the thread whose modules are recorded. `recording` has the calls of
    modules since the last `begin`: enough to tell in which module a node was made. Not recorded are
    calls while `unless()` returns True, those that torch compiles, and in a process that has called
    `torch.compile` all: it would compile again for the hooks. `name_of` names a module that no
    variable holds."""

    def __init__(
        self,
        unless: Callable[[], bool] = lambda: False,
        name_of: Callable[[nn.Module], str] = lambda module: "",
    ) -> None:
        self._unless, self._name_of = unless, name_of
        self._thread = 0
        self._frames = UsersFrames()
        self._hooks = ExitStack()
        self._is_hooked = False
        self._begin_recording()

    def begin(self) -> None:
        """Forget what was recorded, and record from now on."""
        self._begin_recording()
        if not self._is_hooked and not _has_compiled():
            self._is_hooked, self._thread = True, threading.get_ident()
            handles = (
                register_module_forward_pre_hook(self._enter),
                register_module_forward_hook(self._leave, always_call=True),
            )
            for handle in handles:
                self._hooks.callback(handle.remove)

    def end(self) -> None:
        """Record no more."""
        self._hooks.close()
        self._is_hooked = False

    def _begin_recording(self) -> None:
        self.recording = Recording()
        self.recording.end = sys.maxsize
        self._paths = ModulePaths(self._name, self.recording.classes, self._frames.innermost)
        self._open: list[tuple[nn.Module, Call]] = []

    def _is_seen(self) -> bool:
        return (
            threading.get_ident() == self._thread
            and not torch.compiler.is_compiling()
            and not self._unless()
        )

    def _enter(self, module: nn.Module, args: Any) -> None:
        recording = self.recording
        if not self._is_seen() or len(recording) >= MAX_CALLS:
            return
        self._paths.enter(module)
        parent = self._open[-1][1].index if self._open else -1
        first, path, place = next_sequence(), self._paths.current, self._frames.place()
        name = type(module).__name__
        call = Call(len(recording), parent, "module", name, path, place, first, sys.maxsize)
        recording.add(call)
        self._open.append((module, call))

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        if not self._is_seen() or all(other is not module for other, _ in self._open):
            return
        self._paths.leave(module)
        ended = next_sequence()
        while self._open:  # also those inside that an exception ended
            other, call = self._open.pop()
            call.end = ended
            if other is module:
                break

    def _name(self, module: nn.Module) -> str:
        """The name that the outermost code of the user's has for it: that is where backward runs,
        most often."""
        found, frame = "", self._frames.innermost()
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                found = _variable(frame, module) or found
            frame = frame.f_back
        return found or self._name_of(module)


def _variable(frame: FrameType, module: nn.Module) -> str:
    variables = variables_of(frame)
    return next((n for n, v in variables.items() if v is module and n != "self"), "")


def _has_compiled() -> bool:
    return any(backend is not None for backend in cached_backends().values())
