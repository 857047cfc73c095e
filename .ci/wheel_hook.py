"""What only a real wheel gets: tensorlab.py as the package's `__init__.py`, beside the folders.

As plain `force-include` in pyproject.toml an editable install would get copies of them too, and
these would hide the checkout's.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            # Hatchling puts the package's name (`sources` in pyproject.toml) before these.
            build_data["force_include"]["tensorlab.py"] = "__init__.py"
            build_data["force_include"]["app/__main__.py"] = "__main__.py"
