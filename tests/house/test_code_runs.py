"""Where the program evaluates, imports by a name or unpickles: a new place is judged and listed."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLS = {"eval", "exec", "__import__", "import_module", "exec_module"}
LOADS = {
    "pickle.load", "pickle.loads", "torch.load", "torch.jit.load", "torch.export.load",
    "dcp.load", "checkpoint.load", "np.load", "numpy.load", "joblib.load",
}  # fmt: skip
PLACES = {
    # what the user types, runs or names
    ("engine/console/namespace.py", "eval"), ("engine/console/namespace.py", "exec"),
    ("engine/subjects/python_file.py", "exec"), ("engine/subjects/python_file.py", "import_module"),
    ("engine/attached/running.py", "exec"), ("engine/autograd/backward/edits.py", "eval"),
    # what that code imports, beside it
    ("engine/importing/folder_modules.py", "import_module"),
    ("engine/importing/folder_modules.py", "exec_module"),
    # what a document names, once the user has agreed
    ("engine/subjects/state.py", "eval"),
    ("engine/training/objectives/code_objective.py", "exec"),
    ("engine/subjects/model_file.py", "torch.jit.load"),
    ("engine/subjects/model_file.py", "torch.export.load"),
    # arithmetic only: a list of allowed nodes and functions
    ("engine/training/components/expressions.py", "eval"),
    # the program's own texts, and files that it has written
    ("engine/server/session.py", "import_module"),
    ("engine/handlers/training/stepping.py", "exec"),
    ("engine/operations/shapes/picking.py", "exec"),
    ("engine/exporting/code_export.py", "exec"),
    ("engine/verifier/programs.py", "exec_module"),
    ("engine/verifier/programs.py", "torch.jit.load"),
    ("engine/verifier/programs.py", "torch.export.load"),
    ("engine/verifier/converting.py", "torch.export.load"),
    ("engine/verifier/locating.py", "torch.export.load"),
    ("engine/console/elsewhere/handing.py", "torch.load"),
    ("engine/verifier/weights_readers.py", "dcp.load"),
    # names of this program's modules
    ("tensorlab.py", "import_module"), ("engine/process/spawned.py", "import_module"),
    # tensors only: weights_only=True
    *((place, "torch.load") for place in (
        "engine/exporting/weights.py", "engine/handlers/training/as_rank.py",
        "engine/training/checkpoints/checkpoint_files.py",
        "engine/training/checkpoints/rank_checkpoints.py",
        "engine/verifier/programs.py", "engine/verifier/values.py",
        "engine/verifier/weights_readers.py",
    )),
}  # fmt: skip
"""File and call. ARCHITECTURE, “What can run code”, tells by whose word each runs."""


def calls_in(path: Path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in LOADS or name.rpartition(".")[2] in CALLS - {"eval", "exec"}:
                yield (name if name in LOADS else name.rpartition(".")[2]), node
            elif name in CALLS:  # not module.eval(), nor dialog.exec()
                yield name, node


def test_each_place_that_can_run_code_is_known() -> None:
    found = set()
    sources = [
        ROOT / "tensorlab.py",
        *(p for f in ("app", "engine", "widgets") for p in (ROOT / f).rglob("*.py")),
    ]
    for path in sources:
        place = path.relative_to(ROOT).as_posix()
        for name, call in calls_in(path):
            found.add((place, name))
            words = {word.arg: ast.unparse(word.value) for word in call.keywords}
            if name == "torch.load" and place != "engine/console/elsewhere/handing.py":
                assert words.get("weights_only") == "True", f"{place}:{call.lineno}"
            assert words.get("allow_pickle", "False") == "False", f"{place}:{call.lineno}"
    assert found == PLACES
