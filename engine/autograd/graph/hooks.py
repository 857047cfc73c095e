"""The hooks that the user's code registered on a node and its tensors, counted and not called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from .reading import Node


def hooks_on(node: Node, tensors: Iterable[torch.Tensor] = (), own: int = 0) -> str:
    """The hooks in words, as "2 tensor hooks, retain_grad"; "" if there are none.

    `own` is the number of node hooks of each kind that are ours, not the user's. `tensors` are
    results of the node: only the tensor knows its tensor hooks and retain_grad. A leaf's tensor is
    found without being given.
    """
    counts: dict[str, int] = {
        "node pre-hook": len(registered(node.fn.register_prehook)) - own,
        "node hook": len(registered(node.fn.register_hook)) - own,
    }
    retained = across = 0
    leaf = [] if node.variable is None else [node.variable]
    for tensor in {id(t): t for t in (*tensors, *leaf)}.values():
        hooks = list((tensor._backward_hooks or {}).values())
        multi = sum(_is_multi_grad(hook) for hook in hooks)
        across += multi
        counts["tensor hook"] = counts.get("tensor hook", 0) + len(hooks) - multi
        after = getattr(tensor, "_post_accumulate_grad_hooks", None) or ()
        counts["post-accumulate hook"] = counts.get("post-accumulate hook", 0) + len(after)
        retained += not tensor.is_leaf and tensor.retains_grad
    words = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n > 0]
    if retained:
        words.append("retain_grad")
    if across:
        alone = "" if own else " (each step is a backward of its own to it: hold the real engine)"
        words.append(f"{across} multi-grad hook{'s' if across > 1 else ''}{alone}")
    return ", ".join(words)


def _is_multi_grad(hook: Any) -> bool:
    """Whether a tensor hook is part of a `register_multi_grad_hook`, which waits within one
    backward until all its tensors have gradients."""
    code = getattr(hook, "__code__", None)
    return code is not None and code.co_qualname.startswith("register_multi_grad_hook.")


def registered(register: Callable[[Any], Any]) -> list[Any]:
    """The hooks that `register`, a node's `register_hook` or `register_prehook`, has registered.
    They are in one dict, which the handle of one more hook refers to."""
    handle = register(lambda *_: None)
    try:
        hooks = handle.hooks_dict_ref() or {}
        return [hook for number, hook in hooks.items() if number != handle.id]
    finally:
        handle.remove()
