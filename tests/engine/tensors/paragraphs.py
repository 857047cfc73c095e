"""Tables of tests as text: a line of Python, then indented what is told of it."""

from __future__ import annotations


def paragraphs(text: str) -> dict[str, list[str]]:
    """Each line without indentation, with the lines that follow it by four spaces; a line by eight
    spaces goes on with the one before it."""
    told: dict[str, list[str]] = {}
    for line in text.strip("\n").splitlines():
        if not line.startswith(" "):
            told[line] = said = []
        elif line.startswith(" " * 8):
            said[-1] += f" {line.strip()}"
        else:
            said.append(line.strip())
    return told
