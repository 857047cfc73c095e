"""The changes of the fixes that problems offer."""

from __future__ import annotations

from ..document import Project
from ..problems import LOSS, Fix
from .blocks import set_param
from .loss import set_loss


def apply_fix(project: Project, fix: Fix) -> Project:
    if fix.param == LOSS:
        return set_loss(project, str(fix.value))
    return set_param(project, fix.block, fix.param, fix.value)
