"""The part of a long output that is shown: its head and its tail. All of it goes to a file.

Of a progress bar only the newest state counts and is kept.
"""

from __future__ import annotations

from collections import deque

from ..protocol import OutputPiece, OutputTailSnapshot, Stream
from .output_file import OutputFile

HEAD_CHARACTERS = 128 * 1024
HEAD_LINES = 2000
TAIL_CHARACTERS = 32 * 1024
TAIL_LINES = 500


class Returns:
    """Carries out the carriage returns of a text that comes in pieces."""

    def __init__(self) -> None:
        self._at_end = False  # the last piece ended in a return

    def apply(self, text: str) -> str:
        """The piece without carriage returns and without what they take back. One may be left at
        its beginning: the piece then replaces the unfinished line before it."""
        if not text:
            return ""
        if self._at_end:
            text = f"\r{text}"
        stripped = text.rstrip("\r")
        self._at_end = len(stripped) < len(text)
        if "\r" not in stripped:
            return stripped
        lines = [line.rstrip("\r").rpartition("\r") for line in stripped.split("\n")]
        return "\n".join([lines[0][1] + lines[0][2], *(left for _, _, left in lines[1:])])


class LongOutput:
    """Splits an output into a head, a part that is left out, and a tail.

    The file is written once something is left out; it holds the head and the tail too.
    """

    def __init__(self, file: OutputFile | None = None) -> None:
        self._file = file or OutputFile()
        self._head = ""  # for the file
        self._head_room = HEAD_CHARACTERS
        self._head_lines = HEAD_LINES
        self._tail = _Tail()
        self._tail_began = self._tail_changed = False

    def add(self, stream: Stream, text: str) -> str:
        """Add a text from `Returns.apply`, and return what of it belongs to the head."""
        if self._tail_began:
            self._add_to_tail(stream, text)
            return ""
        if text.startswith("\r"):
            kept = self._head[: self._head.rfind("\n") + 1]
            self._head_room += len(self._head) - len(kept)
            self._head = kept
        cut = _fitting(text, self._head_room, self._head_lines)
        head, rest = text[:cut], text[cut:]
        self._head += head.removeprefix("\r")
        self._head_room -= len(head)
        self._head_lines -= head.count("\n")
        if rest:
            self._tail_began = True
            self._file.write(self._head)
            self._head = ""
            self._add_to_tail(stream, rest)
        return head

    def take_tail(self) -> OutputTailSnapshot | None:
        """The tail; None if it has not changed since the last call."""
        if not self._tail_changed:
            return None
        self._tail_changed = False
        tail, file = self._tail, self._file
        return OutputTailSnapshot(
            pieces=tuple(OutputPiece(stream, text) for stream, text in tail.pieces if text),
            left_out_lines=tail.dropped_lines,
            left_out_characters=tail.dropped_characters,
            path=file.path,
            is_whole=file.is_whole,
            fault=file.fault,
        )

    def close(self) -> None:
        self._file.close()

    def _add_to_tail(self, stream: Stream, text: str) -> None:
        self._file.write(text)
        self._tail.add(stream, text)
        self._tail_changed = True


class _Tail:
    """The last pieces of a text, and the size of what came before them."""

    def __init__(self) -> None:
        self.pieces: deque[tuple[Stream, str]] = deque()
        self.dropped_lines = self.dropped_characters = 0
        self._lines = self._characters = 0

    def add(self, stream: Stream, text: str) -> None:
        if text.startswith("\r"):
            self._take_back()
            text = text[1:]
        if self.pieces and self.pieces[-1][0] == stream:
            text = self._pop() + text
        self._push(stream, text)
        while self._lines > TAIL_LINES or self._characters > TAIL_CHARACTERS:
            stream, text = self.pieces.popleft()
            cut = _dropped(text, self._lines - TAIL_LINES, self._characters - TAIL_CHARACTERS)
            self._count(text[:cut], -1)
            self.dropped_lines += text.count("\n", 0, cut)
            self.dropped_characters += cut
            if cut < len(text):
                self.pieces.appendleft((stream, text[cut:]))

    def _take_back(self) -> None:
        """Drop the unfinished line at the end."""
        while self.pieces:
            stream = self.pieces[-1][0]
            text = self._pop()
            kept = text[: text.rfind("\n") + 1]
            if kept:
                self._push(stream, kept)
                return

    def _push(self, stream: Stream, text: str) -> None:
        self.pieces.append((stream, text))
        self._count(text, +1)

    def _pop(self) -> str:
        text = self.pieces.pop()[1]
        self._count(text, -1)
        return text

    def _count(self, text: str, sign: int) -> None:
        self._lines += sign * text.count("\n")
        self._characters += sign * len(text)


def _fitting(text: str, room: int, lines: int) -> int:
    """The length of the beginning of `text` that has at most `room` characters and `lines` line
    ends, and ends with a line if `text` does not fit."""
    cut = min(len(text), room)
    if text.count("\n", 0, cut) > lines:
        cut = 0
        for _ in range(lines):
            cut = text.index("\n", cut) + 1
    if cut < len(text):
        cut = text.rfind("\n", 0, cut) + 1 or (cut if lines else 0)
    return cut


def _dropped(text: str, lines: int, characters: int) -> int:
    """The length of the beginning of `text` that has at least this many line ends and characters,
    up to the end of a line if there is one; all of `text` if it has fewer."""
    cut = min(len(text), max(0, characters))
    more = text.count("\n") - lines
    if more < 0:
        return len(text)
    if lines > 0:
        end = len(text)
        for _ in range(more + 1):
            end = text.rindex("\n", 0, end)
        cut = max(cut, end + 1)
    if cut and text[cut - 1] != "\n":
        cut = text.find("\n", cut) + 1 or cut
    return cut
