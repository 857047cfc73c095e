"""The Start page's list of scripts that the window can attach to, and a field for another one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from widgets import make
from widgets.icons import set_icon
from widgets.start.cards import flat_button
from widgets.theme import GRID

TWO_LINES = "import tensorlab\ntensorlab.watch(model, optimizer)"
"""The lines that a script needs."""
_NO_SCRIPT = (
    "A script of yours that runs is listed here if it says these two lines before its loop. It"
    " trains on as it would without them."
)
_UNLISTED = (
    "On this system scripts are not listed. One that says these two lines before its loop prints"
    " the address and the key to type here, and trains on as it would without them."
)


class Running(Struct, frozen=True):
    """A process that listens. `title` names it, `detail` is the rest of its line."""

    address: str
    title: str
    detail: str
    tip: str


class AttachView(QFrame):
    """`attach_requested(address, key)`: the user has chosen a process of the list, or typed the
    address of one."""

    attach_requested = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[Running, ...] | None = None
        self._list = make.column(gap=0)
        self._none = make.label(_NO_SCRIPT, "muted", "attach_none", wrap=True)
        self._lines = make.text("attach_lines", mono=10, width="own")
        self._lines.setText(TWO_LINES)
        self.address = make.field(
            "attach_address",
            "Address of the process",
            "The process's PID, its name, or HOST:PORT. The script prints it. “ssh HOST NAME” is a"
            " process on another machine, “ssh HOST” an engine there, which is started if need be.",
            placeholder="PID, name, HOST:PORT or ssh HOST",
            entered=self._request,
        )
        self.key = make.field(
            "attach_key",
            "Key of the process",
            "Only for HOST:PORT: the key that the script has printed.",
            placeholder="Key, for HOST:PORT",
            entered=self._request,
        )
        self.button = make.button("attach", "Attach", "mdi6.connection", self._request)
        self.button.setToolTip("Show this process in the window. It trains on.")
        self.address.textChanged.connect(self._show_enabled)
        self._error = make.paragraph("attach_error", "error")
        make.tell(self._error, "")
        make.column(
            self._list,
            self._none,
            self._lines,
            make.row((self.address, 2), (self.key, 1), self.button),
            self._error,
            on=self,
            margins=0,
        )
        self.setMaximumWidth(96 * GRID)
        self._show_enabled()
        self.show_running(())

    def show_running(self, running: Sequence[Running]) -> None:
        """Show a line for each process. The same ones again change nothing."""
        if tuple(running) == self._shown:
            return
        self._shown = tuple(running)
        make.clear(self._list)
        for each in running:
            line = flat_button("attach_running", f"{each.title}    {each.detail}", each.tip)
            line.setAccessibleName(f"Attach to {each.title}")
            line.clicked.connect(
                lambda _=False, address=each.address: self.attach_requested.emit(address, "")
            )
            set_icon(line, "mdi6.pulse", "accent")
            self._list.addWidget(line)
        for words in (self._none, self._lines):
            words.setVisible(not running)

    def show_unlisted(self) -> None:
        """Say that processes cannot be found here, only called."""
        self._none.setText(_UNLISTED)

    def show_address(self, address: str) -> None:
        """Show an address that the user is likely to mean, such as the last one."""
        self.address.setText(address)

    def show_calling(self, address: str) -> None:
        """Say that a process is being called. Until this is shown with an empty address, no other
        process can be called."""
        self.setEnabled(not address)
        self.button.setText(f"Calling {address}…" if address else "Attach")

    def tell(self, error: str) -> None:
        """Say why no connection came about; empty to say nothing."""
        make.tell(self._error, error)

    def ask(self) -> None:
        """Let the user type an address."""
        self.address.setFocus()
        self.address.selectAll()

    def _request(self) -> None:
        address = self.address.text().strip()
        if address:
            key = self.key.text().strip() if self.key.isEnabled() else ""
            self.attach_requested.emit(address, key)

    def _show_enabled(self) -> None:
        address = self.address.text().strip()
        self.button.setEnabled(bool(address))
        self.key.setEnabled(":" in address)
