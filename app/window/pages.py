"""The pages of the window: the workspaces, and the file that is open."""

from __future__ import annotations

from typing import Literal

from engine.project.document import WORKSPACES, Workspace

Page = Workspace | Literal["files"]
PAGES: tuple[Page, ...] = (*WORKSPACES, "files")
