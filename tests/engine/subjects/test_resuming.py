"""A run goes on only from a checkpoint of its own subject."""

from __future__ import annotations

import pytest

from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, FileSubject, Objective, Subject
from engine.protocol import (
    FindCheckpointCommand,
    LoadWeightsCommand,
    RunCellCommand,
    RunFileCommand,
    TrainCommand,
)
from engine.system.errors import LabError

SETUP = TrainingSetup(batch_size=4, epochs=1, seed=1)
DATA = Objective("data")
CODE = """
first, second = nn.Linear(3, 1), nn.Linear(3, 1)
data = torch.randn(12, 3), torch.randn(12, 1)
"""


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))


def train(ask, subject: Subject, checkpoint: str = "") -> str:
    """Returns the path of the last checkpoint."""
    command = TrainCommand(
        model=Model(), training=SETUP, subject=subject, objective=DATA, checkpoint=checkpoint
    )
    last = ask(command)[-1]
    assert (last.state, last.error) == ("finished", None)
    return last.checkpoint


def found(ask, subject: Subject) -> str:
    (answer,) = ask(FindCheckpointCommand(model=Model(), training=SETUP, subject=subject))
    return answer.path


def test_a_checkpoint_of_another_subject_is_refused_in_words_and_not_offered(lab, ask):
    ask(RunCellCommand(source=CODE))
    first, second = ConsoleSubject("first"), ConsoleSubject("second")
    path = train(ask, first)
    variables = lab.console.namespace.variables
    before = variables["second"].weight.clone()
    assert (found(ask, first), found(ask, second)) == (path, "")
    words = "The checkpoint is of another subject: first, now second."
    with pytest.raises(LabError, match=words) as caught:
        train(ask, second, path)
    assert "load the checkpoint as weights" in caught.value.hint
    assert variables["second"].weight.equal(before)
    assert train(ask, first, path) == path
    ask(LoadWeightsCommand(path=path, subject=second, model=Model(), training=SETUP))
    assert variables["second"].weight.equal(variables["first"].weight)


def test_a_file_that_has_moved_is_the_same_subject_and_a_second_one_is_not(ask, write):
    source = f"import torch\nfrom torch import nn\n{CODE}"
    there, here = write("there/net.py", source), write("here/net.py", source)
    for path in (there, here):
        ask(RunFileCommand(path=str(path)))
    then, now = (FileSubject(str(path), "first") for path in (there, here))
    checkpoint = train(ask, then)
    assert found(ask, now) == ""
    with pytest.raises(LabError, match=r"of another subject: .*there/net\.py: first, now net"):
        train(ask, now, checkpoint)
    there.unlink()
    assert found(ask, now) == checkpoint
    train(ask, now, checkpoint)
