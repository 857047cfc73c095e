"""Questions about a data set, and their answers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..project.document import Column, DataSetup
from .commands import Command
from .snapshots import Snapshot

MAX_CLASSES = 100
MAX_COLUMNS = 200
MAX_ROWS = 8
MAX_SKIPPED = 50
MAX_IMAGES = 6
MAX_IMAGE_SIDE = 64


class DescribeDataCommand(Command, frozen=True, kw_only=True):
    """Read a data set and tell what is in it -> DataSnapshot. A file is read again only after it
    has changed."""

    handler = "datasets:describe_data"
    newest_only = True
    data: DataSetup


class ClassCount(Struct, frozen=True):
    """How many samples of a class (or how many of a character) the two parts have."""

    name: str
    training: int
    validation: int


class ColumnFigures(Struct, frozen=True):
    """A column of a table over the training samples, as the model gets it."""

    name: str
    minimum: float
    maximum: float
    mean: float
    deviation: float


class NamedColumn(Struct, frozen=True):
    """A column of the file, with the role and the type that it has."""

    name: str
    column: Column


class SampleImage(Struct, frozen=True):
    """A sample of shape (C, H, W), made smaller if it is large: `pixels` are width * height bytes
    of grey, or three times as many of red, green and blue. 0 is the least value of all images that
    are shown beside it, 255 the largest."""

    width: int
    height: int
    is_grey: bool
    pixels: bytes


class DataSnapshot(Snapshot, frozen=True, kw_only=True):
    """The contents of a data set. `targets` says what a sample's target is. `classes` and `columns`
    are the first ones, of `class_count` and `column_count`. `roles` are the columns of a file.
    `rows` are the first training samples of a table, `target_rows` their targets. `skipped` are the
    first ones of `skipped_count`. `images` are the first training samples, if they are images,
    `image_targets` theirs, and `transformed` the same after the transforms that a batch draws.
    Samples that are `stored` are read from their files batch by batch."""

    title: str
    training: int
    validation: int
    sample_shape: tuple[int, ...]
    dtype: str
    targets: Literal["classes", "numbers", "characters"]
    classes: tuple[ClassCount, ...] = ()
    class_count: int = 0
    columns: tuple[ColumnFigures, ...] = ()
    column_count: int = 0
    roles: tuple[NamedColumn, ...] = ()
    rows: tuple[tuple[float, ...], ...] = ()
    target_rows: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    skipped_count: int = 0
    images: tuple[SampleImage, ...] = ()
    image_targets: tuple[str, ...] = ()
    transformed: tuple[SampleImage, ...] = ()
    stored: bool = False
