"""Controls made in one call: their names, words and layouts; the table to read and copy."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFontInfo, QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from widgets import make, theme
from widgets.table import ROW_HEIGHT, ReadTable


class _Listener(QObject):
    told = Signal()


def test_a_button_is_called_by_its_text_unless_another_name_is_given(qtbot):
    plain = make.button("run", "Run", tip="Run it.")
    called = make.button("stop", "Stop", accessible="Stop the run", primary=True)
    qtbot.addWidget(plain)
    qtbot.addWidget(called)
    assert (plain.objectName(), plain.accessibleName(), plain.toolTip()) == (
        "run",
        "Run",
        "Run it.",
    )
    assert called.accessibleName() == "Stop the run"
    assert called.property("role") == "primary"


def test_a_small_button_without_a_text_is_called_by_the_first_words_of_its_tooltip(qtbot):
    button = make.tool_button("fit", "mdi6.fit-to-page", "Fit: show all of x.grad. Or press F.")
    qtbot.addWidget(button)
    assert button.accessibleName() == "Fit"
    assert button.autoRaise() and not button.icon().isNull()
    assert make.first_words("Show x.grad (Enter)") == "Show x.grad (Enter)"
    assert make.first_words("Close it.") == "Close it"


@pytest.mark.parametrize(
    ("icon", "text", "style"),
    [
        ("mdi6.plus", "Add", Qt.ToolButtonStyle.ToolButtonTextBesideIcon),
        ("mdi6.plus", "", Qt.ToolButtonStyle.ToolButtonIconOnly),
    ],
)
def test_a_small_button_shows_its_icon_and_its_text(qtbot, icon, text, style):
    button = make.tool_button("add", icon, "Add one.", text=text)
    qtbot.addWidget(button)
    assert (button.toolButtonStyle(), button.text()) == (style, text)


def test_a_framed_button_and_one_that_is_ticked(qtbot):
    framed = make.tool_button("a", tip="A", framed=True)
    ticked, not_ticked = make.check("b", "B", checked=True), make.check("c", "C")
    field = make.field("d", "D", placeholder="1, 2")
    for widget in (framed, ticked, not_ticked, field):
        qtbot.addWidget(widget)
    assert not framed.autoRaise() and not framed.isCheckable()
    assert (ticked.isChecked(), not_ticked.isChecked()) == (True, False)
    assert field.placeholderText() == "1, 2"


def test_code_is_written_in_the_monospaced_face(qtbot):
    made = (make.field("a", "A", mono=True), make.text("b", mono=9), make.field("c", "C"))
    for widget in (*made, make.text("d")):
        qtbot.addWidget(widget)
    fixed = [QFontInfo(widget.font()).fixedPitch() for widget in made]
    assert fixed == [True, True, False]
    assert made[1].font().pointSize() == 9


def test_text_takes_its_own_width_or_the_rest_or_less(qtbot):
    words = "a long line of words " * 8
    least = {}
    for width in ("own", "rest", "any"):
        label = make.text(width, width=width)
        label.setText(words)
        page = make.page(label)
        qtbot.addWidget(page)
        least[width] = page.minimumSizeHint().width(), page.sizeHint().width()
    full = least["own"][0]
    assert full > 400
    assert least["rest"][0] < 20 and least["any"][0] < 20  # neither widens its window
    assert least["any"][1] == full  # but this asks for its width


def test_what_to_do_stands_in_the_middle_of_an_empty_place(qtbot):
    label = make.empty("Nothing yet.", "nothing")
    qtbot.addWidget(label)
    assert label.alignment() == Qt.AlignmentFlag.AlignCenter and label.wordWrap()


def test_another_role_is_another_colour(qtbot, qapp):
    label = make.label("words", "muted")
    qtbot.addWidget(label)
    label.ensurePolished()
    muted = label.palette().windowText().color()
    make.set_role(label, "error")
    assert label.palette().windowText().color() != muted
    assert label.palette().windowText().color().name() == theme.current().error


def test_a_paragraph_can_be_selected_by_keys(qtbot):
    flags = []
    for label in (make.paragraph("a"), make.text("b")):
        qtbot.addWidget(label)
        flags.append(
            bool(label.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByKeyboard)
        )
    assert flags == [True, False]


def test_a_number_keeps_to_its_range(qtbot):
    spin = make.spin("epochs", "Epochs", low=1, high=5, value=3)
    plain = make.spin("batch", "Batch")
    qtbot.addWidget(spin)
    qtbot.addWidget(plain)
    assert (spin.minimum(), spin.maximum(), spin.value()) == (1, 5, 3)
    assert (plain.minimum(), plain.maximum(), plain.value()) == (0, 99, 0)


def test_a_grid_and_a_scrolled_page(qtbot):
    page = QWidget()
    grid = make.grid(page, across=3, down=4, margins=5, stretch=1)
    assert (grid.horizontalSpacing(), grid.verticalSpacing()) == (3, 4)
    assert grid.contentsMargins().left() == grid.contentsMargins().bottom() == 5
    grid.addWidget(QLabel("a"), 0, 0)
    grid.addWidget(QLabel("b"), 0, 1)
    page.resize(400, 40)
    grid.activate()
    assert grid.cellRect(0, 1).width() > 350 > 40 > grid.cellRect(0, 0).width()
    policies = []
    for sideways in (False, True):
        area = make.scroll(QLabel("wide"), sideways=sideways)
        qtbot.addWidget(area)
        policies.append(area.horizontalScrollBarPolicy())
        assert area.widgetResizable() and area.frameShape() == area.Shape.NoFrame
    never, as_needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded
    assert policies == [never, as_needed]
    qtbot.addWidget(page)


def test_a_splitter_shares_what_a_larger_window_brings(qtbot):
    splitter = make.splitter(QLabel(), QLabel(), sizes=(100, 100), shares=(0, 1))
    qtbot.addWidget(splitter)
    splitter.resize(200 + splitter.handleWidth(), 50)
    splitter.show()
    qtbot.waitExposed(splitter)
    splitter.setSizes([100, 100])
    splitter.resize(500 + splitter.handleWidth(), 50)
    assert splitter.sizes() == [100, 400]


@pytest.mark.parametrize("inside", [False, True])
def test_keys_act_in_their_scope(qtbot, inside):
    page, heard = QWidget(), []
    qtbot.addWidget(page)
    field = make.field("a", "A")
    make.column(field, on=page)
    make.shortcut(Qt.Key.Key_F5, page, lambda: heard.append(1), inside=inside)
    page.show()
    page.activateWindow()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    qtbot.keyClick(field, Qt.Key.Key_F5)
    assert heard == [1] * inside


def test_a_click_calls_a_function_or_emits_a_signal(qtbot):
    listener, heard = _Listener(), []
    listener.told.connect(lambda: heard.append("signal"))
    buttons = [
        make.button("a", "A", slot=lambda: heard.append("call")),
        make.tool_button("b", tip="B", slot=listener.told),
        make.tool_button("c", tip="C", toggled=lambda on: heard.append(on)),
    ]
    for button in buttons:
        qtbot.addWidget(button)
        button.click()
    assert heard == ["call", "signal", True]


def test_a_click_hands_nothing_over(qtbot):
    heard = []

    def fit(rect=None):
        heard.append(rect)

    for button in (make.button("a", "A", slot=fit), make.tool_button("b", tip="B", slot=fit)):
        qtbot.addWidget(button)
        button.click()
    assert heard == [None, None]


def test_a_menu_opens_from_its_button_and_calls_what_was_chosen(qtbot):
    button, heard = make.tool_button("more", tip="More"), []
    qtbot.addWidget(button)
    menu = make.menu(button, accessible="More", tips=True)
    chosen = make.action(menu, "Copy", lambda: heard.append("copy"), name="copy", tip="Copy it.")
    chosen.trigger()
    assert button.menu() is menu and menu.toolTipsVisible()
    assert (chosen.objectName(), chosen.toolTip(), heard) == ("copy", "Copy it.", ["copy"])


def test_choices_have_their_data_and_tooltips(qtbot):
    box = make.combo("mode", "Mode", "How", [("forward", "f", "By columns."), ("reverse", "r")])
    qtbot.addWidget(box)
    assert [box.itemText(i) for i in range(2)] == ["forward", "reverse"]
    assert [box.itemData(i) for i in range(2)] == ["f", "r"]
    assert box.itemData(0, Qt.ItemDataRole.ToolTipRole) == "By columns."
    assert box.itemData(1, Qt.ItemDataRole.ToolTipRole) is None


def test_shown_text_is_plain_and_can_be_selected(qtbot):
    label = make.text("facts", "muted", mono=9)
    qtbot.addWidget(label)
    make.tell(label, "<b>x</b>")
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    assert not label.isHidden()
    make.tell(label, "")
    assert label.isHidden()


def test_a_row_has_its_parts_in_order_with_stretches_and_spaces(qtbot):
    page = QWidget()
    qtbot.addWidget(page)
    a, b, c = QLabel("a"), QLabel("b"), QLabel("c")
    inner = make.column(c, gap=1)
    top = Qt.AlignmentFlag.AlignTop
    layout = make.row(
        a, (b, 2, top), 5, make.Stretch(3), (inner, 4), on=page, gap=7, margins=(1, 2, 3, 4)
    )
    assert isinstance(page.layout(), QHBoxLayout) and layout.spacing() == 7
    margins = layout.contentsMargins()
    assert (margins.left(), margins.top(), margins.right(), margins.bottom()) == (1, 2, 3, 4)
    assert [layout.stretch(i) for i in range(layout.count())] == [0, 2, 0, 3, 4]
    items = [layout.itemAt(i) for i in range(layout.count())]
    assert [item.widget() for item in items[:2]] == [a, b]
    assert items[1].alignment() == top
    assert items[2].sizeHint().width() == 5
    assert items[4].layout() is inner and c.parent() is page


def test_a_splitter_hides_none_of_its_widgets(qtbot):
    a, b = QLabel("a"), QLabel("b")
    splitter = make.splitter(a, b, upright=True, sizes=(30, 60))
    qtbot.addWidget(splitter)
    assert splitter.orientation() == Qt.Orientation.Vertical
    assert [splitter.widget(0), splitter.widget(1)] == [a, b]
    assert not splitter.childrenCollapsible()


@pytest.fixture
def table(qtbot) -> ReadTable:
    table = ReadTable("facts", "Facts", (("what", "What it is."), ("how many", "Its count.")))
    qtbot.addWidget(table)
    table.show_rows([("nodes", "3"), ("leaves", "2"), ("cuts", "1")])
    return table


def test_a_table_copies_its_selected_rows_or_all(table):
    table.copy()
    assert QGuiApplication.clipboard().text() == "nodes\t3\nleaves\t2\ncuts\t1"
    table.selectRow(1)
    table.copy()
    assert QGuiApplication.clipboard().text() == "leaves\t2"


def test_a_cell_has_its_own_tooltip_or_its_text(table):
    table.add_row(("edges", "9"), ("", "All of them."))
    assert [table.cell(3, column).toolTip() for column in (0, 1)] == ["edges", "All of them."]
    assert table.horizontalHeaderItem(0).toolTip() == "What it is."
    with pytest.raises(IndexError):
        table.cell(9, 0)


def test_rows_of_a_tight_table_have_one_line(table, qtbot):
    assert not table.wordWrap() and table.rowHeight(0) == ROW_HEIGHT
    assert table.horizontalHeader().stretchLastSection()
    loose = ReadTable("facts", "Facts", (("what", "What it is."),), tight=False, mono=True)
    qtbot.addWidget(loose)
    assert loose.wordWrap() and not loose.horizontalHeader().stretchLastSection()
    assert (
        loose.font().family() != table.font().family() == loose.horizontalHeader().font().family()
    )


def test_new_rows_take_the_place_of_the_old(table):
    table.show_rows([("edges", "9")])
    assert table.rows() == [["edges", "9"]]
