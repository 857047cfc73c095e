"""The names of modules that torch.compile has wrapped, and which are wrapped."""

from __future__ import annotations

import pytest
from torch import nn

from engine.recording.compiled import has_compiled_parts, own_modules, own_path, unwrapped


class Wrapper(nn.Module):
    """As torch.compile's: the module is its `_orig_mod`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._orig_mod = module


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("", ""),
        ("enc.0.weight", "enc.0.weight"),
        ("enc._orig_mod.0.weight", "enc.0.weight"),
        ("_orig_mod.enc._orig_mod", "enc"),
        ("my_orig_mod.weight", "my_orig_mod.weight"),
        ("_orig_mod", ""),
    ],
)
def test_a_path_is_told_without_the_wrapper(path: str, own: str) -> None:
    assert own_path(path) == own


def test_the_users_modules_are_named_without_their_wrappers() -> None:
    inner = nn.Sequential(nn.Linear(2, 2))
    model = nn.Sequential(Wrapper(inner), nn.ReLU())
    assert [(path, torchs) for path, _, torchs in own_modules(model)] == [
        ("", ""), ("0", "0._orig_mod"), ("0.0", "0._orig_mod.0"), ("1", "1"),
    ]  # fmt: skip
    assert unwrapped(model[0]) is inner and unwrapped(inner) is inner
    twice = nn.Sequential(inner, inner)
    assert [path for path, *_ in own_modules(twice)] == ["", "0", "0.0"]
    paths = [path for path, *_ in own_modules(twice, remove_duplicate=False)]
    assert paths == ["", "0", "0.0", "1", "1.0"]


def test_a_part_is_compiled_if_it_is_wrapped_or_has_compiled_calls() -> None:
    plain = nn.Sequential(nn.Linear(2, 2))
    assert not has_compiled_parts(plain)
    assert has_compiled_parts(nn.Sequential(Wrapper(plain)))
    plain[0]._compiled_call_impl = lambda x: x
    assert has_compiled_parts(plain)
