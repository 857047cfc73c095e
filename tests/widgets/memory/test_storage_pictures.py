"""The strip and the alias map look as they did when a person last looked at them."""

from __future__ import annotations

import pytest
import torch

from engine.operations.memory.locating import locate
from engine.operations.memory.storage import read_window
from engine.protocol import (
    AliasesCommand,
    AliasesSnapshot,
    AliasNode,
    RunCellCommand,
    StorageNode,
)
from engine.server.session import Session
from engine.tensors.reach import Reached
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme
from widgets.memory.alias_map import AliasMapView
from widgets.memory.storage_view import StorageView

THEMES = {"light": theme.LIGHT, "dark": theme.DARK}

KINDS = {
    "contiguous": (torch.arange(24.).view(2, 3, 4), (1, 1, 2)),
    "transposed": (torch.arange(12.).view(3, 4).T, (1, 2)),
    "expanded": (torch.arange(3.).unsqueeze(1).expand(3, 4), (1, 2)),
    "sliced": (torch.arange(48.).view(6, 8)[1::2, 2:7:2], (1, 1)),
    "unfolded": (torch.arange(9.).unfold(0, 3, 2), (1, 2)),
    "channels_last": (
        torch.arange(60.).view(1, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        (0, 1, 1, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_strip(qtbot, qapp, kind, name) -> None:
    theme.apply(qapp, THEMES[name])
    t, index = KINDS[kind]
    view = StorageView()
    qtbot.addWidget(view)
    view.resize(960, 400)
    view.show()
    view.show_storage(read_window("x", t, None, 1024))
    view.show_element(index)
    view.show_location(locate("x", t, Reached({"x": t}), index=index))
    qapp.processEvents()
    assert_same_picture(view, f"storage_{kind}_{name}")
    if name == "light":
        assert_same_words(view, f"storage_{kind}")


@pytest.mark.parametrize("name", THEMES)
def test_alias_map(qtbot, qapp, name) -> None:
    theme.apply(qapp, THEMES[name])
    sent = []
    session = Session(sent.append)
    session.handle(
        RunCellCommand(
            source="x = torch.arange(12.)\ny = x.view(3, 4)\nz = y.T[0]\nd = y.detach()\n"
            "a = x.numpy()\nn = np.ones(3)\nt = torch.from_numpy(n)\ny[0] = 5\n"
            "e = torch.ones(3, 1).expand(3, 4)"
        )
    )
    session.handle(AliasesCommand())
    session.close()
    view = AliasMapView()
    qtbot.addWidget(view)
    view.resize(1100, 560)
    view.show()
    assert isinstance(sent[-1], AliasesSnapshot)
    view.show_aliases(sent[-1])
    view.show_selected("y")
    qapp.processEvents()
    assert_same_picture(view, f"alias_map_{name}")


def test_names_too_long_for_the_map_are_cut(qtbot, qapp) -> None:
    sent = []
    session = Session(sent.append)
    name = "a_name_that_is_much_longer_than_the_room_for_it"
    session.handle(
        RunCellCommand(
            source=f"{name} = torch.arange(12.)\nv = {name}.view(1, 2, 1, 3, 1, 2, 1, 1)\nv += 1"
        )
    )
    session.handle(AliasesCommand())
    session.close()
    view = AliasMapView()
    qtbot.addWidget(view)
    view.resize(900, 300)
    view.show()
    view.show_aliases(sent[-1])
    qapp.processEvents()
    assert_same_picture(view, "alias_map_long_names")


@pytest.mark.parametrize("left_out", [0, 1234])
def test_a_map_without_tensors_and_one_that_leaves_some_out_say_so(qtbot, qapp, left_out) -> None:
    view = AliasMapView()
    qtbot.addWidget(view)
    view.resize(700, 260)
    view.show()
    tensors = (AliasNode(("x",), "base", 1, (12,), "float32", (1,), 0),) if left_out else ()
    storages = (StorageNode(1, 48, "cpu", 0),) if left_out else ()
    view.show_aliases(AliasesSnapshot(storages=storages, tensors=tensors, left_out=left_out))
    qapp.processEvents()
    assert_same_picture(view, "alias_map_cut" if left_out else "alias_map_empty")
