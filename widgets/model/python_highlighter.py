"""Python in the theme's colours."""

from __future__ import annotations

import builtins
import keyword
import re

from PySide6.QtGui import QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from widgets import theme

_TOKEN = re.compile(
    r"""(?P<triple>\"{3}|'{3})
      | (?P<string>[rbfRBF]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))
      | (?P<comment>\#.*)
      | (?P<decorator>@[\w.]+)
      | (?P<number>\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?j?)\b)
      | (?P<word>[^\W\d]\w*)""",
    re.VERBOSE,
)
_ROLES = {
    "keyword": "accent",
    "string": "leaf",
    "triple": "leaf",
    "comment": "muted",
    "number": "gradient",
    "builtin": "storage",
    "decorator": "storage",
    "definition": "text",
}
_BUILTINS = frozenset(dir(builtins)) | {"self"}
_PLAIN, _IN_DOUBLE, _IN_SINGLE = 0, 1, 2


class PythonHighlighter(QSyntaxHighlighter):
    """Keywords, strings (also over several lines), comments, numbers, built-in names, and the
    names that `class` and `def` define. Follows a change of theme."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._formats: dict[str, QTextCharFormat] = {}
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    def _use_theme(self) -> None:
        colors = theme.current()
        for kind, role in _ROLES.items():
            text_format = QTextCharFormat()
            text_format.setForeground(colors.color(role))
            if kind in ("keyword", "definition"):
                text_format.setFontWeight(QFont.Weight.DemiBold)
            text_format.setFontItalic(kind == "comment")
            self._formats[kind] = text_format
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        position = 0
        defining = False
        state = self.previousBlockState()
        if state in (_IN_DOUBLE, _IN_SINGLE):
            position = self._close_triple(text, 0, 0, state)
        else:
            self.setCurrentBlockState(_PLAIN)
        while match := _TOKEN.search(text, position):
            kind, start, position = str(match.lastgroup), match.start(), match.end()
            if kind == "triple":
                state = _IN_DOUBLE if match["triple"] == '"""' else _IN_SINGLE
                position = self._close_triple(text, start, position, state)
                continue
            if kind == "word":
                word = match["word"]
                if defining:
                    kind = "definition"
                elif keyword.iskeyword(word):
                    kind = "keyword"
                elif word in _BUILTINS and text[start - 1 : start] != ".":
                    kind = "builtin"
                defining = word in ("class", "def")
            if kind in self._formats:
                self.setFormat(start, position - start, self._formats[kind])

    def _close_triple(self, text: str, start: int, inner: int, state: int) -> int:
        """Colour a triple-quoted string from `start`; return where it ends on this line."""
        end = text.find('"""' if state == _IN_DOUBLE else "'''", inner)
        stop = len(text) if end < 0 else end + 3
        self.setCurrentBlockState(state if end < 0 else _PLAIN)
        self.setFormat(start, stop - start, self._formats["triple"])
        return stop
