"""Cells of a Python file: where `# %%` marks begin them, and their line numbers."""

from __future__ import annotations

import pytest

from engine.project.cells import source_title, split_cells

FILE = '''"""What it is."""
import torch

# %% first
x = torch.ones(2)
if True:
    y = x


#%%

# %%
z = 1
'''


def test_marks_begin_cells_and_empty_ones_are_dropped():
    cells = split_cells(FILE)
    assert [cell.first_line for cell in cells] == [1, 4, 12]
    assert cells[1].source == "# %% first\nx = torch.ones(2)\nif True:\n    y = x"
    assert cells[2].source == "# %%\nz = 1"


def test_each_cell_is_the_files_text_from_its_first_line_on():
    lines = FILE.split("\n")
    for cell in split_cells(FILE):
        source = cell.source.split("\n")
        assert lines[cell.first_line - 1 :][: len(source)] == source


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_the_line_ends_of_other_systems_are_read_as_ours(end):
    assert split_cells(FILE.replace("\n", end)) == split_cells(FILE)


def test_a_file_without_marks_is_one_cell_and_an_empty_one_none():
    assert [cell.source for cell in split_cells("a = 1\r\nb = 2\r\n")] == ["a = 1\nb = 2"]
    assert split_cells(" \n\n") == ()


@pytest.mark.parametrize(
    ("file", "title"),
    [
        ("<cell 3>", "cell 3"),
        ("<example #2>", "example"),
        ("/home/me/train.py", "train.py"),
        ("/tmp/ipykernel_4711/1731203886.py", "notebook cell"),
        ("/home/me/ipykernel_notes/17.py", "17.py"),
        ("", ""),
    ],
)
def test_what_a_reader_calls_the_file_of_code(file: str, title: str) -> None:
    assert source_title(file) == title
