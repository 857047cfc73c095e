"""The images that a loop of the user's has given to `lab.log`, over its steps."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QStackedWidget, QWidget

from engine.protocol import ImagesSnapshot, LoggedImages
from engine.protocol.values import shape_text
from widgets import make
from widgets.flow_layout import FlowLayout
from widgets.text import format_number
from widgets.theme import GRID
from widgets.training.over_time.image_strip import ImageStrip

EMPTY = "No image yet.\n\nlab.log(name=lab.image(tensor)) in a loop of your code shows it here."


class ImagePane(QStackedWidget):
    """`asked()`: the images of another name are wanted; `name` says which. `chosen(name)`: the
    reader wants the newest tensor of that name. `came_in_sight()`: the pane is shown."""

    asked = Signal()
    chosen = Signal(str)
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "images", "Images over time")
        self._steps: tuple[LoggedImages, ...] = ()
        self.name = ""
        self.trouble = make.empty(EMPTY, "images_trouble")
        self._names = make.combo(
            "images_name", "Images", "The name under which your code logs the images"
        )
        self._names.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._names.activated.connect(self._choose)
        self._open = make.button(
            "images_open",
            "Newest in Tensors",
            slot=lambda: self.chosen.emit(self.name),
            tip="Show the numbers of the newest of these tensors in Tensors",
        )
        head = FlowLayout(GRID, even=False)
        for control in (self._names, self._open):
            head.addWidget(control)
        self._pointed = make.text("images_pointed", "muted")
        self.strip = ImageStrip()
        self.strip.pointed.connect(self._tell_step)
        self.addWidget(self.trouble)
        self.addWidget(
            make.page(
                head,
                self._pointed,
                (make.scroll(self.strip, sideways=True), 1),
                margins=(0, GRID, GRID, 0),
            )
        )

    def show_images(self, found: ImagesSnapshot) -> None:
        self._steps, self.name = found.steps, found.name
        if not found.names:
            self.show_trouble(EMPTY)
            return
        known = [self._names.itemText(i) for i in range(self._names.count())]
        if known != list(found.names):
            self._names.clear()
            self._names.addItems(list(found.names))
        self._names.setCurrentText(found.name)
        self.strip.show_images(found.steps)
        self._tell_step(self.strip.column)
        self.setCurrentIndex(1)

    def show_trouble(self, text: str) -> None:
        """Say why there are no images."""
        self.trouble.setText(text)
        self.setCurrentIndex(0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    def _choose(self) -> None:
        self.name = self._names.currentText()
        self.asked.emit()

    def _tell_step(self, column: int) -> None:
        self._pointed.setText(words(self._steps[column]) if column >= 0 else "")


def words(step: LoggedImages) -> str:
    """Words for the images of a step."""
    shown = len(step.images)
    first = f", the first {shown} of {step.count:,} images" if shown < step.count else ""
    ends = f"{format_number(step.low, 3)} is black, {format_number(step.high, 3)} is white"
    return f"step {step.step:,}: shape {shape_text(step.shape)}{first}; {ends}"
