"""The selected block: name, parameters, shapes and cost. With nothing selected, the model's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QScrollArea,
    QWidget,
)

from engine.project.catalogue import BlockKind
from engine.project.document import Block, Model
from engine.project.names import name_problem
from widgets import make, theme
from widgets.fields import TextField, asks_for_undo
from widgets.forms import ParamForm
from widgets.icons import icon
from widgets.model.problems import ProblemList
from widgets.text import format_bytes, format_number, format_shape

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import BlockReport, ModelSnapshot, TensorSpec


class BlockProperties(QScrollArea):
    """Shows one block, or the whole model when `block` is None; every edit is a signal."""

    rename_requested = Signal(str, str)
    param_edited = Signal(str, str, object)
    fix_requested = Signal(object)
    problem_activated = Signal(str)
    left = Signal()
    """Esc was pressed, and no field had typed text to take back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("block_properties")
        self.lists_all = True
        """Whether the model as a whole is shown with its problems. They stand in one place only:
        here, or in the panel Problems."""
        self._block: Block | None = None
        self._kind: BlockKind | None = None

        self._icon = QLabel()
        self._icon.setFixedSize(28, 28)
        self._title = make.label("", "heading", "properties_title", wrap=True)
        self._torch_name = make.label("", "muted", "properties_torch_name", wrap=True)
        self._torch_name.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._summary = make.label("", "muted", "properties_summary", wrap=True)
        self.problems = ProblemList()
        self.problems.setObjectName("properties_problems")
        self.problems.fix_requested.connect(self.fix_requested)
        self.problems.problem_activated.connect(self.problem_activated)
        self.name = _NameField()
        self.name.committed.connect(self._rename)
        self._name_error = make.label("", "error", "block_name_error", wrap=True)
        self.name.textChanged.connect(self._check_name)
        name_label = make.label("name", of=self.name, tip=self.name.toolTip())
        self.form = ParamForm()
        self.form.value_edited.connect(self._edit_param)
        self._no_params = make.label("", "muted", "properties_no_params", wrap=True)
        self._no_params.setText("This block has no parameters.")
        self.facts = _Facts()

        self.form.set_head(name_label, self.name, self._name_error)
        names = make.column(self._title, self._torch_name, gap=0)
        body = make.page(
            make.row((self._icon, 0, Qt.AlignmentFlag.AlignTop), (names, 1)),
            self._summary,
            self.problems,
            self.facts,
            self.form,
            self._no_params,
            make.STRETCH,
            margins=2 * theme.GRID,
        )
        make.scroll(body, self)
        theme.notifier.changed.connect(self._paint_icon)
        self.show_name_error("")
        self.show_block(None, None, None, None)

    def show_block(
        self,
        block: Block | None,
        kind: BlockKind | None,
        report: BlockReport | None,
        total: ModelSnapshot | None,
        model: Model | None = None,
    ) -> None:
        """Show `block` with what is known of it (`report`, None while the engine works), or with
        `block` None the model as a whole (`total`, None before the first check; its problems name
        the blocks of `model`)."""
        if (block and (block.id, block.name)) != (
            self._block and (self._block.id, self._block.name)
        ):
            self.show_name_error("")
        self._block, self._kind = block, kind
        self.form.setVisible(block is not None)
        self._torch_name.setVisible(block is not None)
        self._no_params.setVisible(block is not None and kind is not None and not kind.params)
        if block is None:
            self._show_total(total, model)
        else:
            self._show_block(block, kind, report)
        self._paint_icon()

    def edit(self) -> None:
        """Put the focus into the first parameter; into the name if there is none."""
        first = next((param.name for param in self._kind.params), "") if self._kind else ""
        field = self.form.field(first) if first else self.name
        field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if isinstance(field, TextField):
            field.selectAll()
        self.ensureWidgetVisible(field)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def show_name_error(self, message: str) -> None:
        """Show under the name why it was refused; nothing if empty."""
        make.tell(self._name_error, message)

    def _show_block(self, block: Block, kind: BlockKind | None, report: BlockReport | None) -> None:
        self.name.show_name(block.id, block.name)
        self.problems.show_problems(report.problems if report else ())
        if kind is None:
            self._title.setText(block.kind)
            self._torch_name.setText("unknown kind of block")
            self._summary.setText(
                "This version does not know this kind of block. The project keeps it unchanged."
            )
            self.form.show_params((), {})
        else:
            self._title.setText(kind.title)
            self._torch_name.setText(kind.torch_name)
            self._summary.setText(kind.summary)
            self.form.show_params(kind.params, block.params, of=block.id)
        facts: list[tuple[str, str, str]] = []
        if report is not None:
            single = len(report.outputs) == 1
            facts += [
                ("Output" if single else f"Output {port}", _spec_text(spec), _SHAPE_HINT)
                for port, spec in report.outputs.items()
            ]
            facts += _cost(report.parameters, report.parameter_bytes, report.activation_bytes)
        self.facts.show_facts(facts)

    def _show_total(self, total: ModelSnapshot | None, model: Model | None) -> None:
        self._title.setText("Model")
        self.form.show_params((), {})
        blocks = total.blocks if total is not None else model.blocks if model is not None else ()
        if not blocks:
            self._summary.setText(
                "The model is empty. Drag a block from the palette onto the canvas, or open a"
                " template on the Start page."
            )
            self.problems.show_problems(())
            self.facts.show_facts([])
            return
        if total is None:
            self._summary.setText("The engine checks the model: its shapes and sizes follow.")
            self.problems.show_problems(())
            self.facts.show_facts([])
            return
        problems = [*total.problems, *(p for block in total.blocks for p in block.problems)]
        self.problems.show_problems(problems if self.lists_all else (), model)
        self._summary.setText(
            "The model runs: all shapes fit. Select a block to see and edit its parameters."
            if total.runnable
            else "The model cannot run. Click a problem below to select its block."
            if self.lists_all
            else "Does not run yet: see the panel Problems."
        )
        self.facts.show_facts(
            [
                ("Blocks", format_number(len(total.blocks)), "Blocks on the canvas."),
                *_cost(total.parameters, total.parameter_bytes, total.activation_bytes),
            ]
        )

    def _check_name(self, name: str) -> None:
        self.show_name_error(name_problem(name.strip(), frozenset()) or "")

    def _rename(self, name: str) -> None:
        if name_problem(name, frozenset()):
            return  # the form shows the error under the field; the typed text stays
        if self._block is not None and name != self._block.name:
            self.rename_requested.emit(self._block.id, name)

    def _edit_param(self, name: str, value: object) -> None:
        if self._block is not None:
            self.param_edited.emit(self._block.id, name, value)

    def _paint_icon(self) -> None:
        if self._block is None:
            name = "mdi6.graph-outline"
        else:
            name = self._kind.icon if self._kind else "mdi6.help-box-outline"
        self._icon.setPixmap(icon(name, "accent").pixmap(26, 26))


