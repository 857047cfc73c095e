"""`tensorlab train` as one of the processes that torchrun has started, on one machine or several.

Rank 0 trains, tells and writes as usual, by `projects.train`; the others follow it.
"""

from __future__ import annotations

import os

from app.commands.conversation import Conversation, EngineEnded, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.projects import TrainOptions
from app.commands.target import Target, run_code, show_output
from engine.protocol import ErrorSnapshot, TrainCommand


def own_rank() -> int | None:
    """None if torchrun has not started this process."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else None


def processes_here(wanted: int | None) -> int:
    """As many as torchrun has started on this machine. Raises CommandFailure if others are wanted:
    it is for torchrun to start them."""
    if wanted is not None:
        raise CommandFailure(
            "--nproc-per-node: torchrun has started this process; give it to torchrun.",
            BAD_ARGUMENTS,
        )
    return int(os.environ["LOCAL_WORLD_SIZE"])


def follow(target: Target, options: TrainOptions) -> None:
    """Train with rank 0 to the end of its run. Raises CommandFailure."""
    where = f"rank {own_rank()}: {target.path}"
    command = TrainCommand(
        model=target.project.model,
        training=options.applied_to(target.project.training),
        subject=target.subject,
        objective=target.objective,
    )
    try:
        with Conversation("training") as engine:
            engine.ready()
            run_code(engine, target)
            for snapshot in engine.ask(command):
                show_output(snapshot)
                if isinstance(snapshot, ErrorSnapshot):
                    raise failure(where, snapshot)
    except EngineEnded as end:
        raise CommandFailure(f"{where}: {end}") from None
