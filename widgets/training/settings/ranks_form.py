"""The number of processes that train a run, and the command for several machines."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import ParamValue, TrainingSetup, replace
from engine.project.limits import MAX_PROCESSES
from engine.project.machines import HOST, torchrun_line
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import set_text

COPIED_MS = 1500
MAX_MACHINES = 999
_DEFAULT = TrainingSetup()
_PROCESSES = (
    Param(
        "processes",
        "int",
        _DEFAULT.processes,
        minimum=1,
        maximum=MAX_PROCESSES,
        doc="Processes of this machine that train together (ranks), by DistributedDataParallel."
        " Each takes its rows of every batch, on cuda with a GPU of its own, and gradients are"
        " averaged.",
    ),
)
_WORDS = (
    "The result is that of one process, to rounding. Dropout draws apart in each process, and"
    " BatchNorm takes the statistics of its own rows (torch's SyncBatchNorm, for CUDA, takes those"
    " of all). Watchpoints hold rank 0, and the others wait for it; where a number is not finite,"
    " nothing holds the run. The run does not go back to its steps. Ranks, beside the plots, shows"
    " what each process prints."
)


class RanksForm(QWidget):
    """Shows the number of processes of a `TrainingSetup`. It is folded while there is one, until
    the reader opens it. Each edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        self._arguments: tuple[str, ...] = ()
        self._form = make.named(ParamForm(), "setup_ranks_form")
        self._words = make.label("", "muted", "setup_ranks_words", wrap=True)
        title = make.label("several machines")
        self.machines = make.spin(
            "setup_machines",
            "Number of machines",
            "How many machines train together. The command below is given on each of them; torchrun"
            " lets them find one another.",
        )
        self.machines.setRange(2, MAX_MACHINES)
        title.setBuddy(self.machines)
        self.command = make.text("setup_machines_command", mono=9, wrap=True)
        self.command.setToolTip(
            "Give this on each machine, all of which have Tensor Lab and the same files."
            f" {HOST}: the address of one of them, and a port of it that the others can reach."
        )
        self.copy = make.tool_button(
            "setup_machines_copy",
            "mdi6.content-copy",
            "Copy the command for several machines to the clipboard.",
            self._copy,
            text="Copy",
            accessible="Copy the command for several machines",
        )
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(lambda: self.copy.setText("Copy"))
        row = make.row(title, self.machines, make.STRETCH, self.copy)
        body = make.page(self._form, self._words, row, self.command, gap=GRID // 2)
        self._more = make.fold(
            "setup_ranks",
            "Several processes or machines",
            "Train by several processes of this machine, or by several machines with torchrun.",
            body,
        )
        make.column(self._more, body, on=self, gap=GRID // 2)
        self._form.value_edited.connect(self._edit)
        self.machines.valueChanged.connect(self._show_command)
        self.show_setup(_DEFAULT)
        self.show_problem("Save the project first: the command names its file.")

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        values = {param.name: getattr(setup, param.name) for param in _PROCESSES}
        self._form.show_params(_PROCESSES, values)
        make.tell(self._words, _WORDS if setup.processes > 1 else "")
        if any(value != getattr(_DEFAULT, name) for name, value in values.items()):
            self._more.setChecked(True)
        self._show_command()

    def show_arguments(self, arguments: tuple[str, ...]) -> None:
        """Show the command with these arguments of `tensorlab train`."""
        self._arguments = arguments
        self._show_command()

    def show_problem(self, text: str) -> None:
        """Say why there is no command."""
        self._arguments = ()
        self._show_command()
        self.command.setText(text)

    def _show_command(self) -> None:
        self.copy.setEnabled(bool(self._arguments))
        if self._arguments:
            line = torchrun_line(self._arguments, self.machines.value(), self._setup.processes)
            self.command.setText(line)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())
        self.copy.setText("Copied")
        self._copied.start()

    def _edit(self, name: str, value: ParamValue) -> None:
        self.setup_edited.emit(replace(self._setup, **{name: value}), set_text(name, value))
