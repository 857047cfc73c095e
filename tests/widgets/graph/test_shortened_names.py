"""Names in a graph that have too little room."""

from __future__ import annotations

import pytest

from widgets.diagram.style import font, text_width
from widgets.graph.painting.paint import shortened


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("transformer.blocks.attention.projection", "projection"),
        ("transformer.blocks.0 (call 2)", "0 (call 2)"),
        ("self.transformer.wte(idx) + self.transformer.wpe(pos)", "self.tran"),
        ("features.new_zeros(len(features), self.cell.hidden_size)", "features."),
    ],
)
def test_parts_of_a_path_are_left_out_and_an_expression_keeps_its_begin(
    qapp, name: str, start: str
) -> None:
    face = font(11)
    width = max(text_width("projection", face), text_width("0 (call 2)", face)) + 4
    text = shortened(name, face, width)
    assert text.startswith(start) and text_width(text, face) <= width
    assert shortened(name, face, 2000) == name
