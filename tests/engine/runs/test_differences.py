"""In which settings two runs differ."""

from __future__ import annotations

from engine.project.document import Block, DataSetup, Model, Project, TrainingSetup, Wire, replace
from engine.project.subject import FileSubject, Objective
from engine.runs.difference import differences

MODEL = Model(
    (
        Block("1", "Input", "x", {"shape": (2,)}),
        Block("2", "nn.Linear", "linear", {"in_features": 2, "out_features": 3}),
    ),
    (Wire("1", "output", "2", "input"),),
)
PROJECT = Project(model=MODEL, training=TrainingSetup(optimizer_params={"lr": 0.1}))


def told(other: Project) -> list[tuple[str, str, str]]:
    return [(row.name, row.first, row.second) for row in differences(PROJECT, other)]


def test_equal_settings_have_no_difference_wherever_blocks_stand() -> None:
    moved = replace(MODEL, blocks=(replace(MODEL.blocks[0], x=99.0), MODEL.blocks[1]))
    assert told(replace(PROJECT, model=moved, name="other")) == []


def test_each_setting_is_named() -> None:
    training = replace(
        PROJECT.training,
        optimizer_params={"weight_decay": 0.01},
        data=DataSetup("moons", {"samples": 100}),
    )
    assert told(replace(PROJECT, training=training)) == [
        ("data.kind", "digits", "moons"),
        ("optimizer_params.lr", "0.1", ""),
        ("data.params.samples", "", "100"),
        ("optimizer_params.weight_decay", "", "0.01"),
    ]


def test_blocks_and_wires_are_compared_by_name() -> None:
    wider = replace(MODEL.blocks[1], params={"in_features": 2, "out_features": 4})
    model = Model((MODEL.blocks[0], wider, Block("3", "nn.ReLU", "relu")), ())
    assert told(replace(PROJECT, model=model)) == [
        ("blocks.linear.out_features", "3", "4"),
        ("wires.linear.input", "x.output", ""),
        ("blocks.relu", "", "nn.ReLU"),
    ]


def test_another_subject_and_its_data_are_told() -> None:
    other = replace(PROJECT, subject=FileSubject("net.py", "Net()"), objective=Objective("data"))
    assert told(other) == [
        ("subject.type", "canvas", "file"),
        ("objective.data", "", "data"),
        ("subject.path", "", "net.py"),
        ("subject.expression", "", "Net()"),
    ]
