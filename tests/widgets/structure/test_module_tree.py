"""The tree of modules: what it tells the user to have chosen, and what it keeps."""

from __future__ import annotations

from engine.project.document import replace
from tests.widgets.structure.small_structure import WHOLE
from widgets.structure.module_tree import ModuleTree


def test_only_the_reader_chooses(qtbot):
    view = ModuleTree()
    qtbot.addWidget(view)
    told: list[str] = []
    view.module_chosen.connect(lambda row: told.append(row.path))
    view.show_structure(WHOLE, "Net()")
    assert view.chosen.path == ""
    view.choose("body.0")
    assert view.chosen.path == "body.0"
    view.show_structure(WHOLE, "Net()")
    assert view.chosen.path == "body.0"  # it stays
    rest = tuple(row for row in WHOLE.modules if not row.path.startswith("body"))
    view.show_structure(replace(WHOLE, modules=rest), "Net()")
    assert view.chosen.path == ""  # it has gone
    view.choose("nowhere")
    assert view.chosen.path == "" and told == []
    view.choose("head")
    view.choose("")
    index = view.model.index_at("head")
    view.tree.setCurrentIndex(view._filter.mapFromSource(index))
    assert told == ["head"] == [view.chosen.path]
