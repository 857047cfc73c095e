"""The wheel: what is in it, and that it works where the checkout is not in sight. The sdist has the
same metadata."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _built(target: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return _built("wheel", tmp_path_factory.mktemp("dist"))


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


LICENSES = [
    "LICENSE",
    "assets/data/digits-LICENSE.txt",
    "assets/fonts/mono-LICENSE.txt",
    "assets/fonts/sans-LICENSE.txt",
]


def _license_fields(metadata: Message) -> tuple[str | None, list[str]]:
    return metadata["License-Expression"], sorted(metadata.get_all("License-File", []))


def test_the_wheel_names_its_license_and_carries_it_and_those_of_fonts_and_data(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    assert _license_fields(message_from_bytes(archive.read(metadata))) == ("MIT", LICENSES)
    folder = metadata.removesuffix("METADATA") + "licenses/"
    for name in LICENSES:
        assert archive.read(folder + name) == (ROOT / name).read_bytes()
    text = archive.read(folder + "LICENSE").decode()
    assert text.startswith("MIT License\n\nCopyright (c) 2026 the Tensor Lab authors\n")


def test_the_sdist_names_and_carries_them_too(tmp_path):
    with tarfile.open(_built("sdist", tmp_path)) as archive:
        files = {name.partition("/")[2]: name for name in archive.getnames()}
        metadata = archive.extractfile(files["PKG-INFO"])
        assert metadata is not None
        assert _license_fields(message_from_bytes(metadata.read())) == ("MIT", LICENSES)
        assert set(LICENSES) <= set(files)


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
