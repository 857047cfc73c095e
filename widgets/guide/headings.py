"""The headings of a page of Markdown, with the anchors by which links name them."""

from __future__ import annotations

import re

from msgspec import Struct


class Heading(Struct, frozen=True):
    """`level` is 1 for the page's title. `anchor` is what a link has after its `#`."""

    level: int
    title: str
    anchor: str


def headings_of(text: str) -> tuple[Heading, ...]:
    """All headings outside of code, in order."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^(#+) +(.+?) *$", without_code, re.MULTILINE)
    return tuple(Heading(len(marks), title, anchor_of(title)) for marks, title in found)


def anchor_of(title: str) -> str:
    """As GitHub makes it: in lower case, without punctuation, with `-` for each space."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
