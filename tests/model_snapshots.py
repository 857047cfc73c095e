"""What the engine finds in a model that has no block yet."""

from __future__ import annotations

from engine.protocol import ModelSnapshot


def model_snapshot(**changes) -> ModelSnapshot:
    """`changes` are the fields that differ."""
    fields = {
        "blocks": (),
        "parameters": 0,
        "parameter_bytes": 0,
        "activation_bytes": 0,
        "problems": (),
        "runnable": True,
        "code": "",
        "lines": {},
    }
    return ModelSnapshot(**fields | changes)
