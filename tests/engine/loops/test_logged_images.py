"""Images that loops log, against their own pixels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.handlers.training.pictures.looks import read_images
from engine.loops import logged
from engine.loops.images import MOST_IMAGES, STEP_BYTES, look_at_images
from engine.loops.logged import LoggedTensors, image
from engine.protocol import (
    MAX_IMAGE_STEPS,
    MAX_SNAPSHOT_BYTES,
    ImagesSnapshot,
    ReadImagesCommand,
    SampleImage,
    encode_snapshot,
)
from tests.engine.loops.test_own_loops import BEGIN, Desk

BYTES = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5)


def pixels(shown: SampleImage) -> Tensor:
    """(C, H, W)"""
    channels = 1 if shown.is_grey else 3
    flat = torch.frombuffer(bytearray(shown.pixels), dtype=torch.uint8)
    return flat.reshape(shown.height, shown.width, channels).movedim(2, 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (BYTES[0, 0], BYTES[:1, :1]),
        (BYTES[0], BYTES[:1]),
        (BYTES[0].movedim(0, 2), BYTES[:1]),
        (BYTES, BYTES),
        (BYTES.movedim(1, 3), BYTES),
        (BYTES[:, 0], BYTES[:, :1]),  # two grey images
        (torch.cat([BYTES[0], BYTES[1, :1]]), BYTES[:1]),  # the fourth channel is left out
        (BYTES[:1].float() / 255, BYTES[:1]),
    ],
)
def test_all_usual_shapes_are_shown_pixel_by_pixel(values: Tensor, expected: Tensor) -> None:
    found = look_at_images(values, 7)
    assert (found.step, found.shape, found.count) == (7, tuple(values.shape), len(expected))
    assert (found.low, found.high) == ((0, 255) if values.dtype == torch.uint8 else (0, 1))
    for shown, each in zip(found.images, expected, strict=True):
        assert torch.equal(pixels(shown), each)


def test_other_numbers_reach_from_black_to_white() -> None:
    values = torch.tensor([[-2.0, 2.0], [6.0, float("nan")], [float("inf"), float("-inf")]])
    found = look_at_images(values, 1)
    assert (found.low, found.high) == (-2, 6)
    assert pixels(found.images[0]).flatten().tolist() == [0, 128, 255, 0, 255, 0]
    assert look_at_images(torch.full((2, 2), float("nan")), 1).high == 1
    assert look_at_images(torch.full((2, 2), 3.0), 1).images[0].pixels == bytes(4)


def test_large_images_are_made_smaller_by_the_mean() -> None:
    torch.manual_seed(0)
    values = torch.rand(3, 146, 292)
    (shown,) = look_at_images(values, 1).images
    assert (shown.height, shown.width) == (36, 73)
    area = torch.nn.functional.interpolate(values[None], (36, 73), mode="area")[0]
    assert torch.equal(pixels(shown), (area * 255).round().to(torch.uint8))
    for many in (torch.rand(9, 1, 300, 20), torch.rand(9, 3000, 3100, 3)):
        images = look_at_images(many, 1).images
        assert len(images) == MOST_IMAGES
        assert sum(len(each.pixels) for each in images) <= STEP_BYTES


def test_of_sides_of_more_than_1024_each_second_row_or_column_is_read() -> None:
    values = torch.arange(1025 * 4, dtype=torch.float32).reshape(1025, 4) % 97
    for whole, fewer in ((values, values[::2]), (values.T, values.T[:, ::2])):
        assert look_at_images(whole, 1).images == look_at_images(fewer, 1).images
    assert look_at_images(values[:1024], 1).images != look_at_images(values[:1024:2], 1).images


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([[0.0, 1.0]], (0.0, 1.0)),
        ([[0.25, 0.5]], (0.0, 1.0)),
        ([[0.0, 1.5]], (0.0, 1.5)),
        ([[-0.5, 1.0]], (-0.5, 1.0)),
        ([[2.0, 3.0]], (2.0, 3.0)),
    ],
)
def test_the_ends_are_those_of_the_numbers_unless_they_lie_between_0_and_1(
    values: list[list[float]], ends: tuple[float, float]
) -> None:
    found = look_at_images(torch.tensor(values), 1)
    assert (found.low, found.high) == ends


def test_of_two_dimensions_that_may_be_channels_the_smaller_is() -> None:
    values = torch.arange(4 * 2 * 3, dtype=torch.uint8).reshape(4, 2, 3)
    (shown,) = look_at_images(values, 1).images
    assert torch.equal(pixels(shown), values.movedim(2, 0))
    (shown,) = look_at_images(values.movedim(0, 2).movedim(1, 0), 1).images
    assert torch.equal(pixels(shown), values.movedim(0, 2).movedim(1, 0)[:3])
    even = torch.arange(27, dtype=torch.uint8).reshape(3, 3, 3)
    assert torch.equal(pixels(look_at_images(even, 1).images[0]), even)  # (C, H, W)


LOOP = """
for step in range(1, 4):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    weight = lab.image(net[0].weight)
    lab.log(weight=weight, step=step, pair=lab.image(torch.stack([x[:4], x[4:8]])[:, None] * step))
    optimizer.step()
"""


def ask(desk: Desk, name: str = "") -> ImagesSnapshot:
    (found,) = read_images(desk.session.lab, ReadImagesCommand(name=name))
    return found


def test_images_of_a_loop_are_read_by_name() -> None:
    desk = Desk()
    assert not desk.run(
        BEGIN + LOOP.replace("weight=weight, ", "").replace("pair=", "pair=0 and ")
    )[-1].has_images
    loops = desk.run(BEGIN + LOOP)
    assert loops[-1].has_images
    found = ask(desk)
    assert (found.name, found.names) == ("weight", ("weight", "pair"))
    assert [each.step for each in found.steps] == [1, 2, 3]
    pair = ask(desk, "pair").steps
    x = desk.variables["x"]
    assert [each.count for each in pair] == [2, 2, 2]
    assert pair[2].high == float(3 * x[:8].max())
    newest = desk.session.lab.console.namespace.tensor("lab.logged['pair']")
    assert torch.equal(newest, 3 * torch.stack([x[:4], x[4:8]])[:, None])
    assert not desk.run(BEGIN + LOOP.replace("lab.log(", "dict("))[-1].has_images
    desk.session.close()


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2, 2), (0, 4), (1, 1, 3, 4, 5)])
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    desk = Desk()
    desk.run(f"lab.log(a=lab.image(torch.zeros({shape})))")
    assert desk.end.error is not None and f"not shape {shape}" in desk.end.error.message
    desk.session.close()


def test_many_steps_take_bounded_memory_and_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged, "SHARE", 1e9)
    desk = Desk()
    tensors: LoggedTensors = desk.session.lab.console.namespace.lab.tensors
    for step in range(1, 201):
        tensors.add({"x": image(torch.full((128, 128), step / 200))}, step)
    assert len(tensors.images("x")) <= logged.MAX_IMAGES
    found = ask(desk)
    steps = [each.step for each in found.steps]
    assert len(steps) == MAX_IMAGE_STEPS and (steps[0], steps[-1]) == (1, 200)
    assert len(found.steps[0].images[0].pixels) == STEP_BYTES
    assert len(encode_snapshot(found)) < MAX_SNAPSHOT_BYTES
    desk.session.close()
