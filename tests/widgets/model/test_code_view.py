"""The Python of a model: lines and blocks select each other; copy and save."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QTextDocument
from PySide6.QtTest import QTest

from widgets import theme
from widgets.model.code_view import CodeView
from widgets.model.python_highlighter import PythonHighlighter

CODE = "\n".join(["import torch", "", "class Model:", *(f"    x{i} = {i}" for i in range(200))])
LINES = {"a": (4, 150), "b": (5,)}


@pytest.fixture
def view(qtbot) -> CodeView:
    widget = CodeView()
    qtbot.addWidget(widget)
    widget.resize(480, 400)
    widget.show_code(CODE, LINES)
    widget.show()
    return widget


def click_line(view: CodeView, line: int) -> None:
    at = view.editor.line_rect(line).center()
    QTest.mouseClick(view.editor.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, at.y()))


def test_a_click_selects_the_block_of_the_line(view, qtbot):
    with qtbot.waitSignal(view.block_selected) as told:
        click_line(view, 5)
    assert told.args == ["b"]
    with qtbot.assertNotEmitted(view.block_selected):
        click_line(view, 3)


def test_a_selected_block_is_marked_and_brought_into_view(view):
    view.highlight_block("b")
    assert view.editor.marked_lines() == (5,)
    marks = view.editor.extraSelections()
    assert [mark.cursor.blockNumber() + 1 for mark in marks] == [5]
    view.highlight_block(None)
    assert view.editor.extraSelections() == []
    bar = view.editor.verticalScrollBar()
    bar.setValue(100)
    view.highlight_block("b")
    assert view.editor.viewport().rect().contains(view.editor.line_rect(5))


def test_marking_does_not_scroll_away_from_a_line_in_view(view):
    bar = view.editor.verticalScrollBar()
    bar.setValue(145)
    view.highlight_block("a")
    assert bar.value() == 145


def test_the_numbers_scroll_with_their_lines(view, qapp):
    qapp.processEvents()
    before = view.editor.grab().toImage()
    view.editor.verticalScrollBar().setValue(50)
    qapp.processEvents()
    numbers = QRect(0, 0, view.editor.viewport().x(), view.editor.height())
    assert view.editor.grab().toImage().copy(numbers) != before.copy(numbers)


def test_new_code_keeps_place_and_marks(view):
    bar = view.editor.verticalScrollBar()
    view.highlight_block("a")
    bar.setValue(60)
    view.show_code(CODE + "\n", {"a": (6,)})
    assert bar.value() == 60
    assert view.editor.marked_lines() == (6,)


def test_copy_and_save(view, qtbot):
    with qtbot.waitSignal(view.copy_requested):
        QTest.mouseClick(view.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == CODE
    assert view.copy_button.text() == "Copied"
    with qtbot.waitSignal(view.save_requested):
        QTest.mouseClick(view.save_button, Qt.MouseButton.LeftButton)


def test_without_code_it_says_what_to_do(view):
    view.show_code("", {})
    assert view.empty.isVisible() and not view.editor.isVisible()
    assert not view.copy_button.isEnabled()


def test_it_is_read_only(view):
    QTest.keyClicks(view.editor, "x")
    assert view.editor.toPlainText() == CODE


def colors_of(source: str) -> list[dict[str, str]]:
    """For each line, the colour of each piece of text that has one."""
    document = QTextDocument(source)
    highlighter = PythonHighlighter(document)
    found = []
    block = document.firstBlock()
    while block.isValid():
        found.append(
            {
                block.text()[part.start : part.start + part.length]: part.format.foreground()
                .color()
                .name()
                for part in block.layout().formats()
            }
        )
        block = block.next()
    del highlighter
    return found


def test_python_is_coloured_by_meaning(qapp):
    source = '"""Two\nlines."""\nclass Model:  # end\n    x = "a # b" + str(1.5e-3)\n'
    colors = theme.current()
    first, second, third, fourth, _ = colors_of(source)
    assert first == {'"""Two': colors.leaf}
    assert second == {'lines."""': colors.leaf}
    assert third == {"class": colors.accent, "Model": colors.text, "# end": colors.muted}
    assert fourth == {'"a # b"': colors.leaf, "str": colors.storage, "1.5e-3": colors.gradient}


def test_an_attribute_named_like_a_builtin_is_plain(qapp):
    assert colors_of("x.max(1)") == [{"1": theme.current().gradient}]


def test_colours_follow_the_theme(view, qapp):
    theme.apply(qapp, theme.DARK)
    block = view.editor.document().firstBlock()
    assert block.layout().formats()[0].format.foreground().color().name() == theme.DARK.accent


KEYWORD, STRING, COMMENT, NUMBER, BUILTIN, NAME = (
    "accent", "leaf", "muted", "gradient", "storage", "text",
)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("'''a\n''' + 1", [{"'''a": STRING}, {"'''": STRING, "1": NUMBER}]),
        ('x = """a"""; y = 2', [{'"""a"""': STRING, "2": NUMBER}]),
        ('"""a\nif 1\n"""\nif 1', [{'"""a': STRING}, {"if 1": STRING}, {'"""': STRING},
                                  {"if": KEYWORD, "1": NUMBER}]),
        ("\"\"\"a '''\n1 \"\"\"", [{"\"\"\"a '''": STRING}, {'1 """': STRING}]),
        ("'''a \"\"\"\n1 '''", [{"'''a \"\"\"": STRING}, {"1 '''": STRING}]),
        ("def print(self, n): pass", [{"def": KEYWORD, "print": NAME, "self": BUILTIN,
                                      "pass": KEYWORD}]),
        ("class if_: len", [{"class": KEYWORD, "if_": NAME, "len": BUILTIN}]),
        ("@torch.no_grad()  # why", [{"@torch.no_grad": BUILTIN, "# why": COMMENT}]),
        ("len x.len", [{"len": BUILTIN}]), ("x1 = _2", [{}]),
        ("0xFF 1_000 1.5e-3j", [{"0xFF": NUMBER, "1_000": NUMBER, "1.5e-3j": NUMBER}]),
        (r"rb'a\'b' 'open", [{r"rb'a\'b'": STRING, "'open": STRING}]),
        ("", [{}]),
    ],
)  # fmt: skip
def test_each_piece_of_python_has_its_colour(qapp, source, lines):
    colors = theme.current()
    wanted = [{text: getattr(colors, role) for text, role in line.items()} for line in lines]
    assert colors_of(source) == wanted


def test_names_that_are_defined_and_comments_have_their_face(qapp):
    document = QTextDocument("def f(): 'a' # b")
    highlighter = PythonHighlighter(document)
    parts = document.firstBlock().layout().formats()
    faces = [(part.format.fontWeight() == 600, part.format.fontItalic()) for part in parts]
    assert faces == [(True, False), (True, False), (False, False), (False, True)]
    del highlighter
