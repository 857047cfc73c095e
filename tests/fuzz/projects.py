"""Broken project files: each is refused in words, or opens, is checked, saved and opened again."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path

from engine.models.check import check
from engine.project import files, wiring
from engine.protocol import (
    CheckModelCommand,
    decode_command,
    decode_snapshot,
    encode_command,
    encode_snapshot_or_error,
)
from tests.fuzz.mutate import broken_bytes, damaged

TEMPLATES = Path(__file__).parents[2] / "assets" / "templates"


class Projects:
    """Makes one broken project file a call, and tries it."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        paths = sorted(TEMPLATES.glob("*.tlab"))
        self._bases = [path.read_bytes() for path in paths]
        self._documents = [json.loads(base) for base in self._bases]
        for document in self._documents:
            document["cells"] = [{"id": "c1", "source": "x = 1"}]

    def make(self) -> bytes:
        random_ = self._random
        if random_.random() < 0.25:
            return broken_bytes(random_.choice(self._bases), random_)
        document = damaged(random_.choice(self._documents), random_)
        text = json.dumps(document, ensure_ascii=random_.random() < 0.7)
        if random_.random() < 0.03:  # more digits than Python itself writes
            text = text.replace(": 1", f": 1{'9' * 5000}", 1)
        return text.encode(errors="surrogatepass")

    @staticmethod
    def attempt(data: bytes) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        try:
            project = files.loads(data)
        except files.FileProblem as problem:
            assert str(problem).strip()
            str(problem).encode()
            return "refused"
        text = files.dumps(project)
        assert files.dumps(files.loads(text.encode())) == text
        wiring.check(project.model)
        command = CheckModelCommand(model=project.model, training=project.training)
        command = decode_command(encode_command(command))
        assert isinstance(command, CheckModelCommand)
        report = check(command.model, command.training)
        decode_snapshot(encode_snapshot_or_error(report))
        if report.code and report.runnable:
            _require_model_only(report.code)
        return "opened"


def _require_model_only(code: str) -> None:
    """The Python of a model is imports and one class: no value of the file became a statement."""
    tree = ast.parse(code)
    body = tree.body
    allowed = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Expr, ast.If)
    assert all(isinstance(statement, allowed) for statement in body), code
    assert all(
        isinstance(statement.value, ast.Constant)
        for statement in body
        if isinstance(statement, ast.Expr)
    ), code
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "__import__" not in names, code
