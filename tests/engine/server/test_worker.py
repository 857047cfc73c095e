"""The thread for work that is done apart: there only while there is work."""

from __future__ import annotations

import threading
from functools import partial

from engine.server.serve import Worker


def test_work_is_done_in_order_by_one_thread_which_then_ends() -> None:
    worker, done, threads = Worker(), [], set()
    began, may_end, last = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        began.set()
        may_end.wait(30)
        threads.add(threading.current_thread())

    worker.put(first)
    assert began.wait(30)
    for number in range(20):
        worker.put(partial(done.append, number))
    worker.put(lambda: threads.add(threading.current_thread()))
    worker.put(last.set)
    may_end.set()
    assert last.wait(30)
    assert done == list(range(20))
    (thread,) = threads
    thread.join(30)
    assert not thread.is_alive()
    again = threading.Event()
    worker.put(again.set)  # a thread of its own
    assert again.wait(30)
