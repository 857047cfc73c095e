"""The end of the process group of a watched process."""

from __future__ import annotations

import pytest
import torch.distributed as dist

from engine.attached import group_end


def test_other_threads_run_before_the_group_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[object] = []

    def destroy(group: object = None) -> None:
        happened.append(group)

    monkeypatch.setattr(dist, "destroy_process_group", destroy)
    monkeypatch.setattr(group_end.time, "sleep", lambda seconds: happened.append("others run"))
    with group_end.pause_before_group_ends():
        dist.destroy_process_group(None)
    assert happened == ["others run", None]
    assert dist.destroy_process_group is destroy
