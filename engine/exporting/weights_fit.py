"""How the tensors of a weights file fit a module: by name, also after a prefix is taken off. Names
of both are compared as they are without torch.compile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..recording.compiled import own_path

_PART = re.compile(r"[./]")
PREFIXES = ("module.", "model.", "net.", "state_dict.")
"""Prefixes that DataParallel, Lightning and usual wrappers put before the names."""


@dataclass(frozen=True)
class Fit:
    """`matched` names each tensor of the module that a tensor of the file fits, with its name in
    the file; `missing`, `unexpected` and `misshapen` are the names of the others (those of
    `misshapen` are in both). The file's names have lost the prefix `without` and got the prefix
    `before`."""

    matched: Mapping[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshapen: Mapping[str, str]
    without: str = ""
    before: str = ""

    @property
    def is_renamed(self) -> bool:
        return bool(self.without or self.before)

    @property
    def is_whole(self) -> bool:
        """Whether every tensor of the module is matched."""
        return not self.missing and not self.misshapen

    def renamed(self, key: str) -> str:
        """The name of a tensor of the file, as it is looked for in the module."""
        return self.before + own_path(key).removeprefix(self.without)

    @property
    def renaming(self) -> str:
        """The renaming in words; "" if there is none."""
        words = []
        if self.without:
            words.append(f"“{self.without}” is taken off the names of the file")
        if self.before:
            words.append(f"“{self.before}” is put before the names of the file")
        return ", and ".join(words)


def find_fit(state: Mapping[str, Tensor], module: nn.Module) -> Fit:
    """The fit with as many matched tensors as any prefix gives; with the names as they are, if a
    prefix gives no more.

    A tensor that stands under several names in the module needs only one of them in the file.
    """
    own = tensors_of(module)
    best = _fit(state, own, "", "")
    if best.is_whole:
        return best
    for without in sorted(_prefixes(state), key=len):
        for before in sorted(_prefixes(own), key=len):
            fit = _fit(state, own, without, before)
            if len(fit.matched) > len(best.matched):
                best = fit
    return best


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """The tensors of the state_dict themselves, so that those under several names are seen."""
    state = module.state_dict(keep_vars=True)
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}


def load_fit(state: Mapping[str, Tensor], module: nn.Module, fit: Fit) -> None:
    """Copy the tensors that fit into the module; the others of the module stay as they are."""
    module.load_state_dict({own: state[key] for own, key in fit.matched.items()}, strict=False)


def under_names(state: Mapping[str, Tensor], branches: Mapping[str, str]) -> dict[str, Tensor]:
    """The tensors with the names of modules in place of the branches that these stand for; other
    tensors keep their names."""
    names = {branch: name for name, branch in branches.items()}
    found = {}
    for key, tensor in state.items():
        ends = [match.start() for match in _PART.finditer(key)]
        end = next((end for end in reversed(ends) if key[:end] in names), None)
        if end is not None:
            key = names[key[:end]] + key[end:].replace("/", ".", 1)
        elif "" in names:
            key = f"{names['']}.{key}"
        found[key] = tensor
    return found


def _prefixes(names: Mapping[str, Tensor]) -> set[str]:
    """All chains of known prefixes before the names, the empty one too."""
    found = {""}
    for name in map(own_path, names):
        end = 0
        while prefix := next((p for p in PREFIXES if name.startswith(p, end)), ""):
            end += len(prefix)
            found.add(name[:end])
    return found


def _fit(state: Mapping[str, Tensor], own: Mapping[str, Tensor], without: str, before: str) -> Fit:
    renamed = {before + own_path(key).removeprefix(without): key for key in state}
    matched, misshapen = {}, {}
    for name, tensor in own.items():
        key = renamed.get(own_path(name))
        if key is not None:
            fits = is_lazy(tensor) or tensor.shape == state[key].shape
            (matched if fits else misshapen)[name] = key
    held = {id(own[name]) for name in matched}
    used = {*matched.values(), *misshapen.values()}
    return Fit(
        matched,
        tuple(name for name in own if own_path(name) not in renamed and id(own[name]) not in held),
        tuple(key for key in state if key not in used),
        misshapen,
        without,
        before,
    )
