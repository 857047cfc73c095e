"""The wheel: what is in it, and that it works where the checkout is not in sight."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A folder that holds the wheel's packages, as in site-packages."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with `site` as the only place of ours: away from the checkout, and without the
    `.pth` file of the editable install that `-m tensorlab` would otherwise find first."""
    code = (
        f"import sys; sys.path = [{str(site)!r}] + [p for p in sys.path if p != {str(ROOT)!r}];"
        "import runpy; sys.argv = sys.argv[1:];"
        "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=site,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_wheel_is_one_package_with_every_file_of_the_four_folders(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"tensorlab"}
    assert {"tensorlab/__init__.py", "tensorlab/__main__.py"} <= names
    ours = {
        f"tensorlab/{path.relative_to(ROOT).as_posix()}"
        for folder in ("app", "widgets", "engine", "assets")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", "screenshots"} & set(path.parts)
    }
    # Moved, not copied: it serves `python -m tensorlab` there.
    assert ours - names == {"tensorlab/app/__main__.py"}


STEPPING = """\
import torch
from PLACE.autograd import read_graph, BackwardStepper

x = torch.tensor(3.0, requires_grad=True)
loss = (2 * x) ** 3
graph = read_graph(loss)
stepper = BackwardStepper(loss, gradient=None, create_graph=False)
while (step := stepper.step()) is not None:
    print(step.node.name, step.incoming, step.outgoing)
assert x.grad == 6 * 36 and len(graph.edges) == len(graph.nodes) - 1 == 2
node, incoming = graph.nodes[1], torch.tensor(10.0)
stepper.back(); stepper.run_to(node); stepper.edit(node, incoming); stepper.run(); stepper.close()
assert x.grad == 20, x.grad
"""


IMPORTING = """\
import pkgutil, importlib, sys
import tensorlab.engine as engine
names = [m.name for m in pkgutil.walk_packages(engine.__path__, "tensorlab.engine.")]
for name in names:
    if not name.endswith("__main__"): importlib.import_module(name)
assert "tensorlab.engine.protocol.codec" in sys.modules
general = {"app", "widgets", "engine", "PySide6"} & set(sys.modules)
assert not general, general
print(engine.__file__, file=sys.stderr)
"""


def test_the_library_is_used_alike_when_installed_and_in_a_checkout(installed, capsys):
    """Installed, it also imports whole, without general names."""
    script = installed / "script.py"
    script.write_text(STEPPING.replace("PLACE", "tensorlab.engine") + IMPORTING)
    done = _run(installed, "script")
    assert done.returncode == 0, done.stderr
    assert Path(done.stderr.strip()).is_relative_to(installed)
    exec(STEPPING.replace("PLACE", "engine"), {})
    assert capsys.readouterr().out == done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "PowBackward0",
        "MulBackward0",
        "AccumulateGrad",
    ]


def test_the_installed_program_runs(installed):
    done = _run(installed, "tensorlab", "--help")
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


def test_the_installed_program_refuses_bad_arguments(installed):
    assert _run(installed, "tensorlab", "--no-such-option").returncode == 2
