"""How torch runs a step: deterministic, compiled, with activations that are computed again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import ParamValue, TrainingSetup, replace
from engine.protocol import StepMemorySnapshot
from widgets import make
from widgets.forms import ParamForm
from widgets.module_list import ModuleList
from widgets.text import format_bytes
from widgets.theme import GRID
from widgets.training.settings.choices import set_text

_DEFAULT = TrainingSetup()
_SWITCHES = (
    Param(
        "deterministic",
        "bool",
        _DEFAULT.deterministic,
        doc="Only algorithms that give the same bits each time"
        " (torch.use_deterministic_algorithms). An operation that has none ends the run and is"
        " named. Some take longer; most matter on a GPU only.",
    ),
    Param(
        "compile",
        "bool",
        _DEFAULT.compile,
        doc="torch.compile makes fast code of the model. It needs a C++ compiler; the first step"
        " takes seconds to minutes. The numbers differ in their last digits. Watched modules and"
        " watchpoints inside the model see nothing.",
    ),
)


class ExecutionForm(QWidget):
    """Shows `deterministic`, `compile` and `recomputed` of a `TrainingSetup`. Each edit emits the
    whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""
    measure_asked = Signal()
    """The reader wants to know the memory of a step."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        self._form = make.named(ParamForm(), "setup_execution_form")
        self._form.value_edited.connect(self._edit)
        self._modules = ModuleList(
            "setup_recomputed",
            self._row,
            title="activation checkpointing",
            field="Module to compute again",
            tip="Path of a module, as in named_modules(). It keeps only its inputs for the backward"
            " pass, and computes the rest again in it (torch.utils.checkpoint): less memory, more"
            " time, the same gradients. Enter adds it.",
            example="encoder1",
            add_tip="Add: compute this module's activations again",
        )
        self._modules.added.connect(self._add)
        measure = make.button(
            "setup_measure_step",
            "Measure memory",
            slot=self.measure_asked.emit,
            tip="Run one batch forward and backward, without and with computing again, and show the"
            " bytes of its tensors. The model stays as it is.",
        )
        self._memory = make.label("", "muted", "setup_step_memory", wrap=True)
        self._memory.hide()
        make.column(
            self._form,
            self._modules,
            make.row(measure, make.STRETCH),
            self._memory,
            on=self,
            gap=GRID // 2,
            margins=0,
        )

    def offer_modules(self, names: Sequence[str]) -> None:
        """The paths that the field completes."""
        self._modules.offer(names)

    def show_setup(self, setup: TrainingSetup) -> None:
        if setup.recomputed != self._setup.recomputed:
            make.tell(self._memory, "")  # it was about other modules
        self._setup = setup
        values = {param.name: getattr(setup, param.name) for param in _SWITCHES}
        self._form.show_params(_SWITCHES, values)
        self._modules.show_modules(setup.recomputed)

    def show_memory(self, found: StepMemorySnapshot) -> None:
        without, forecast, now = found.without, found.predicted, found.measured
        text = (
            f"Peak of a batch of {found.samples:,}: {format_bytes(without.peak)}, of which"
            f" {format_bytes(without.kept)} are kept for backward."
        )
        if self._setup.recomputed:
            text += (
                f" With computing again: {format_bytes(now.peak)} (predicted"
                f" {format_bytes(forecast.peak)}), kept {format_bytes(now.kept)} (predicted"
                f" {format_bytes(forecast.kept)})."
            )
        self.show_words(text)

    def show_words(self, text: str, role: str = "muted") -> None:
        """Show a text under the button; an error in the role "error"."""
        make.set_role(self._memory, role)
        make.tell(self._memory, text)

    def _row(self, path: str) -> QWidget:
        away = make.tool_button(
            f"setup_recomputed_{path}_remove",
            "mdi6.close",
            f"Remove: {path} keeps its activations",
            slot=partial(self._remove, path),
            ink="muted",
        )
        return make.page(make.row(make.label(path), make.STRETCH, away))

    def _add(self, path: str) -> None:
        self._emit((*self._setup.recomputed, path), f"Compute {path} again in backward")

    def _remove(self, path: str) -> None:
        rest = tuple(each for each in self._setup.recomputed if each != path)
        self._emit(rest, f"Keep the activations of {path}")

    def _emit(self, paths: tuple[str, ...], what: str) -> None:
        self.setup_edited.emit(replace(self._setup, recomputed=paths), what)

    def _edit(self, name: str, value: ParamValue) -> None:
        self.setup_edited.emit(replace(self._setup, **{name: value}), set_text(name, value))
