"""A window that comes in the moment in which the last one leaves."""

from __future__ import annotations

import threading
from typing import Any, cast

from engine.attached.watching import Watching


def test_the_end_of_a_session_does_not_take_the_next_one_away() -> None:
    first, second = cast("Any", object()), cast("Any", object())
    watching = Watching.__new__(Watching)
    watching.session = first
    watching._attaching, watching._attached = threading.Lock(), threading.Event()
    watching._attached.set()
    with watching._attaching:  # a window is coming
        ending = threading.Thread(target=watching._ended, args=(first,))
        ending.start()
        ending.join(0.2)
        assert watching.session is first
        watching.session = second
    ending.join()
    assert watching.session is second
    assert watching.wait(0)
    watching._ended(second)
    assert watching.session is None
    assert not watching.wait(0)
