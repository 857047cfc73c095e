"""The settings of the engine: on which machine it runs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QWidget

from widgets import make
from widgets.theme import GRID

_HERE, _SSH, _LISTENS = "here", "ssh", "listens"
_WORDS = (
    "The engine owns all tensors, runs your code and trains; this window shows it. An engine"
    " elsewhere goes on when the connection is lost or the window closes. The next window is shown"
    " the run so far."
)
_EXPLAINED = {
    _HERE: "A process of this machine. It ends with the window.",
    _SSH: "The system's ssh leads to the machine and starts the engine there. It needs a key:"
    " passwords are asked for in the terminal that this window was started from. Install this"
    " version of Tensor Lab on that machine first.",
    _LISTENS: "“tensorlab serve --name NAME” starts such an engine, with --host one at HOST:PORT,"
    " which prints its key. The key is not kept: each engine has a new one.",
}


class EngineView(QFrame):
    """`place_chosen(address, python, key)`: the engine is to run there; the address is empty for
    this machine, else "ssh HOST", a name or HOST:PORT."""

    place_chosen = Signal(str, str, str)

    def __init__(self) -> None:
        super().__init__()
        self.kind = make.combo(
            "engine_kind",
            "Where the engine runs",
            "Where the engine runs, now and at the next start.",
            (
                ("On this machine", _HERE),
                ("On another machine, through ssh", _SSH),
                ("In an engine that listens", _LISTENS),
            ),
        )
        self._explained = make.label("", "muted", "engine_explained", wrap=True)
        self._grid = make.grid(stretch=1)
        self._rows: dict[str, list[QWidget]] = {_HERE: [], _SSH: [], _LISTENS: []}
        self.host = self._field(
            _SSH, "host", "Machine", "HOST, USER@HOST, or a name of ~/.ssh/config.", "USER@HOST"
        )
        self.python = self._field(
            _SSH,
            "python",
            "Python there",
            "The interpreter on that machine that has Tensor Lab, such as"
            " /home/me/lab/bin/python. Empty: its shell finds the command tensorlab.",
            "Path; empty: the command tensorlab",
        )
        self.address = self._field(
            _LISTENS, "address", "Engine", "The name of the engine, or HOST:PORT.", "NAME"
        )
        self.key = self._field(
            _LISTENS, "key", "Key", "Only for HOST:PORT: the engine has printed it.", "Key"
        )
        self.use = make.button("engine_use", "Use", "mdi6.connection", self._choose, primary=True)
        self.use.setToolTip("Call the engine there. Nothing changes unless it answers.")
        self._in_use = make.paragraph("engine_in_use", "muted")
        self._error = make.paragraph("engine_error", "error")
        make.tell(self._error, "")
        make.column(
            make.label("Engine", "heading"),
            make.label(_WORDS, wrap=True),
            self.kind,
            self._explained,
            self._grid,
            make.row(self.use, (self._in_use, 1)),
            self._error,
            make.STRETCH,
            on=self,
            gap=GRID,
        )
        self.kind.currentIndexChanged.connect(self._show_kind)
        self._show_kind()

    def show_place(self, address: str, python: str) -> None:
        """Show a place to choose: that of the settings."""
        is_ssh = address.startswith("ssh ")
        kind = _SSH if is_ssh else _LISTENS if address else _HERE
        self.kind.setCurrentIndex(self.kind.findData(kind))
        if is_ssh:
            self.host.setText(address.removeprefix("ssh ").strip())
            self.python.setText(python)
        else:
            self.address.setText(address)

    def show_in_use(self, words: str) -> None:
        """Say where the engine is that the window has now."""
        self._in_use.setText(words)

    def show_calling(self, address: str) -> None:
        """Say that an engine is being called; with an empty address, that none is."""
        self.setEnabled(not address)
        self.use.setText(f"Calling {address}…" if address else "Use")

    def tell(self, error: str) -> None:
        """Say why the engine there cannot be used; empty to say nothing."""
        make.tell(self._error, error)

    def _field(self, kind: str, name: str, title: str, tip: str, placeholder: str) -> QLineEdit:
        made = make.field(
            f"engine_{name}", title, tip, placeholder=placeholder, entered=self._choose
        )
        made.textChanged.connect(self._show_enabled)
        label = make.label(title, of=made)
        row = self._grid.rowCount()
        self._grid.addWidget(label, row, 0)
        self._grid.addWidget(made, row, 1)
        self._rows[kind] += [label, made]
        return made

    def _place(self) -> tuple[str, str, str] | None:
        """The place that is typed; None while something is missing."""
        host, address = self.host.text().strip(), self.address.text().strip()
        if self.kind.currentData() == _HERE:
            return "", "", ""
        if self.kind.currentData() == _SSH:
            return (f"ssh {host}", self.python.text().strip(), "") if host else None
        return (address, "", self.key.text().strip()) if address else None

    def _choose(self) -> None:
        place = self._place()
        if place is not None:
            self.place_chosen.emit(*place)

    def _show_kind(self) -> None:
        chosen = self.kind.currentData()
        self._explained.setText(_EXPLAINED[chosen])
        for kind, widgets in self._rows.items():
            for widget in widgets:
                widget.setVisible(kind == chosen)
        self.tell("")
        self._show_enabled()

    def _show_enabled(self) -> None:
        self.use.setEnabled(self._place() is not None)
        self.key.setEnabled(":" in self.address.text())
