"""`python -m engine.ranks.launcher JOB N`: start N ranks on this machine by torch's launcher.

If one fails, all are ended, and a file beside the job says which failed, and of what.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ..training.distributed.launch import RANK
from ..training.distributed.rank_files import RankFailure, write_failures

LEAVING_S = 5
"""The time that ranks have to end after they were asked to."""


def main(job: str, processes: int) -> int:
    logs = Path(job).with_name("torchrun")
    logs.mkdir(exist_ok=True)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(logs)),
        shutdown_timeout=LEAVING_S,
    )
    try:
        elastic_launch(config, sys.executable)("-u", "-m", RANK, job)
    except ChildFailedError as error:
        failures = [
            RankFailure(rank, each.exitcode, _message(each.error_file_data))
            for rank, each in sorted(error.failures.items())
        ]
        write_failures(Path(job).parent, failures)
        return 1
    except SignalException:  # a signal asked this process to end; the launcher has ended the ranks
        return 1
    finally:
        shutil.rmtree(logs, ignore_errors=True)
    return 0


def _message(data: dict) -> str:
    """The message of the exception that ended a rank, from the `data` of the error file that
    torch's launcher keeps for it; "" if the rank wrote none."""
    message = data.get("message", "")
    return message.get("message", "") if isinstance(message, dict) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
