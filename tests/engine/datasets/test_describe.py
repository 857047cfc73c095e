"""What a data set is told to be, against pandas and sklearn."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest
import sklearn.datasets
import torch

from engine.datasets.load import load_dataset
from engine.datasets.pictures import pictures_of
from engine.handlers import datasets as describe
from engine.handlers.datasets import describe_data
from engine.lab import Lab
from engine.project import files
from engine.project.document import Column, DataSetup, Project, TrainingSetup, Transform
from engine.protocol import ClassCount, DataSnapshot, DescribeDataCommand, encode_snapshot
from tests.engine.datasets.files import mnist, write


def described(setup: DataSetup) -> DataSnapshot:
    (snapshot,) = describe_data(Lab(emit=lambda snapshot: None), DescribeDataCommand(data=setup))
    encode_snapshot(snapshot)
    return snapshot


def test_a_table_has_counts_figures_and_first_rows() -> None:
    found = described(DataSetup("wine", {"standardise": "nothing"}, 0.0))
    source = sklearn.datasets.load_wine()
    frame = pandas.DataFrame(source.data, columns=source.feature_names).astype("float32")
    assert (found.training, found.validation, found.targets) == (178, 0, "classes")
    counts = pandas.Series(source.target).value_counts(sort=False).tolist()
    assert found.classes == tuple(ClassCount(f"class_{i}", n, 0) for i, n in enumerate(counts))
    for column in found.columns:
        values = frame[column.name].astype(float)
        told = (column.minimum, column.maximum, column.mean, column.deviation)
        assert told == pytest.approx(
            (values.min(), values.max(), values.mean(), values.std(ddof=0))
        )
    assert found.rows == tuple(tuple(row) for row in frame.head(8).to_numpy().tolist())
    assert found.target_rows == ("class_0",) * 8 and found.column_count == 13


def test_a_class_that_a_part_does_not_have_counts_none_there(tmp_path: Path) -> None:
    rows = "".join(f"{n},{'rare' if n == 9 else 'common'}\n" for n in range(20))
    path = write(tmp_path / "a.csv", f"x,y\n{rows}")
    setup = DataSetup("csv", {}, 0.25, path=str(path), stratified=False)
    found = described(setup)
    assert [each.name for each in found.classes] == ["common", "rare"]
    assert [each.training + each.validation for each in found.classes] == [19, 1]
    assert sorted((found.classes[1].training, found.classes[1].validation)) == [0, 1]
    assert (found.training, found.validation, found.stored) == (15, 5, False)


def test_numbers_have_their_targets_and_no_classes() -> None:
    found = described(DataSetup("diabetes", {"standardise": "nothing"}, 0.0))
    assert (found.targets, found.classes, found.class_count) == ("numbers", (), 0)
    assert found.target_rows[:3] == ("151", "75", "141")


def test_a_file_has_the_roles_of_its_columns_and_what_was_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,x,t,y\n1,2,u,a\n2,3\n3,4,w,b\n")
    columns = {"id": Column("ignore")}
    setup = DataSetup("csv", {"faults": "skip"}, 0.0, path=str(path), columns=columns)
    found = described(setup)
    assert [(role.name, role.column.role, role.column.type) for role in found.roles] == [
        ("id", "ignore", "auto"),
        ("x", "feature", "number"),
        ("t", "feature", "category"),
        ("y", "target", "category"),
    ]
    assert (found.skipped, found.skipped_count) == (
        ("Row 3 has 2 cells; there are 4 columns.",),
        1,
    )


def test_images_have_counts_in_both_parts_and_no_rows(tmp_path: Path) -> None:
    mnist(tmp_path)
    found = described(DataSetup("idx", path=str(tmp_path)))
    assert found.classes == (ClassCount("0", 4, 2), ClassCount("1", 4, 1), ClassCount("2", 4, 1))
    assert (found.sample_shape, found.columns, found.rows) == ((1, 5, 4), (), ())


def test_text_counts_its_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "abab☃aba")
    found = described(DataSetup("text", {"length": 3}, 0.0, path=str(path)))
    assert (found.targets, found.dtype, found.sample_shape) == ("characters", "int64", (3,))
    assert found.classes == (ClassCount("a", 2, 0), ClassCount("b", 3, 0), ClassCount("☃", 1, 0))


def test_data_beside_a_project_is_written_relative_to_it(tmp_path: Path) -> None:
    inside, outside = str(tmp_path / "p" / "data" / "a.csv"), str(tmp_path / "b.csv")
    (tmp_path / "p").mkdir()
    for path, written in ((inside, "data/a.csv"), (outside, outside)):
        project = Project(training=TrainingSetup(DataSetup("csv", path=path)))
        text = files.save(project, tmp_path / "p" / "a.tlab").decode()
        assert f'"path": "{written}"' in text
        assert files.load(tmp_path / "p" / "a.tlab").training.data.path == path


def test_images_are_shown_before_and_after_the_transforms() -> None:
    chain = (Transform("RandomCrop", {"padding": 3}), Transform("RandomHorizontalFlip", {"p": 1.0}))
    setup = DataSetup("digits", transforms=chain)
    found, data = described(setup), load_dataset(setup)
    first = data.x_train[:6]
    assert [(i.width, i.height, i.is_grey) for i in found.images] == [(8, 8, True)] * 6
    spread = first.max() - first.min()
    for told, image in zip(found.images, first, strict=True):
        grey = ((image - first.min()) / spread * 255).round().flatten().int().tolist()
        assert list(told.pixels) == grey
    assert found.image_targets == tuple(str(y) for y in data.y_train[:6].tolist())
    drawn = (data.transformed(first, 0, 0, 0) / spread * 255).round().int()
    assert [list(i.pixels) for i in found.transformed] == [i.flatten().tolist() for i in drawn]
    plain = described(DataSetup("digits"))
    assert plain.images == found.images and plain.transformed == ()
    assert described(DataSetup("iris")).images == ()


def test_large_images_are_made_smaller_and_colours_stay_together() -> None:
    x = torch.zeros(2, 3, 256, 130)
    x[0, 0], x[1, 2] = 1.0, 0.5
    red, blue = pictures_of(x, 64)
    assert (red.width, red.height, red.is_grey) == (32, 64, False)
    assert red.pixels == bytes([255, 0, 0]) * 32 * 64
    assert blue.pixels == bytes([0, 0, 128]) * 32 * 64
    assert pictures_of(torch.full((1, 2, 1, 1), 7.0), 64)[0].pixels == b"\0"


def test_what_is_told_of_much_data_has_bounds(tmp_path: Path, monkeypatch) -> None:
    bounds = {"MAX_ROWS": 2, "MAX_COLUMNS": 3, "MAX_CLASSES": 2, "MAX_IMAGES": 4, "MAX_SKIPPED": 1}
    for name, most in bounds.items():
        monkeypatch.setattr(describe, name, most)
    found = described(DataSetup("wine"))
    assert (len(found.rows), len(found.rows[0]), len(found.target_rows)) == (2, 3, 2)
    assert (len(found.columns), found.column_count) == (3, 13)
    assert (len(found.classes), found.class_count) == (2, 3)
    images = described(DataSetup("digits"))
    assert (len(images.images), len(images.image_targets), images.rows) == (4, 4, ())
    path = write(tmp_path / "a.csv", "x,t,u,y\n1,2,3,a\n2,3\n3\n3,4,5,b\n")
    table = described(DataSetup("csv", {"faults": "skip"}, 0.0, path=str(path)))
    assert (len(table.skipped), table.skipped_count) == (1, 2)
    assert [role.name for role in table.roles] == ["x", "t", "u"]
    text = described(
        DataSetup("text", {"length": 3}, 0.0, path=str(write(tmp_path / "t", "ab" * 9)))
    )
    assert (text.rows, text.columns, text.column_count, text.images) == ((), (), 0, ())
