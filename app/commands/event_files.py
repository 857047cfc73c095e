"""`tensorlab runs DIR --tensorboard OUT`: runs as event files of TensorBoard, by an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from engine.protocol import ErrorSnapshot, EventsSnapshot, RunRow, WriteEventsCommand


def write_event_files(rows: Sequence[RunRow], out: Path) -> list[str]:
    """Write the runs that can be read, each into a folder of its own in `out`; returns these.
    Raises CommandFailure."""
    try:
        str(out).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(out).decode(errors="replace")
        message = f"--tensorboard {shown}: the name is not valid UTF-8. Rename it."
        raise CommandFailure(message, BAD_ARGUMENTS) from None
    if out.exists() and not out.is_dir():
        raise CommandFailure(f"--tensorboard {out}: this is not a folder.", BAD_ARGUMENTS)
    folders = tuple(str(Path(row.folder).absolute()) for row in rows if row.state != "damaged")
    if not folders:
        raise CommandFailure("--tensorboard: there is no run that can be written.")
    command = WriteEventsCommand(folders=folders, path=str(out.absolute()))
    try:
        with Conversation("writing event files") as engine:
            for snapshot in engine.ask(command):
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(out, snapshot)
                if isinstance(snapshot, EventsSnapshot) and snapshot.written:
                    return list(snapshot.written)
    except EngineEnded as end:
        raise CommandFailure(f"{out}: {end}") from None
    raise CommandFailure(f"{out}: stopped before all runs were written.")
