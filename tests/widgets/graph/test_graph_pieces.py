"""The links of a picture as straight pieces: a few by themselves as they are among all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.widgets.graph.random_hierarchies import opened
from widgets.graph.painting import geometry as graph_geometry
from widgets.graph.painting.geometry import GraphGeometry
from widgets.layout.nested_layout import layout_nested


@given(opened(), st.sampled_from((0.9, 0.35, 0.0)), st.sampled_from(("smooth", "orthogonal")))
def test_a_few_links_are_straightened_as_all_are(drawn, fineness, style) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    layout = layout_nested(visible.outline, "backward", style)
    whole, fresh = GraphGeometry(visible, layout), GraphGeometry(visible, layout)
    some = np.arange(0, len(visible.links), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_geometry, "MANY_LINKS", 0)
        few = fresh.pieces(some, fineness)
    assert not fresh._pieces
    np.testing.assert_allclose(few, whole.pieces(some, fineness))


@given(opened(), st.sampled_from((0.9, 0.35, 0.0)), st.sampled_from(("smooth", "orthogonal")))
def test_pieces_lead_from_one_end_of_a_link_to_the_other(drawn, fineness, style) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    layout = layout_nested(visible.outline, "backward", style)
    geometry = GraphGeometry(visible, layout)
    for link in range(len(visible.links)):
        pieces, way = geometry.pieces(np.array([link]), fineness), layout.route(link)
        assert (pieces[0, :2] == way[0]).all() and (pieces[-1, 2:] == way[-1]).all()
        assert (pieces[1:, :2] == pieces[:-1, 2:]).all()
