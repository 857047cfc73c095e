"""Help in the window: all actions with their keys, and the installed versions."""

from __future__ import annotations

import platform
from html import escape
from importlib import metadata

import PySide6.QtCore
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QTextBrowser, QWidget

from app.actions import Actions
from engine.protocol import ReadySnapshot
from widgets import make, theme

_CANVAS_KEYS = (
    ("Tab", "Select the next block; on an empty canvas search for one"),
    ("Arrows", "Select the block in that direction"),
    ("Ctrl+Arrows", "Move the selected blocks"),
    ("W", "Draw a wire from the selected block by keyboard"),
    ("Shift+W", "Select the next wire"),
    ("Enter", "Edit the selected block's properties; Esc leads back to the canvas"),
    ("F2", "Rename the selected block; so does a double click on its title"),
    ("Space+drag", "Pan"),
    ("+ - 0", "Zoom in, out, to actual size"),
    ("Esc", "Cancel the drag, or clear the selection"),
)
_GRAPH_KEYS = (
    ("Arrows", "Move along the links, and to the boxes beside"),
    ("Enter", "Run to the selected node; open or close the selected box"),
    ("+ -", "Open the selected box; close it, or the box around it"),
    ("Ctrl+F", "Search; Enter and Shift+Enter go to the next and the previous hit"),
    ("Drag", "Pan"),
    ("Ctrl++ Ctrl+-", "Zoom in, out"),
    ("F", "Fit the whole graph into view"),
    ("Esc", "Clear the selection"),
)
_CONSOLE_KEYS = (
    ("Enter", "Run complete input; continue an unfinished block until an empty line"),
    ("Shift+Enter", "Run the input as it is"),
    ("Ctrl+Enter", "Insert a line break"),
    ("Tab", "Complete a name; at the start of a line indent it"),
    ("Up, Down", "In the first and last line: earlier input"),
)


def show_sheet(parent: QWidget, html: str) -> QDialog:
    """Show a page of text beside the window. It is not modal, and Esc closes it."""
    sheet = QDialog(parent)
    sheet.setObjectName("help_sheet")
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    sheet.setWindowTitle("Tensor Lab")
    sheet.resize(640, 640)
    text = QTextBrowser()
    make.named(text, "help_text", "Help")
    text.setOpenExternalLinks(True)
    text.setHtml(html)
    make.column(text, on=sheet)
    sheet.show()
    return sheet


def shortcuts_html(actions: Actions) -> str:
    groups: dict[str, list[tuple[str, str]]] = {}
    for spec, action in actions:
        if spec.shortcut:
            keys = action.shortcut().toString()
            groups.setdefault(spec.category, []).append((keys, spec.tip))
    groups["Canvas"] = list(_CANVAS_KEYS)
    groups["Autograd graph"] = list(_GRAPH_KEYS)
    groups["Console"] = list(_CONSOLE_KEYS)
    muted = theme.current().muted
    parts = []
    for group, rows in groups.items():
        parts.append(f"<h3>{group}</h3><table cellpadding=3>")
        parts += [
            f"<tr><td><b>{escape(keys)}</b></td>"
            f"<td style='color:{muted}'>&nbsp; {escape(text)}</td></tr>"
            for keys, text in rows
        ]
        parts.append("</table>")
    return "".join(parts)


def about_html(ready: ReadySnapshot | None) -> str:
    """The versions; torch's is known once the engine is ready."""
    rows = {
        "Tensor Lab": _version("tensorlab"),
        "Python": platform.python_version(),
        "Qt": PySide6.QtCore.qVersion(),
        "torch": ready.torch_version if ready else "the engine is not ready yet",
        "Devices": ", ".join(device.title for device in ready.devices) if ready else "–",
    }
    lines = (
        f"<tr><td><b>{key}</b></td><td>&nbsp; {value}</td></tr>" for key, value in rows.items()
    )
    return (
        "<h2>Tensor Lab</h2><p>A laboratory for tensors, graphs and models of PyTorch.</p>"
        f"<table cellpadding=3>{''.join(lines)}</table>"
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "from a checkout"
