"""Two folders with files of the same names: the code of each finds its own, whatever runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from engine.project.document import DataSetup, Loading, Model, TrainingSetup
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    ErrorSnapshot,
    FileSnapshot,
    ReadStructureCommand,
    RunFileCommand,
    StructureSnapshot,
    TrainCommand,
    TrainingSnapshot,
)
from engine.protocol.structure_commands import CompareSubjectsCommand

USE = """
    import torch
    from model import Net

    model = Net()
    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 3, (16,)))
"""
MODEL = """
    from torch import nn

    class Net(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Linear(4, {width}), nn.ReLU(), nn.Linear({width}, 3))

        def forward(self, x):
            {late}
            self.where = late.WHERE
            return super().forward(x)
"""
WAYS = [
    "import late",
    "from late import WHERE; import late",
    "import importlib; late = importlib.import_module('late')",
    "import importlib, late; late = importlib.reload(late)",
    "import pkg.late as late",
    "import pkg.sub.deeper as deeper; late = deeper.late",
]


@pytest.fixture(params=WAYS)
def two(write, request) -> tuple[Path, Path]:
    """The `use.py` of two folders; each class imports `late` first when it is called."""
    for folder, width in (("p1", 8), ("p2", 5)):
        write(f"{folder}/model.py", MODEL.format(width=width, late=request.param))
        where = f"WHERE = {folder!r}\n"
        write(f"{folder}/late.py", where)
        write(f"{folder}/pkg/__init__.py", "")
        write(f"{folder}/pkg/late.py", where)
        write(f"{folder}/pkg/sub/__init__.py", "")
        write(f"{folder}/pkg/sub/deeper.py", "from .. import late\n")
    return write("p1/use.py", USE), write("p2/use.py", USE)


def ran(engine, path: Path):
    answers = engine.ask(RunFileCommand(path=str(path)))
    assert isinstance(answers[-1], FileSnapshot), answers[-1]
    return engine.lab.subjects.file(path)


def width_of(engine, path: Path, name: str = "model") -> int:
    answer = engine.ask(
        ReadStructureCommand(subject=FileSubject(str(path), name), training=TrainingSetup())
    )[0]
    assert isinstance(answer, StructureSnapshot), answer
    return engine.lab.subjects.file(path).variables[name][0].out_features


def test_each_file_has_the_model_of_its_folder_also_in_a_late_import(engine, two):
    first, second = (ran(engine, path) for path in two)
    x = torch.ones(2, 4)
    for _ in range(2):
        for file, where, width in ((first, "p1", 8), (second, "p2", 5)):
            model = file.variables["model"]
            assert width_of(engine, file.path) == width
            assert model(x).shape == (2, 3) and model.where == where
    # and while those of the other folder are current
    first.modules.become_current()
    second.variables["model"](x)
    assert second.variables["model"].where == "p2" and sys.modules["model"].Net().modules
    assert isinstance(first.variables["model"], sys.modules["model"].Net)


def test_two_subjects_in_one_command(engine, two):
    for path in two:
        ran(engine, path)
    command = CompareSubjectsCommand(
        subject=FileSubject(str(two[0]), "model"),
        other=FileSubject(str(two[1]), "model"),
        training=TrainingSetup(),
        objective=Objective(data="data"),
    )
    engine.ask(command)
    found = [engine.lab.subjects.file(path).variables["model"] for path in two]
    assert [getattr(model, "where", None) for model in found] in (["p1", "p2"], [None, None])


def test_a_helper_that_was_edited_is_taken_anew(engine, write):
    helper, use = write("helper.py", "size = 3\n"), write("use.py", "from helper import size\n")
    first = ran(engine, use)
    write("helper.py", "size = 4\n")  # in the same second, of the same size
    assert helper.stat().st_size == 9
    second = ran(engine, use)
    assert (first.variables["size"], second.variables["size"]) == (3, 4)


def test_an_earlier_run_keeps_its_helper(engine, write):
    write("helper.py", "size = 3\n")
    use = write("use.py", "import helper\ndef late():\n    import helper\n    return helper\n")
    first = ran(engine, use)
    write("helper.py", "size = 4\n")
    second = ran(engine, use)
    assert [file.variables["late"]().size for file in (first, second)] == [3, 4]
    assert first.variables["late"]() is first.variables["helper"]


def test_a_folder_that_code_adds_to_sys_path_is_its_own(engine, write):
    use = "import sys, pathlib\nsys.path.append(str(pathlib.Path(__file__).parent / 'src'))\n"
    use += "import shapes\ndef late():\n    import later\n    return shapes.size, later.size\n"
    files = []
    for folder, size in (("p1", 1), ("p2", 2)):
        write(f"{folder}/src/shapes.py", f"size = {size}\n")
        write(f"{folder}/src/later.py", f"size = {size}\n")
        files.append(ran(engine, write(f"{folder}/use.py", use)))
    assert [file.variables["late"]() for file in files] == [(1, 1), (2, 2)]


def test_the_module_of_another_project_is_no_substitute(engine, write):
    """What only the other folder has is missing here."""
    write("p1/helper.py", "")
    ran(engine, write("p1/use.py", "import helper\n"))
    answers = engine.ask(RunFileCommand(path=str(write("p2/use.py", "import helper\n"))))
    assert isinstance(answers[-1], ErrorSnapshot)
    assert answers[-1].error.type == "ModuleNotFoundError"


DATA = """
    import torch
    from rows import Rows

    data = Rows()
"""
ROWS = """
    import torch
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            import late
            return torch.full((4,), late.VALUE), i % 3
"""


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_find_the_modules_of_data_in_another_folder(engine, write, start):
    for folder, value in (("p1", 1.0), ("p2", 2.0)):
        write(f"{folder}/rows.py", ROWS)
        write(f"{folder}/late.py", f"VALUE = {value}\n")
    write("p1/model.py", MODEL.format(width=8, late="import late; late.WHERE = 0"))
    use, data = write("p1/use.py", USE), write("p2/data.py", DATA)
    source = "def step(model, batch):\n    x, y = batch\n    seen.update(x.unique().tolist())\n"
    source += "    return torch.nn.functional.cross_entropy(model(x), y)\nseen = set()\n"
    use.write_text(use.read_text() + source)
    for path in (use, data):
        ran(engine, path)
    loading = Loading(workers=1, start_method=start)
    setup = TrainingSetup(epochs=1, batch_size=2, data=DataSetup(loading=loading))
    subject = FileSubject(str(use), "model")
    objective = Objective(data=f"{data}:data")
    answers = engine.ask(
        TrainCommand(model=Model(), training=setup, subject=subject, objective=objective)
    )
    end = [each for each in answers if isinstance(each, TrainingSnapshot | ErrorSnapshot)][-1]
    assert isinstance(end, TrainingSnapshot), end
    assert end.state == "finished", end.error
    assert engine.lab.subjects.file(use).variables["seen"] == {2.0}
