"""Which modules of the user's folders are in `sys.modules` and on `sys.path` now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol


class UsersModules(Protocol):
    """What `importing.folder_modules.FolderModules` has."""

    def enter(self) -> None: ...

    def leave(self) -> None: ...

    def current(self) -> AbstractContextManager[None]: ...


class Current:
    modules: UsersModules | None = None


def switch(to: UsersModules | None) -> None:
    now = Current.modules
    if now is to:
        return
    if now is not None:
        now.leave()
    Current.modules = to
    if to is not None:
        to.enter()


def kept_current() -> Callable[[], AbstractContextManager[None]]:
    """Makes contexts in which those modules are current that are so now."""
    modules = Current.modules
    return nullcontext if modules is None else modules.current


@contextmanager
def no_modules() -> Iterator[None]:
    """In this context no modules of the user's folders are current."""
    before = Current.modules
    switch(None)
    try:
        yield
    finally:
        switch(before)
