"""Modules whose parameters the optimizer treats otherwise: options of their own, or frozen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import optimizers
from engine.project.document import ParamGroup, ParamValue, TrainingSetup, replace
from engine.project.updates import options_of
from widgets import make
from widgets.fields import value_text
from widgets.forms import ParamForm
from widgets.module_list import ModuleList
from widgets.theme import GRID
from widgets.training.settings.choices import set_text

_DEFAULT = TrainingSetup()


class GroupForm(QWidget):
    """Shows the groups of a `TrainingSetup`. Each edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        self._modules = ModuleList(
            "setup_group",
            self._row,
            title="modules with their own options",
            field="Module with options of its own",
            tip="Path of a module, as in named_modules(): a block's name on the canvas, or layers.0"
            " of your code. Its parameters get a group of the optimizer of their own. Enter adds"
            " it.",
            example="linear1",
            add_tip="Add: own options for this module",
        )
        self._modules.added.connect(self._add)
        make.column(self._modules, on=self)

    def offer_modules(self, names: Sequence[str]) -> None:
        """The paths that the field completes."""
        self._modules.offer(names)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self._modules.show_modules([group.module for group in setup.groups])
        for group in setup.groups:
            self._modules.rows[group.module].show_group(group, setup)

    def _row(self, module: str) -> _Row:
        row = _Row(module)
        row.changed.connect(self._change)
        row.removed.connect(self._remove)
        return row

    def _add(self, module: str) -> None:
        groups = (*self._setup.groups, ParamGroup(module))
        self._emit(groups, f"Own options for {module}")
        if module in self._modules.rows:
            self._modules.rows[module].open()

    def _change(self, changed: ParamGroup, what: str) -> None:
        groups = tuple(
            changed if group.module == changed.module else group for group in self._setup.groups
        )
        self._emit(groups, f"{what}: {changed.module}")

    def _remove(self, module: str) -> None:
        groups = tuple(group for group in self._setup.groups if group.module != module)
        self._emit(groups, f"No own options for {module}")

    def _emit(self, groups: tuple[ParamGroup, ...], what: str) -> None:
        self.setup_edited.emit(replace(self._setup, groups=groups), what)


class _Row(QWidget):
    """One group: folded to its words. The options that are not its own are those of all."""

    changed = Signal(object, str)
    """(the new ParamGroup, what was done)"""
    removed = Signal(str)

    def __init__(self, module: str) -> None:
        super().__init__()
        self._group = ParamGroup(module)
        self._form = make.named(ParamForm(), f"setup_group_{module}_form")
        self._form.value_edited.connect(self._edit)
        self._title = make.fold(
            f"setup_group_{module}",
            module,
            "Options of the optimizer for this module. Bold ones are its own; the arrow beside"
            " them goes back to those of all parameters.",
            self._form,
            accessible=f"Options of {module}",
        )
        self._frozen = make.check(
            f"setup_group_{module}_frozen",
            "frozen",
            "A frozen module gets no gradient (requires_grad_(False)), so no step changes it."
            " Buffers, such as the running mean of BatchNorm, still change.",
        )
        self._frozen.clicked.connect(self._freeze)
        remove = make.tool_button(
            f"setup_group_{module}_remove",
            "mdi6.close",
            f"Remove: {module} has the options of all parameters",
            slot=lambda: self.removed.emit(self._group.module),
            ink="muted",
        )
        head = make.row((self._title, 1), self._frozen, remove)
        make.column(head, self._form, on=self, gap=GRID // 2, margins=0)

    def open(self) -> None:
        self._title.setChecked(True)

    def show_group(self, group: ParamGroup, setup: TrainingSetup) -> None:
        self._group = group
        of_all = options_of(setup.optimizer, setup.optimizer_params)
        schema = [
            replace(option, default=of_all[option.name], required=False)
            for option in optimizers().get(setup.optimizer, ())
        ]
        self._form.show_params(schema, {**of_all, **group.params}, of=group.module)
        self._frozen.setChecked(group.frozen)
        own = ", ".join(f"{name} {value_text(value)}" for name, value in group.params.items())
        self._title.setText(f"{group.module}: {own}" if own else group.module)

    def _freeze(self, frozen: bool) -> None:
        what = "Freeze" if frozen else "Let learn"
        self.changed.emit(replace(self._group, frozen=frozen), what)

    def _edit(self, name: str, value: ParamValue) -> None:
        rest = {n: v for n, v in self._group.params.items() if n != name}
        default = next(p.default for p in self._form.params if p.name == name)
        params = rest if value == default else {**rest, name: value}
        self.changed.emit(replace(self._group, params=params), set_text(name, value))
