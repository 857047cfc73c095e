"""The bytes of a second between the window and the process that it is attached to."""

from __future__ import annotations

from app.presenters.attaching.traffic import EVERY_MS, TrafficPresenter
from tests.app.conftest import SCRIPT


def test_both_ways_are_shown_while_the_window_is_attached(bench, link, monkeypatch):
    now_s, bytes_ = [10.0], [(100, 1000)]
    monkeypatch.setattr(link, "traffic", lambda: bytes_[0])
    presenter = TrafficPresenter(bench, bench.window, lambda: now_s[0])
    link.get_ready()
    assert not presenter._timer.isActive()
    link.attach_to(SCRIPT)
    assert presenter._timer.isActive() and presenter._timer.interval() == EVERY_MS
    now_s[0], bytes_[0] = 12.0, (300, 1000 + 3 * 1024)
    link.get_ready()  # counts from the start, not from here
    presenter.show()
    assert bench.window.traffic == "1.5 KiB/s in · 100 B/s out"
    presenter.show()  # at the same moment there is nothing to tell
    assert bench.window.traffic == "1.5 KiB/s in · 100 B/s out"
    now_s[0] = 13.0
    presenter.show()
    assert bench.window.traffic == "0 B/s in · 0 B/s out"
    link.close()
    assert bench.window.traffic == "" and not presenter._timer.isActive()
