"""Every template and eight models as people write them, in every format: verified in another
process, or refused with the reason of that format."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.project import files
from engine.protocol import ExportCommand, ExportSnapshot, RunFileCommand
from engine.protocol.exporting.formats import FORMATS
from engine.system.errors import LabError
from tests.engine.subjects.eight import CASES, SETUP

TEMPLATES = Path(__file__).parents[3] / "assets" / "templates"
NO_PYTHON = "Only a model of blocks is written as Python"
BRANCH = r"A branch or a loop of its Python depends on .*adaptive\.py, line 26: while n <"
PACKED = r"failed to unpack the object.*packed_lstm\.py, line 23"
FUNCTION = "Could not export Python function call 'Swish'"
REFUSED = {
    **{(case.name, "py"): NO_PYTHON for case in CASES},
    ("adaptive", "pt2"): BRANCH,
    ("adaptive", "onnx"): f"ONNX, which torch.export begins.*{BRANCH}",
    ("adaptive", "torchscript-trace"): "Only tensors, lists, tuples of tensors",
    ("packed_lstm", "pt2"): PACKED,
    ("packed_lstm", "onnx"): PACKED,
    ("custom_function", "torchscript-trace"): FUNCTION,
    ("custom_function", "torchscript-script"): rf"{FUNCTION}.*custom_function\.py, line 60",
}
SIZES = {"resnet": (1, 2, 5, 6), "gpt": (1, 2, 5, 12), "packed_lstm": (1, 2, 5),
         "vae": (1, 2, 5, 6), "siamese": (1, 2, 5, 8), "custom_function": (1, 2, 5, 8)}  # fmt: skip
"""1, 2 and 5, and the size of the first batch; in the others this is 4."""
TEMPLATE_NAMES = [path.stem for path in sorted(TEMPLATES.glob("*.tlab"))]


@pytest.fixture(scope="module")
def subjects(ask) -> dict[str, dict[str, Any]]:
    """The fields of a command for each of them."""
    found = {}
    for name in TEMPLATE_NAMES:
        project = files.load(TEMPLATES / f"{name}.tlab")
        found[name] = {"model": project.model, "training": project.training}
    for case in CASES:
        ask(RunFileCommand(path=str(case.path)))
        found[case.name] = {
            "model": project.model, "training": SETUP,
            "subject": case.subject, "objective": case.objective,
        }  # fmt: skip
    return found


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", [*TEMPLATE_NAMES, *(case.name for case in CASES)])
def test_it_is_verified_or_refused(name, format, ask, subjects, verifier, tmp_path) -> None:
    row = FORMATS[format]
    path = tmp_path / f"net{row.suffix}"
    command = ExportCommand(format=format, path=str(path), **subjects[name])
    if (name, format) in REFUSED:
        with pytest.raises(LabError, match=f"(?s){REFUSED[name, format]}") as refused:
            ask(command)
        assert refused.value.hint and list(tmp_path.iterdir()) == []
        return
    *_, done = ask(command)
    assert isinstance(done, ExportSnapshot)
    is_random = name == "vae" and row.group != "Weights"
    assert done.verified == (not is_random) and done.differs == ""
    assert ("gives different outputs in two runs in eval mode" in done.unverified) == is_random
    assert {file.name for file in done.files} == set(row.file_names(str(path)))
    assert done.size_bytes == sum((tmp_path / file.name).stat().st_size for file in done.files)
    if row.group == "Weights":
        assert (done.max_abs_error, done.max_rel_error, done.batch_sizes) == (0.0, 0.0, ())
    else:
        assert done.max_abs_error < 1e-6 and done.batch_sizes == SIZES.get(name, (1, 2, 4, 5))
        assert done.model_ms > 0 and done.export_ms > 0
    assert any("1 of 3 outputs are drawn at random" in note for note in done.notes) == is_random


@pytest.mark.parametrize("name", ["lenet", "gpt"])
def test_a_package_in_half_precision_makes_its_module_so(
    name, ask, subjects, verifier, tmp_path
) -> None:
    path = tmp_path / "net.zip"
    *_, done = ask(ExportCommand(format="zip", path=str(path), dtype="bfloat16", **subjects[name]))
    assert done.verified and done.differs == ""
    with zipfile.ZipFile(path) as archive, archive.open("weights.pt") as file:
        state = torch.load(file, weights_only=True)
    floats = {each.dtype for each in state.values() if each.is_floating_point()}
    assert floats == {torch.bfloat16}


def test_the_errors_are_those_of_onnx_runtime_beside_plain_torch(
    ask, subjects, verifier, tmp_path
) -> None:
    import onnxruntime

    from engine.verifier.values import read_cases
    from tests.engine.subjects.eight import imported

    path = tmp_path / "net.onnx"
    *_, done = ask(ExportCommand(format="onnx", path=str(path), **subjects["custom_function"]))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,), (told,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape, told.name) == ("x", ["batch", 4], "output")
    case = next(case for case in CASES if case.name == "custom_function")
    with imported(case.path) as file:
        model = case.model(file).eval()
    absolute = relative = 0.0
    for run in read_cases(str(verifier.folder / "cases.pt")):
        (x,) = run.args
        with torch.no_grad():
            expected = model(x).double()
        (found,) = session.run(None, {"x": x.numpy()})
        apart = (expected - torch.from_numpy(found).double()).abs()
        absolute = max(absolute, apart.max().item())
        relative = max(relative, (apart / expected.abs()).max().item())
    assert done.max_abs_error == pytest.approx(absolute, rel=1e-9)
    assert done.max_rel_error == pytest.approx(relative, rel=1e-9)
