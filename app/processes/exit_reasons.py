"""Why the engine ended, in words, and what to do next."""

from __future__ import annotations

import signal
import sys

from msgspec import Struct

from engine.process import Departure

_CRASHES = {
    "SIGSEGV": "it accessed memory that is not its own",
    "SIGBUS": "it accessed memory that does not exist",
    "SIGILL": "it ran an instruction that this processor does not have",
    "SIGFPE": "native code divided an integer by zero",
    "SIGABRT": "native code aborted",
}
_WINDOWS_ACCESS_VIOLATION = 0xC0000005


class ExitReason(Struct, frozen=True):
    """`title` fits on one line. `detail` is what is known, with the end of the engine's log if
    there is one. `next_step` is what the user can do."""

    title: str
    detail: str
    next_step: str
    was_attached: bool = False
    """The engine was in a process of the user's."""
    can_reconnect: bool = False
    """The process that the window was attached to may still listen."""


def explain_exit(
    code: int,
    *,
    running: str = "",
    checkpoint_step: int | None = None,
    log: str = "",
    oom_kills: int | None = None,
    gave_up_waiting: bool = False,
    garbled: bool = False,
) -> ExitReason:
    """Describe an engine's end in words.

    `code` is its exit code, or minus the number of the signal that ended it. `running` says what it
    was doing (`"training"`); `checkpoint_step` is the step of the run's last checkpoint.
    `oom_kills` is the number of processes that the system killed for lack of memory while the
    engine lived; None if it is not known. `gave_up_waiting`: the window killed the engine, because
    it did not answer to Stop. `garbled`: the window killed it, because it sent bytes that are no
    message.
    """
    if gave_up_waiting:
        title = "The engine did not answer to Stop and was ended"
        detail = "It ran code that cannot be interrupted."
    elif garbled:
        title = "The engine sent what the window cannot read, and was ended"
        detail = "Something in its process wrote to the pipe between the two."
    elif code == -_number("SIGKILL"):
        title, detail = _killed(oom_kills)
    elif code < 0:
        title, detail = _signalled(-code)
    elif code & 0xFFFFFFFF == _WINDOWS_ACCESS_VIOLATION:
        title, detail = "The engine crashed", _crash("SIGSEGV")
    elif code == 0:
        title = "The engine has ended"
        detail = "It ended by itself without an error, as code that calls os._exit(0) makes it do."
    else:
        title = f"The engine ended with an error (exit code {code})"
        detail = _last_line(log) or f"It left no message, as when code calls os._exit({code})."
    if running:
        detail = f"{detail} It was {running}."
    if log:
        detail = f"{detail}\n\nThe end of its log:\n{log}"
    return ExitReason(title, detail, _next_step(running, checkpoint_step))


def explain_departure(how: Departure) -> ExitReason:
    """Describe how a process of the user's was lost."""
    if how.garbled:
        return ExitReason(
            f"{how.name} sent what the window cannot read",
            "Something in it wrote to the connection. The window has left it; it goes on.",
            "Reconnect to attach to it again.",
            was_attached=True,
            can_reconnect=True,
        )
    if how.lives is False:
        title, detail = _ended(how.name, how.code)
        return ExitReason(
            title,
            f"{detail} What it has shown stays here.".strip(),
            "Run it again and attach.",
            was_attached=True,
        )
    if how.lives:
        detail = "It goes on, and has ended the connection or was closed to windows."
    else:
        detail = "It has ended, or the way to it was cut; then it goes on."
    return ExitReason(
        f"The connection to {how.name} was lost",
        f"{detail} What it has shown stays here.",
        "Reconnect to attach to it again.",
        was_attached=True,
        can_reconnect=True,
    )


def explain_no_start(error: OSError) -> ExitReason:
    """Describe an engine that could not be started, and what the system said."""
    return ExitReason(
        "The engine could not be started",
        f"The system says: {error}.",
        "Free some memory or disk space, or end other programs; then restart the engine.",
    )


def _killed(oom_kills: int | None) -> tuple[str, str]:
    if oom_kills:
        return (
            "The engine was killed by the system: out of memory",
            "The system ended it to free memory (its count of such kills rose meanwhile).",
        )
    if oom_kills == 0:
        return (
            "The engine was killed from outside",
            "Something ended it with SIGKILL: a person, a program or a limit of this container. "
            "The system has counted no kill for want of memory.",
        )
    return (
        "The engine was killed by the system, most likely out of memory",
        "It was ended with SIGKILL, which is what the system does when memory runs out.",
    )


def _ended(name: str, code: int | None) -> tuple[str, str]:
    """How a script has ended, in a line and in more words."""
    if code is None:
        return f"{name} has ended", ""
    if code >= 0:
        return f"{name} has ended with exit code {code}", ""
    signalled = _signal_name(-code)
    detail = _CRASHES.get(signalled, "The signal came from outside")
    if signalled == "SIGKILL":
        detail += ": a person or a program sent it, or the system, for lack of memory"
    return f"{name} was ended by {signalled}", f"{detail[:1].upper()}{detail[1:]}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _signalled(number: int) -> tuple[str, str]:
    name = _signal_name(number)
    if name in _CRASHES:
        return "The engine crashed", _crash(name)
    return f"The engine was ended by {name}", "The signal came from outside."


def _crash(name: str) -> str:
    return f"Native code failed ({name}): {_CRASHES[name]}. Nothing outside the engine was harmed."


def _last_line(log: str) -> str:
    """The line with the exception, of a traceback at the end of a log."""
    lines = [line for line in log.splitlines() if line.strip()]
    return f"{lines[-1].strip().rstrip('.')}." if lines else ""


def _next_step(running: str, checkpoint_step: int | None) -> str:
    if checkpoint_step is not None:
        return (
            f"The run's last checkpoint is step {checkpoint_step:,}. "
            "Restart the engine, then Resume to go on from there."
        )
    if running == "training":
        return "Restart the engine and train again: the run had written no checkpoint yet."
    return "Restart the engine: your project is safe in this window."


def _number(name: str) -> int:
    # Windows has no SIGKILL, and its exit codes are never negative.
    return getattr(signal, name, sys.maxsize)
