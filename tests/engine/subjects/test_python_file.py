"""A file of the user's runs as `import` would run it, and says what it holds."""

from __future__ import annotations

import pickle
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from engine.lab import Lab
from engine.protocol import FileSnapshot, OutputSnapshot, RunFileCommand
from engine.subjects.python_file import PythonFile, objects_in
from engine.system.current_modules import no_modules
from engine.system.errors import LabError


@pytest.fixture
def run(lab: Lab):

    def run_file(path: Path) -> PythonFile:
        return lab.subjects.run_file(path, lab.output(), lab.control)

    return run_file


def test_what_stands_under_main_does_not_run(run, write):
    source = 'name = __name__\nif __name__ == "__main__":\n    name = "ran"\n'
    file = run(write("only_here.py", source))
    assert file.variables["name"] == "only_here"
    assert file.variables["__file__"] == str(file.path)


def test_it_sees_the_arguments_of_python_file(run, write):
    before = sys.argv
    file = run(write("net.py", "import sys\narguments = sys.argv\n"))
    assert file.variables["arguments"] == [str(file.path)] and sys.argv is before


def test_its_folder_is_that_of_python_file_at_each_run(run, write, tmp_path, monkeypatch):
    """A relative path starts where the program was started, and after `os.chdir` where that leads,
    also later in a function."""
    folder = tmp_path / "started" / "here"
    folder.mkdir(parents=True)
    (tmp_path / "started" / "word.txt").write_text("outer")
    (folder / "word.txt").write_text("inner")
    monkeypatch.chdir(tmp_path / "started")
    source = "import os\nfrom pathlib import Path\nfirst = Path('word.txt').read_text()\n"
    source += "os.chdir('here')\ndef later():\n    return Path('word.txt').read_text()\n"
    path = write("net.py", source + "print(first, later())\n")
    printed = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert printed.stdout == "outer inner\n"
    for _ in range(2):
        file = run(path)
        assert (file.variables["first"], file.variables["later"]()) == ("outer", "inner")


def test_it_imports_what_lies_beside_it_also_later_in_a_function(run, write):
    write("parts.py", "size = 3\n")
    write("late.py", "size = 4\n")
    file = run(
        write(
            "net.py",
            """
            import parts
            size = parts.size
            def later():
                import late
                return late.size
            """,
        )
    )
    assert file.variables["size"] == 3
    assert file.variables["later"]() == 4
    with no_modules():
        assert str(file.path.parent) not in sys.path and "parts" not in sys.modules
        assert file.variables["later"]() == 4


def test_a_file_of_a_package_runs_in_it(run, write):
    write("zoo/__init__.py", "animals = 2\n")
    write("zoo/deep/__init__.py", "")
    write("zoo/deep/parts.py", "legs = 4\n")
    file = run(write("zoo/deep/net.py", "from .parts import legs\nfrom .. import animals\n"))
    assert file.module.__name__ == "zoo.deep.net"
    assert (file.variables["legs"], file.variables["animals"]) == (4, 2)


def test_classes_can_be_pickled_as_workers_need_it(run, write):
    file = run(write("items.py", "class Item:\n    pass\n"))
    item = file.variables["Item"]()
    assert type(pickle.loads(pickle.dumps(item))) is type(item)  # what ran last stays current


def test_it_and_what_lies_beside_it_run_again(run, write):
    write("parts.py", "size = 3\n")
    path = write("net.py", "from parts import size\n")
    first = run(path)
    parts = write("parts.py", "size = 30\n")
    path.write_text("from parts import size\nsize += 1\n")
    second = run(path)
    assert second.variables["size"] == 31
    assert first.digest != second.digest and first.imports.keys() == {parts}
    assert first.imports != second.imports == {parts: sha256(parts.read_bytes()).hexdigest()}


def test_what_it_imports_is_told_wherever_it_lies_below(run, write):
    write("zoo/__init__.py", "")
    legs = write("zoo/legs.py", "n = 4\n")
    beside = write("other.py", "n = 5\n")
    run(write("first.py", "import other\n"))
    file = run(write("net.py", "import json, torch\nfrom zoo.legs import n\n"))
    assert file.imports.keys() == {legs, legs.with_name("__init__.py")}
    assert beside not in file.imports  # another file has imported it


def test_a_file_named_as_a_library_does_not_take_its_place(run, write):
    import json

    file = run(write("json.py", "here = True\n"))
    assert file.variables["here"] and sys.modules["json"] is json
    assert file.module.__name__ == "tensorlab_file_json"


def test_a_file_that_raises_leaves_no_module(run, write):
    path = write("broken.py", "x = 1\nraise KeyError('no')\n")
    with pytest.raises(KeyError):
        run(path)
    assert "broken" not in sys.modules and sys.path[0] != str(path.parent)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read: No such file"), (b"x = '\xff'\n", "is not Python source")],
)
def test_a_file_that_is_no_source_is_told(run, tmp_path, content, words):
    path = tmp_path / "x.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LabError, match=words):
        run(path)


def test_its_objects_are_listed(run, write):
    file = run(
        write(
            "net.py",
            """
            from functools import partial
            import torch
            from torch import nn
            from torch.nn import Linear
            from torch.utils.data import DataLoader, TensorDataset

            class Net(nn.Linear):
                def __init__(self, size, bias=True, **more):
                    super().__init__(size, size, bias)

            def make(width=3):
                return Net(width)

            def loss(x, y):
                return x - y

            model = make()
            criterion = nn.MSELoss()
            method = model.forward
            half = partial(loss, y=0.5)
            x = torch.zeros(4, 3)
            pair = (x, x)
            data = TensorDataset(x)
            loader = DataLoader(data, 2)
            number = 3
            _hidden = make()
            """,
        )
    )
    told = [(o.name, o.kind, o.type, o.required) for o in objects_in(file)]
    assert told == [
        ("Net", "class", "Net", ("size",)),
        ("make", "function", "function", ()),
        ("loss", "function", "function", ("x", "y")),
        ("model", "module", "Net", ()),
        ("criterion", "module", "MSELoss", ()),
        ("method", "function", "method", ("input",)),
        ("half", "function", "partial", ("x",)),
        ("pair", "data", "tuple", ()),
        ("data", "data", "TensorDataset", ()),
        ("loader", "data", "DataLoader", ()),
    ]
    assert [o.name for o in objects_in(file) if o.takes_tensors] == ["loss", "method", "half"]
    assert [o.name for o in objects_in(file) if o.is_bare] == ["criterion"]


def test_the_command_answers_with_objects_and_output(lab, ask, write):
    told: list = []
    lab.emit = told.append
    (answer,) = ask(RunFileCommand(path=str(write("net.py", "print('hello')\nimport torch.nn\n"))))
    assert isinstance(answer, FileSnapshot) and answer.objects == ()
    assert "".join(s.text for s in told if isinstance(s, OutputSnapshot)) == "hello\n"
