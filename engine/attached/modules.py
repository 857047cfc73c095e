"""The modules that the user's code runs while a window is about to look at its graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from ..console.namespace import Namespace
from ..loops.user_names import UserNames
from ..recording.compiled import own_path
from ..recording.module_recorder import ModuleRecorder
from ..system.control import Control


def parameter_names(watched: Mapping[str, Any], names: UserNames) -> dict[int, str]:
    """The names of parameters by their ids: in the modules that are watched, else in those that the
    user's code names."""
    of_watched = {
        id(parameter): own_path(path)
        for name, module in watched.items()
        if isinstance(module, nn.Module)
        for path, parameter in module.named_parameters(name)
    }
    return {**names.parameters(), **of_watched}


class SeenModules:
    """The nodes of graphs are told by the modules that made them, from the step on after the window
    has asked for a pause or for the backward passes of the code. `watched` gives the objects that
    the user has named for the lab."""

    def __init__(
        self,
        namespace: Namespace,
        control: Control,
        watched: Callable[[], Mapping[str, Any]],
        unless: Callable[[], bool],
    ) -> None:
        self._namespace, self._control, self._watched = namespace, control, watched
        self._recorder = ModuleRecorder(unless, self._name_of)
        self.are_wanted = False
        """Whether each step is to be recorded: the code has passes stepped by itself."""

    def begin_step(self, step: int) -> None:
        """Step number `step` begins: forget what ran in the one before."""
        control, recordings = self._control, self._namespace.recordings
        if self.are_wanted or control.steps_backward or control.pauses_by(step):
            self._recorder.begin()
            recordings.running = self._recorder.recording
        elif recordings.running is not None:
            self.end()

    def end(self) -> None:
        self._recorder.end()
        self._namespace.recordings.running = None

    def _name_of(self, module: nn.Module) -> str:
        return next((n for n, thing in self._watched().items() if thing is module), "")
