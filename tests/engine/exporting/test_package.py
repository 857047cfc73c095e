"""The archive runs where there is nothing but torch and what torch itself requires."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement

from engine.exporting.package import of_file, requirements
from engine.project import files
from engine.project.document import Model
from engine.project.subject import ConsoleSubject, FileSubject, Objective
from engine.protocol import ExportCommand, RunCellCommand, RunFileCommand
from engine.system.errors import LabError
from tests.engine.subjects.eight import CASES, SETUP

TEMPLATE = Path(__file__).parents[3] / "assets" / "templates" / "lenet.tlab"
GPT = next(case for case in CASES if case.name == "gpt")
BARE = """
import importlib.util, json, os, pathlib, sys

sys.path.append(SITE)
import torch
found = {}
for folder in FOLDERS:
    os.chdir(folder)
    before = set(sys.modules)
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location("run", pathlib.Path(folder) / "run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    example = torch.load("example.pt", weights_only=True)
    with torch.no_grad():
        output = run.load()(*example["args"], **example["kwargs"])
    found[folder] = output.tolist()
    run.main()
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]
for name in ("numpy", "safetensors", "engine"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} is here")
print(json.dumps(found))
"""


def site_with_torch_alone(folder: Path) -> Path:
    """Links to torch and to what torch requires, as pip would install them."""
    named, ahead = {"torch"}, ["torch"]
    while ahead:
        required = map(Requirement, metadata.requires(ahead.pop()) or ())
        for each in required:
            is_needed = each.marker is None or each.marker.evaluate({"extra": ""})
            if is_needed and each.name not in named:
                named.add(each.name)
                ahead.append(each.name)
    folder.mkdir()
    for name in named:
        for file in metadata.files(name) or ():
            top = file.parts[0]
            if top != ".." and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
    return folder


@pytest.fixture(scope="module")
def subjects(ask) -> dict[str, dict[str, Any]]:
    project = files.load(TEMPLATE)
    ask(RunFileCommand(path=str(GPT.path)))
    ask(RunCellCommand(source="net = nn.Linear(3, 2)\nrows = [(torch.randn(4, 3), torch.ones(4))]"))
    code = {"model": Model(), "training": SETUP}
    return {
        "canvas": {"model": project.model, "training": project.training},
        "file": {**code, "subject": GPT.subject, "objective": GPT.objective},
        "console": {
            **code, "subject": ConsoleSubject("net"), "objective": Objective(data="rows"),
        },
    }  # fmt: skip


def test_it_runs_with_torch_alone_and_gives_what_the_live_model_gives(
    ask, lab, subjects, tmp_path
) -> None:
    expected = {}
    for name, fields in subjects.items():
        path = tmp_path / f"{name}.zip"
        ask(ExportCommand(format="zip", path=str(path), verify=False, **fields))
        folder = tmp_path / name
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        example = torch.load(folder / "example.pt", weights_only=True)
        module = {
            "canvas": lambda: lab.models.live.module,
            "file": lambda: lab.subjects._made[GPT.subject, SETUP.seed].module,
            "console": lambda: lab.console.namespace.variables["net"],
        }[name]()
        with torch.no_grad():
            expected[str(folder)] = module.eval()(*example["args"], **example["kwargs"])
    site = site_with_torch_alone(tmp_path / "site")
    setting = f"SITE, FOLDERS = {str(site)!r}, {list(expected)!r}\n"
    # -S: no .pth file is read, so that a development install is not on the path either.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", setting + BARE],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for folder, output in expected.items():
        torch.testing.assert_close(torch.tensor(found[folder]), output)


def test_it_names_its_files_and_what_pip_installs(ask, subjects, tmp_path) -> None:
    path = tmp_path / "gpt.zip"
    ask(ExportCommand(format="zip", path=str(path), verify=False, **subjects["file"]))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        readme = archive.read("README.md").decode()
        assert archive.read("gpt.py") == GPT.path.read_bytes()
        begin = archive.getinfo("weights.pt").header_offset + 30 + len("weights.pt")
        assert path.read_bytes()[begin:][:2] == b"\x01\0"  # ZIP64: they may take over 4 GiB
        assert archive.read("requirements.txt").decode() == (
            f"torch=={torch.__version__.split('+')[0]}\n"
        )
    assert names == [
        "README.md",
        "example.pt",
        "gpt.py",
        "requirements.txt",
        "run.py",
        "weights.pt",
    ]
    assert all(f"- `{name}`: " in readme for name in names if name != "README.md")
    again = tmp_path / "again.zip"
    ask(ExportCommand(format="zip", path=str(again), verify=False, **subjects["file"]))
    assert again.read_bytes() == path.read_bytes()


def test_what_the_code_imports_is_required_by_the_name_of_its_package() -> None:
    source = (
        b"import os\nimport sklearn.datasets\nfrom PIL import Image\nfrom . import x\nimport net\n"
    )
    code = of_file("net.py", {"net.py": source}, "Net", is_module=False)
    found = [line.split("==")[0] for line in requirements(code)]
    assert found == ["pillow", "scikit-learn", "torch"]


def test_files_that_are_imported_go_with_it_and_a_changed_one_is_refused(
    ask, lab, tmp_path
) -> None:
    (tmp_path / "parts.py").write_text("from torch import nn\nlayer = nn.Linear(3, 2)\n")
    net = tmp_path / "net_of_parts.py"
    net.write_text("import torch\nfrom parts import layer\ndata = [(torch.ones(2, 3),)]\n")
    ask(RunFileCommand(path=str(net)))
    subject = FileSubject(str(net), "layer")
    command = ExportCommand(
        model=Model(), training=SETUP, format="zip", path=str(tmp_path / "net.zip"),
        subject=subject, objective=Objective(data="data"), verify=False,
    )  # fmt: skip
    ask(command)
    with zipfile.ZipFile(tmp_path / "net.zip") as archive:
        assert {"parts.py", "net_of_parts.py"} <= set(archive.namelist())
        assert b"return layer\n" in archive.read("run.py")
    assert isinstance(lab.subjects.file(net).variables["layer"], torch.nn.Linear)
    (tmp_path / "parts.py").write_text("layer = 1\n")
    with pytest.raises(LabError, match=r"parts\.py has changed since it ran") as refused:
        ask(command)
    assert refused.value.hint == "Run parts.py again, then export."
