"""The failure of a command: one message and an exit code."""

from __future__ import annotations

FAILED = 1
BAD_ARGUMENTS = 2


class CommandFailure(Exception):
    """`str` is the message to print; `exit_code` is FAILED, or BAD_ARGUMENTS if nothing was
    tried."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
