"""The buttons beside the options of a backward pass: start, compare, save as a script."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from widgets import make


class PassHead(QWidget):
    """`start`, `compare` and `script` can be disabled one by one."""

    start_requested = Signal()
    compare_requested = Signal()
    script_requested = Signal(bool)
    """Asks for the pass as a script: in a file (True) or on the clipboard."""

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
        self.script = make.tool_button("backward_script", "mdi6.script-text-outline")
        self.script.setAccessibleName("All that was done as a Python script")
        self.script.setToolTip(
            "All that was done, to the end of this pass, as a Python script that runs by itself:"
            " edits become hooks on the right nodes, and .grad comes out the same to the bit"
        )
        menu = make.menu(self.script)
        for key, title, to_file in (
            ("copy", "Copy script", False),
            ("save", "Save script…", True),
        ):
            asked = partial(self.script_requested.emit, to_file)
            make.action(menu, title, asked, name=f"backward_script_{key}")
        make.row(self.script, self.compare, self.start, on=self)
