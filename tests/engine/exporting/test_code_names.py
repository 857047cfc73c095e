"""The user's code in a script: which names become those of a file, and which statements come."""

from __future__ import annotations

import ast
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.console.journal import Cell
from engine.exporting.code_names import CodeNames
from engine.importing.folder_modules import FolderModules
from engine.restoring.random_states import random_states
from engine.subjects.python_file import PythonFile
from engine.system.errors import LabError


class Owner:
    pass


OWNER = Owner()


def cell(source: str, draws: bool = False) -> Cell:
    before = random_states()
    if draws:
        torch.rand(1)
    return Cell(weakref.ref(OWNER), source, "", before, random_states())


def file(path: str, name: str = "", **variables: Any) -> PythonFile:
    module = ModuleType(name or Path(path).stem)
    module.__dict__.update(variables)
    folder = Path(path).parent
    return PythonFile(Path(path), folder, module, "5f", {}, FolderModules(folder))


def names(*cells: Cell, **variables: Any) -> CodeNames:
    return CodeNames(cells, variables, {})


def test_names_of_a_file_become_attributes_of_its_module() -> None:
    net = file(
        "/a/my net.py", torch=torch, F=len, size=3, max=max, len=sum, __doc__="", Net=nn.Module
    )
    found = names()
    assert found.expression(" Net(size, x) ", net) == "my_net_py.Net(my_net_py.size, x)"
    # What the script has by itself stays; another thing by that name is the file's.
    assert found.expression("torch.ones(max(size, 1))", net) == "torch.ones(max(my_net_py.size, 1))"
    assert found.expression("F(len)", net) == "my_net_py.F(my_net_py.len)"
    assert found.expression("__doc__", net) == "__doc__"
    assert found.expression("[size for size in (1, 2)]", net) == "[size for size in (1, 2)]"


def test_each_file_has_a_name_of_its_own() -> None:
    found = names()
    files = [file(f"/{folder}/net.py", net=folder) for folder in "abc"]
    assert [found.expression("net", each) for each in (*files, files[0], files[2])] == [
        "net_py.net", "net_py2.net", "net_py3.net", "net_py.net", "net_py3.net",
    ]  # fmt: skip
    lines = found.source()
    assert lines.count("def imported(") == 1
    assert lines.index("net_py = imported(") < lines.index("net_py2 = imported(")
    given = ast.literal_eval(lines.partition("net_py2 = imported")[2].split("\nnet_py3")[0])
    assert given == ("net_py2", "/b/net.py", "/b", "5f")


def test_files_that_each_import_a_module_of_their_own_by_one_name_are_refused() -> None:
    found, files = names(), [file("/a/net.py", net=1), file("/b/data.py", data=1)]
    helper = ModuleType("helper")
    helper.__file__ = "/a/helper.py"
    for each in files:
        each.modules.modules["helper"] = helper
    assert found.expression("net", files[0]) == "net_py.net"
    assert found.expression("data", files[1]) == "data_py.data"
    assert "net_py = imported(" in found.source()  # one helper for both
    other = files[1].modules.modules["helper"] = ModuleType("helper")
    other.__file__ = "/b/helper.py"
    with pytest.raises(LabError, match=r"/b/data\.py each import a `helper`") as refused:
        found.source()
    assert refused.value.hint == "Give /a/helper.py or /b/helper.py another name."


def test_a_file_gives_way_to_a_module_that_another_file_imports_by_its_name() -> None:
    found, files = names(), [file("/a/net.py", net=1), file("/b/use.py", data=1)]
    helper = files[0].modules.modules["use"] = ModuleType("use")
    helper.__file__ = "/a/use.py"
    found.expression("net", files[0])
    found.expression("data", files[1])
    assert "'use_py'," in found.source() and "'use'," not in found.source()


def test_a_module_whose_name_a_library_has_is_called_otherwise_in_the_script() -> None:
    found = names()
    found.expression("net", file("/a/torch.py", "tensorlab_file_torch", net=1))
    assert "'torch_py'," in found.source() and "tensorlab" not in found.source()


