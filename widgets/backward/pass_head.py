"""The buttons beside the options of a backward pass: start, compare, copy as code."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from widgets import make


class PassHead(QWidget):
    """`start`, `compare` and `copy` can be disabled one by one."""

    start_requested = Signal()
    compare_requested = Signal()
    copy_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.start = make.button("backward_start", "Start", "mdi6.play", self.start_requested)
        self.start.setAccessibleName("Start a backward pass")
        self.start.setToolTip("Read the graph from loss.grad_fn; the first step runs its root (F7)")
        self.compare = make.button(
            "backward_compare", "Compare", "mdi6.scale-balance", self.compare_requested
        )
        self.compare.setAccessibleName("Compare with loss.backward()")
        self.compare.setToolTip(
            "Run the same batch through plain loss.backward() and compare every .grad"
        )
        self.copy = make.tool_button("backward_copy", "mdi6.content-copy", slot=self.copy_requested)
        self.copy.setAccessibleName("Copy the code of this pass")
        self.copy.setToolTip(
            "Copy the console's cells behind this graph, and the backward() that runs this pass"
        )
        make.row(self.copy, self.compare, self.start, on=self)
