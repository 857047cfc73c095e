"""The files of examples and mistakes: each is read, runs as a plain script, and a faulty file is
refused with a reason."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from engine.project import examples
from engine.project.examples import ExampleProblem, GraphExample, load

ALL = {
    "mistakes": examples.mistakes,
    "examples/graph": examples.graph_examples,
    "examples/trace": examples.trace_examples,
    "examples/derivatives": examples.derivative_examples,
}
FILES = [path for folder in ALL for path in sorted((examples.FOLDER / folder).iterdir())]


def test_every_python_file_of_the_assets_is_read():
    scripts = set(
        (examples.FOLDER / "scripts").glob("*.py")
    )  # to attach to; they run by themselves
    assert scripts
    assert set(FILES) == set(examples.FOLDER.rglob("*.py")) - scripts


@pytest.mark.parametrize("folder", ALL)
def test_a_folder_is_read_in_the_order_of_its_numbers(folder):
    names = sorted(path.stem for path in (examples.FOLDER / folder).iterdir())
    assert [name[:2] for name in names] == [f"{i:02}" for i in range(1, len(names) + 1)]
    found = ALL[folder]()
    assert list(found) == [name[3:] for name in names] == [each.key for each in found.values()]
    assert len({each.title for each in found.values()}) == len(found) > 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_runs_by_plain_python(path):
    """Of a mistake the right code; the wrong code is for `test_mistakes`."""
    text = re.sub(r"(?s)^# %% wrong\n.*?(?=^# %%)", "", path.read_text(), flags=re.M)
    exec(compile(text, str(path), "exec"), {"__name__": "example"})


def test_reading_them_needs_no_torch():
    code = "import sys; from engine.project import examples; examples.mistakes(); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


GOOD = """\
# title: Twice
# tip: A sentence: it goes on
#   in another line.
# root: y

import torch

# %% code

x = 1

y = 2 * x

"""


@pytest.fixture
def put(tmp_path):
    def put(text: str, name: str = "01_twice.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return put


def test_fields_go_on_and_parts_are_code(put):
    found = load(put(GOOD), GraphExample)
    tip = "A sentence: it goes on in another line."
    assert found == {"twice": GraphExample("twice", "Twice", tip, "x = 1\n\ny = 2 * x\n", "y")}


def test_what_is_no_python_file_is_left_alone(put):
    put("notes", "README.md")
    assert list(load(put(GOOD), GraphExample)) == ["twice"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (GOOD.replace("# title: Twice\n", ""), "title: missing."),
        (GOOD.replace("# %% code", ""), "code: missing."),
        (GOOD.replace("# root: y", "# roots: y"), "roots: no such field; there are key, title,"),
        (GOOD.replace("# %% code", "# %% cod"), "cod: no such field"),
        (GOOD.replace("# %% code", "# %%"), "this line is not a field: # %%"),
        (GOOD.replace("# root: y", "# root: "), "root: empty."),
        (GOOD + "# %% code\nx = 2\n", "code: said twice."),
        (GOOD.replace("# root: y", "# title: y"), "title: said twice."),
        (GOOD.replace("# root: y", "# y is the root"), "this line is not a field: # y is the root"),
        ("#   goes on\n" + GOOD, "this line is not a field: #   goes on"),
        (GOOD.replace("x = 1\n\ny = 2 * x\n", ""), "code: empty."),
    ],
)
def test_a_file_at_fault_is_named_with_the_field(put, changed, words):
    with pytest.raises(ExampleProblem) as caught:
        load(put(changed), GraphExample)
    assert "01_twice.py: " in str(caught.value) and words in str(caught.value)


def test_the_name_of_a_file_is_a_number_and_a_key(put):
    with pytest.raises(ExampleProblem, match=r"twice\.py: the name must be two digits"):
        load(put(GOOD, "twice.py"), GraphExample)


def test_two_files_of_one_key_are_told(put):
    put(GOOD)
    with pytest.raises(ExampleProblem, match=r"02_twice\.py: .*the key twice"):
        load(put(GOOD, "02_twice.py"), GraphExample)


def test_a_missing_folder_is_no_empty_list(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "gone", GraphExample)