def test_the_generators_are_restored_before_a_file_that_has_drawn() -> None:
    saved: dict[str, Any] = {}
    found = CodeNames((), {}, saved)
    torch.manual_seed(7)
    states = random_states()
    drew = file("/a/net.py", net=1)
    drew = PythonFile(
        drew.path, drew.root, drew.module, "5f", {}, drew.modules, {"cuda": (), **states}
    )
    found.expression("net", drew)
    before, _, _ = found.source().partition("net_py = imported(")
    assert "torch.manual_seed(7)\n" in before and "random.setstate((" in before
    assert "np.random.set_state(" in before and "cuda" not in before
    assert len(saved) == 2


def test_a_step_reads_what_the_file_has() -> None:
    net = file("/a/net.py", F=F, scale=len, weight=3, model=4)
    source = (
        "def step(batch):\n    x, y = batch\n    return scale(F.mse_loss(model(x), y)) * weight\n"
    )
    assert names().step(source, net) == (
        f"scale = net_py.scale\nweight = net_py.weight\n\n\n{source}"
    )
    plain = "def step(batch):\n    return model(batch)\n"
    assert names().step(plain, net) == plain


def test_a_step_of_the_console_wants_its_cells() -> None:
    found = names(cell("scale = 2"), cell("other = 3"), scale=2)
    source = "def step(batch):\n    return model(batch) * scale"
    assert found.step(source, None) == source
    assert found.source() == "scale = 2"


@pytest.mark.parametrize("name", ["lab", "canvas"])
@pytest.mark.parametrize("of", [None, file("/a/net.py")])
def test_a_step_that_uses_what_only_the_program_has_is_refused(name: str, of: Any) -> None:
    with pytest.raises(LabError, match=f"The step uses `{name}`, which only the program has"):
        names().step(f"def step(batch):\n    return {name}.log(model(batch))", of)
    own = f"{name} = print\ndef step(batch):\n    return {name}(batch)"
    assert own in names().step(own, of)


def test_a_cell_that_drew_comes_whole_with_the_generators_as_they_were() -> None:
    torch.manual_seed(3)
    cells = [cell("a = 1\nb = 2"), cell("x = draw(a)\ny = 5", draws=True), cell("z = b\nw = 1")]
    found = names(*cells, draw=None, a=1, x=0)
    assert found.expression(" x + z ", None) == "x + z"
    with pytest.raises(LabError, match="No cell that ran makes `draw`") as refused:
        found.source()
    assert "Make `draw` in a cell" in refused.value.hint
    found = names(cell("draw = abs"), *cells, draw=abs, a=1, x=0)
    found.expression("x + z", None)
    assert found.source() == (
        "draw = abs\na = 1\nb = 2\ntorch.manual_seed(3)\nx = draw(a)\ny = 5\nz = b"
    )


def test_what_the_script_imports_need_not_be_in_a_cell() -> None:
    found = names(cell("net = nn.Linear(2, 2)"), net=1)
    found.expression("TensorDataset(net(torch.ones(2)), model, Path(sys.path[0]))", None)
    assert found.source() == "net = nn.Linear(2, 2)"


def test_a_name_of_the_scripts_own_is_refused() -> None:
    found = names(cell("save = 2\nnp = 3\ntorch = 4\nnn = 5\nmodel = 6"), save=2, np=3, nn=nn)
    found.expression("save + np + nn + model", None)
    found.source()
    for own, model, refused in (
        (["save"], "model", "save"), (["other"], "net", "model"), (["other"], "model", ""),
        (["np", "save"], "model", "np"), (["nn"], "model", ""),
    ):  # fmt: skip
        if not refused:
            found.check(own, model)
            continue
        with pytest.raises(LabError, match=f"The script has a `{refused}` of its own"):
            found.check(own, model)


def test_names_that_a_step_makes_for_itself_are_refused_too() -> None:
    found = names()
    found.step(
        "import os.path as save, json.tool\ndef step(batch):\n    return used",
        file("/n.py", used=1),
    )
    found.check(["step", "os", "tool", "batch"], "net")
    for own in ("save", "json", "used"):
        with pytest.raises(LabError, match=f"`{own}` of its own"):
            found.check([own], "net")


def test_a_seeded_cell_that_ran_twice_keeps_its_seed() -> None:
    """The second time it leaves the generator as it found it."""
    source = "torch.manual_seed(2)\nrows = torch.rand(3)"
    torch.manual_seed(2)
    torch.rand(3)
    found = names(cell(source), rows=torch.ones(3))
    assert found.expression("rows", None) == "rows"
    assert source in found.source()
