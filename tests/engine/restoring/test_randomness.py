"""Random numbers: a stream of a run's own, and states that a line of Python restores."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from engine.restoring.random_states import (
    drawn_from,
    random_states,
    restoring_line,
    states_kept,
    torch_states_kept,
)
from engine.restoring.randomness import NUMPY, PYTHON, WORDS, RandomStream, is_state

CPU = torch.device("cpu")


def after_seed(seed: int, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, generator=generator)


def test_a_stream_draws_as_after_its_seed_and_leaves_the_usual_numbers_alone() -> None:
    stream, usual = RandomStream(5, CPU), after_seed(1, 4)
    torch.manual_seed(1)
    drawn = [torch.rand(1)]
    with stream:
        own = [torch.rand(2)]
        with stream.suspended():
            drawn.append(torch.rand(2))
        own.append(torch.rand(1))
    with stream.suspended():  # outside of the stream it changes nothing
        drawn.append(torch.rand(1))
    with stream:
        own.append(torch.rand(1))
    assert torch.equal(torch.cat(drawn), usual)
    assert torch.equal(torch.cat(own), after_seed(5, 4))


def test_an_error_gives_the_usual_numbers_back() -> None:
    stream = RandomStream(5, CPU)
    torch.manual_seed(1)
    with pytest.raises(ValueError), stream, stream.suspended():
        raise ValueError
    assert torch.equal(torch.rand(2), after_seed(1, 2))


def test_a_stream_goes_on_from_a_saved_state() -> None:
    stream = RandomStream(5, CPU)
    before = stream.state()
    with stream:
        torch.rand(2)
        inside = stream.state()
    assert torch.equal(inside["cpu"], stream.state()["cpu"])
    assert not torch.equal(before["cpu"], inside["cpu"])
    other = RandomStream(8, CPU)
    other.restore({**inside, "cuda": torch.zeros(1, dtype=torch.uint8)})
    assert other.state().keys() == {"cpu"}
    with other:
        assert torch.equal(torch.rand(2), after_seed(5, 4)[2:])


def drawn() -> list[float]:
    """Of each kind that leaves a normal number in store."""
    return [np.random.rand(), np.random.standard_normal(), random.random(), random.gauss(0, 1)]


def test_a_stream_of_code_has_the_generators_of_numpy_and_python_too() -> None:
    np.random.seed(2)
    random.seed(2)
    expected = [drawn() for _ in range(4)]
    np.random.seed(2)
    random.seed(2)
    stream = RandomStream(5, CPU, of_code=True)
    usual = RandomStream(5, CPU)
    with stream:
        assert drawn() == expected[0]
        state = stream.state()
        with stream.suspended():
            assert drawn() == expected[0]  # as if the stream had drawn nothing
        assert drawn() == expected[1]
        stream.restore(state)
        assert drawn() == expected[1]
    assert drawn() == expected[1]
    later = RandomStream(7, CPU, of_code=True)
    later.restore(state)
    with later:
        assert [drawn(), drawn()] == expected[1:3]
    assert state.keys() == {"cpu", NUMPY, PYTHON}
    assert stream.state(of_code=False).keys() == usual.state().keys() == {"cpu"}


@pytest.mark.parametrize("name", [NUMPY, PYTHON])
def test_what_is_no_state_of_a_generator_is_known(name: str) -> None:
    state = RandomStream(5, CPU, of_code=True).state()[name]
    assert is_state(name, state) and not is_state("cpu", state)
    assert not is_state(name, state[:-1]) and not is_state(name, torch.zeros_like(state))
    for number, value in enumerate((WORDS + 1, 2, float("nan"))):
        wrong = state.clone()
        wrong[4 * WORDS :].view(torch.float64)[number] = value
        assert not is_state(name, wrong)


DRAWS = {
    "torch": lambda: torch.rand(3).tolist(),
    "numpy": lambda: np.random.rand(3).tolist(),
    "random": lambda: [random.random() for _ in range(3)],
}


@pytest.mark.parametrize("generator", DRAWS)
@pytest.mark.parametrize("drawn_before", [0, 2])
def test_a_line_restores_the_state_of_a_generator(generator: str, drawn_before: int) -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    for _ in range(drawn_before):
        DRAWS[generator]()
    np.random.standard_normal()  # one more waits inside the generator
    state, data = random_states()[generator], {"torch 1": torch.zeros(1)}
    expected = DRAWS[generator]()
    assert random_states()[generator] != state
    line = restoring_line(generator, state, data, "kept")
    scope: dict[str, Any] = {"torch": torch, "np": np, "random": random, "kept": data}
    exec(line, scope)
    assert DRAWS[generator]() == expected
    if generator == "torch" and not drawn_before:
        assert line == "torch.manual_seed(3)" and len(data) == 1
    else:
        assert list(data)[1] == f"{generator} 2"


def test_the_line_of_the_gpus_has_a_state_for_each() -> None:
    data: dict[str, torch.Tensor] = {}
    line = restoring_line("cuda", (bytes([1, 2]), bytes([3, 4])), data, "kept")
    assert line == 'torch.cuda.set_rng_state_all(list(kept["cuda 1"]))'
    assert data["cuda 1"].tolist() == [[1, 2], [3, 4]] and data["cuda 1"].dtype == torch.uint8


def test_states_are_equal_only_while_nothing_is_drawn() -> None:
    before = random_states()
    assert random_states() == before
    for draw in DRAWS.values():
        held = random_states()
        draw()
        assert random_states() != held


def test_what_code_has_drawn_from_is_told_by_its_state_before() -> None:
    torch.manual_seed(3)
    before = random_states()
    assert drawn_from(before, random_states()) == {}
    DRAWS["numpy"]()
    assert drawn_from(before, random_states()) == {"numpy": before["numpy"]}
    torch.rand(1)
    assert drawn_from(before, random_states()).keys() == {"torch", "numpy"}
    torch.manual_seed(4)  # then the code repeats itself
    assert drawn_from(before, random_states()).keys() == {"numpy"}
    assert before["torch"][1] == 3


def test_the_generators_stand_afterwards_where_they_stood() -> None:
    before = random_states()
    with pytest.raises(ValueError), states_kept():
        for draw in DRAWS.values():
            draw()
        raise ValueError
    assert random_states() == before


def test_the_generators_of_all_gpus_stand_where_they_stood_if_gpus_are_in_use(monkeypatch) -> None:
    states = {number: torch.full((16,), number, dtype=torch.uint8) for number in range(2)}
    before = {number: state.clone() for number, state in states.items()}
    fakes = {
        "device_count": lambda: 2,
        "get_rng_state": lambda device: states[device].clone(),
        "set_rng_state": lambda state, device: states[device].copy_(state),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with torch_states_kept():
        states[0].fill_(7)
    assert states[0].tolist() == [7] * 16
    states[0].fill_(0)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(ValueError, match="mine"), torch_states_kept():
        for state in states.values():
            state.fill_(9)
        raise ValueError("mine")
    assert all(torch.equal(states[number], before[number]) for number in states)
