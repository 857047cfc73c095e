"""How a command of the command line fails: in one message, with an exit code."""

from __future__ import annotations

FAILED = 1
BAD_ARGUMENTS = 2


class CommandFailure(Exception):
    """`str` is what to print; `exit_code` is FAILED, or BAD_ARGUMENTS when nothing was tried."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
