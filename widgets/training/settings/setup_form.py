"""The form of the training set-up: data, loss, optimizer, run."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QLabel, QScrollArea, QWidget

from engine.project.catalogue import Param, datasets, optimizers
from engine.project.document import DataSetup, ParamValue, TrainingSetup, replace
from engine.project.limits import MAX_BATCH_SIZE, MAX_EPOCHS, MAX_SEED
from engine.project.updates import update_rule
from engine.protocol import Device
from widgets import make
from widgets.forms import ParamForm
from widgets.text import format_bytes
from widgets.theme import GRID
from widgets.training.settings.batches_form import BatchesForm
from widgets.training.settings.choices import Choice, set_text, show_choice, with_value
from widgets.training.settings.data_form import DataForm
from widgets.training.settings.loss_form import LossForm
from widgets.training.settings.objective_form import ObjectiveForm
from widgets.training.settings.ranks_form import RanksForm
from widgets.training.settings.step_form import StepForm
from widgets.training.settings.watch_form import WatchForm

_DEFAULT = TrainingSetup()
_RUN = (
    Param(
        "batch_size",
        "int",
        _DEFAULT.batch_size,
        minimum=1,
        maximum=MAX_BATCH_SIZE,
        doc="Samples in one optimizer step. Larger is smoother and faster an epoch; smaller takes"
        " more steps and is noisier.",
    ),
    Param(
        "epochs",
        "int",
        _DEFAULT.epochs,
        minimum=1,
        maximum=MAX_EPOCHS,
        doc="How many times training goes through the whole training set.",
    ),
    Param(
        "seed",
        "int",
        _DEFAULT.seed,
        minimum=0,
        maximum=MAX_SEED,
        doc="Seed of all random numbers of training: initial weights, order of batches, dropout."
        " The same seed gives the same run. Your own code seeds what it draws from NumPy or from"
        " Python's random.",
    ),
)


class SetupForm(QScrollArea):
    """Shows a `TrainingSetup`. Each edit emits the whole new set-up and a text for Undo."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done: "Set batch size to 32")"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        self._devices: tuple[Device, ...] = ()
        self.setObjectName("training_setup")
        self.setMinimumWidth(320)

        body = QWidget()
        self._layout = make.column(on=body, gap=GRID // 2, margins=2 * GRID)

        self._heading("Data")
        self.objective = ObjectiveForm()
        self._layout.addWidget(self.objective)
        self._batches = BatchesForm()
        self._layout.addWidget(self._batches)
        self.data = DataForm()
        self._layout.addWidget(self.data)
        self.loss = LossForm()
        self._layout.addWidget(self.loss)
        self._layout.addWidget(self.objective.of_step)

        self._heading("Optimizer")
        self._optimizer = self._choice("setup_optimizer", "Optimizer: how gradients change weights")
        rows = ((key.removeprefix("optim."), key, f"torch.{key}") for key in optimizers())
        make.add_choices(self._optimizer, rows)
        self._optimizer_words = self._words("setup_optimizer_words")
        self._optimizer_form = self._params("setup_optimizer_form")

        self._step_form = StepForm()
        self.groups, self.rates = self._step_form.groups, self._step_form.rates
        self.execution = self._step_form.execution
        self._layout.addWidget(self._step_form)
        self._watch_form = WatchForm()
        self._layout.addWidget(self._watch_form)

        self._heading("Run")
        self._run_form = self._params("setup_run_form")
        device_label = QLabel("device")
        self._layout.addWidget(device_label)
        self._device = self._choice("setup_device", "Device that computes")
        device_label.setBuddy(self._device)
        self._device_words = self._words("setup_device_words")
        self.ranks = RanksForm()
        self._layout.addWidget(self.ranks)
        self._note = self._words("setup_note")
        self._layout.addStretch(1)
        make.scroll(body, self)
        self._connect()
        self.show_setup(self._setup, None)
        self.show_subject(is_code=False, of_setup=True)

    def _heading(self, text: str) -> QLabel:
        label = make.label(text, "heading")
        label.setContentsMargins(0, 2 * GRID if self._layout.count() else 0, 0, 0)
        self._layout.addWidget(label)
        return label

    def _choice(self, name: str, tip: str) -> QComboBox:
        box = make.named(Choice(), name, make.first_words(tip), tip)
        self._layout.addWidget(box)
        return box

    def _words(self, name: str) -> QLabel:
        label = make.label("", "muted", name, wrap=True)
        self._layout.addWidget(label)
        return label

    def _params(self, name: str) -> ParamForm:
        form = ParamForm()
        form.setObjectName(name)
        self._layout.addWidget(form)
        return form

    def _connect(self) -> None:
        self.data.edited.connect(self._edit_data)
        self.loss.setup_edited.connect(self.setup_edited)
        self._optimizer.activated.connect(
            lambda: self._choose_optimizer(self._optimizer.currentData())
        )
        self._device.activated.connect(lambda: self._choose_device(self._device.currentData()))
        self._optimizer_form.value_edited.connect(self._edit_optimizer)
        self._run_form.value_edited.connect(self._edit_run)
        self._batches.setup_edited.connect(self.setup_edited)
        self._step_form.setup_edited.connect(self.setup_edited)
        self._watch_form.setup_edited.connect(self.setup_edited)
        self.ranks.setup_edited.connect(self.setup_edited)

    def offer_objects(self, names: Sequence[str]) -> None:
        """The names of the user's code that the arguments of a DataLoader may be."""
        self.data.offer_objects(names)
        self._batches.given.offer_names(names)

    # -- showing ---------------------------------------------------------------------------------

    def show_subject(self, is_code: bool, of_setup: bool, writes: bool = False) -> None:
        """Show what is asked of the kind of subject: code has a step, which is written (`writes`)
        with a loss of torch's; data is a data set (`of_setup`) or the code's own."""
        self.loss.show_subject(is_code, writes)
        self.objective.setVisible(is_code)
        self.objective.of_step.setVisible(is_code)
        self.data.setVisible(of_setup)
        self._batches.setVisible(not of_setup)

    def show_setup(self, setup: TrainingSetup, loss_from_block: str | None) -> None:
        """Show `setup`. `loss_from_block` is the kind of the loss block on the canvas, which then
        decides the loss; None if there is none."""
        self._setup = setup
        self.data.show_setup(setup.data)
        self.loss.show_setup(setup, loss_from_block)
        show_choice(self._optimizer, setup.optimizer)
        self._optimizer_form.show_params(
            optimizers().get(setup.optimizer, ()), setup.optimizer_params
        )
        self._show_optimizer_words()
        self._batches.show_setup(setup)
        self._step_form.show_setup(setup)
        self._watch_form.show_setup(setup)
        self.ranks.show_setup(setup)
        self._run_form.show_params(
            _RUN, {"batch_size": setup.batch_size, "epochs": setup.epochs, "seed": setup.seed}
        )
        self._show_device()

    def _show_optimizer_words(self) -> None:
        setup = self._setup
        known = setup.optimizer in optimizers()
        rule = update_rule(setup.optimizer, setup.optimizer_params) if known else None
        step = "" if rule is None or not rule.step else f"new = {rule.step}\n"
        text = "" if rule is None else f"{step}{rule.words}".strip()
        self._optimizer_words.setText(text)
        self._optimizer_words.setToolTip(
            "How the optimizer updates each element of a parameter from its .grad. With the"
            " numbers of one pass: Autograd, a row of Gradients."
        )

    def show_devices(self, devices: Sequence[Device]) -> None:
        """Offer the devices that torch can use."""
        self._devices = tuple(devices)
        self._show_device()

    def _show_device(self) -> None:
        chosen = self._setup.device
        with QSignalBlocker(self._device):
            self._device.clear()
            for device in self._devices:
                memory = f" ({format_bytes(device.memory_bytes)})" if device.memory_bytes else ""
                title = f"{device.title}{memory}"
                make.add_choices(self._device, ((title, device.name, device.name),))
            known = any(device.name == chosen for device in self._devices)
            if not known:
                self._device.addItem(chosen, chosen)
            self._device.setCurrentIndex(self._device.findData(chosen))
        missing = bool(self._devices) and not known
        make.tell(
            self._device_words,
            f"torch has no {chosen} on this machine: choose another device." if missing else "",
        )

    def show_note(self, text: str) -> None:
        """Show a text under the form; none if empty."""
        make.tell(self._note, text)

    # -- editing ---------------------------------------------------------------------------------

    def _emit_edit(self, setup: TrainingSetup, what: str) -> None:
        self.setup_edited.emit(setup, what)

    def _choose_optimizer(self, key: str) -> None:
        """Choose an optimizer. Settings that both optimizers have keep their values."""
        if key == self._setup.optimizer:
            return
        known = {param.name for param in optimizers()[key]}
        kept = {n: v for n, v in self._setup.optimizer_params.items() if n in known}
        self._emit_edit(
            replace(self._setup, optimizer=key, optimizer_params=kept),
            f"Use the optimizer {key.removeprefix('optim.')}",
        )

    def _choose_device(self, name: str) -> None:
        if name != self._setup.device:
            self._emit_edit(replace(self._setup, device=name), f"Train on {name}")

    def _edit_data(self, data: DataSetup, what: str) -> None:
        loss = _loss_for(data, self._setup)
        self._emit_edit(replace(self._setup, data=data, loss=loss), what)

    def _edit_optimizer(self, name: str, value: ParamValue) -> None:
        schema = optimizers()[self._setup.optimizer]
        params = with_value(schema, self._setup.optimizer_params, name, value)
        self._emit_edit(replace(self._setup, optimizer_params=params), set_text(name, value))

    def _edit_run(self, name: str, value: ParamValue) -> None:
        self._emit_edit(replace(self._setup, **{name: value}), set_text(name, value))


def _loss_for(data: DataSetup, setup: TrainingSetup) -> str:
    """The loss of a set-up that goes to another data set: another one where one of the two has
    numbers as targets, and the other classes. Of a file, it is not known before it is read."""
    to_numbers, from_numbers = _has_numbers(data), _has_numbers(setup.data)
    if to_numbers == from_numbers:
        return setup.loss
    return "nn.MSELoss" if to_numbers else _DEFAULT.loss


def _has_numbers(data: DataSetup) -> bool:
    """Whether the targets are numbers, as far as that is known before the data is read."""
    kind = datasets().get(data.kind)
    if kind is None or kind.source:
        return data.params.get("target") == "numbers"
    return not kind.classes