class _NameField(QLineEdit):
    """The block's name; `committed` on Enter or at the loss of focus, Esc restores it."""

    committed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        make.named(self, "block_name", "Block name")
        self.setToolTip(
            "The block's name in Python: the attribute of the module (self.linear1) or the\n"
            "variable. It is also the start of its keys in the state_dict (linear1.weight)."
        )
        self._shown = ("", "")
        self.editingFinished.connect(lambda: self.committed.emit(self.text().strip()))

    def show_name(self, block_id: str, name: str) -> None:
        # Only a changed name is written: a new report must not replace a name that is being typed.
        if self._shown != (block_id, name):
            self._shown = (block_id, name)
            self.setText(name)

    def event(self, event: QEvent) -> bool:
        if asks_for_undo(event) and self.text() == self._shown[1]:
            event.ignore()
            return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text() != self._shown[1]:
            self.setText(self._shown[1])
        else:
            super().keyPressEvent(event)


class _Facts(QWidget):
    """Rows of a word and a number; the numbers can be selected and copied."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("properties_facts")
        margins = (0, theme.GRID // 2, 0, theme.GRID)
        self._grid = make.grid(self, down=theme.GRID // 2, margins=margins, stretch=1)
        self._rows: list[tuple[QLabel, QLabel]] = []

    def show_facts(self, facts: list[tuple[str, str, str]]) -> None:
        """Show (word, number, tooltip) rows."""
        while len(self._rows) < len(facts):
            word, figure = make.label("", "muted", "", wrap=True), QLabel()
            figure.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            figure.setWordWrap(True)
            row = len(self._rows)
            self._grid.addWidget(word, row, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(figure, row, 1)
            self._rows.append((word, figure))
        for index, (word, figure) in enumerate(self._rows):
            shown = index < len(facts)
            word.setVisible(shown)
            figure.setVisible(shown)
            if shown:
                text, value, hint = facts[index]
                word.setText(text)
                figure.setText(value)
                figure.setAccessibleName(f"{text}: {value}")
                word.setToolTip(hint)
                figure.setToolTip(hint)

    def facts(self) -> dict[str, str]:
        """The shown numbers by their words."""
        return {w.text(): f.text() for w, f in self._rows if not w.isHidden()}


_SHAPE_HINT = "Shape and dtype of the output; B is the batch size."


def _cost(parameters: int, parameter_bytes: int, activation_bytes: int):
    count = f"{format_number(parameters)} ({format_bytes(parameter_bytes)})" if parameters else "0"
    return [
        ("Parameters", count, "Learnable numbers, and the memory they take."),
        (
            "Activations",
            f"{format_bytes(activation_bytes)} per sample",
            "Memory of the outputs for a batch of one; training keeps most of them until the "
            "backward pass.",
        ),
    ]


def _spec_text(spec: TensorSpec) -> str:
    return f"{format_shape(spec.shape)}  {spec.dtype}"
