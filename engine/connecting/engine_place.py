"""Where the engine of a window runs, if not in a process that the window starts."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from .dialing import Call

SSH = "ssh"


class EnginePlace(Struct, frozen=True):
    """`address` is "ssh HOST", "ssh HOST NAME", a NAME or HOST:PORT. `python` is the interpreter on
    the other machine that has Tensor Lab; empty: its command `tensorlab` is found there. `key` is
    that of HOST:PORT."""

    address: str
    python: str = ""
    key: str = ""

    @classmethod
    def on(cls, host: str, python: str = "") -> EnginePlace:
        """An engine on a machine that ssh leads to."""
        return cls(f"{SSH} {host}", python)

    @property
    def host(self) -> str:
        """The machine that ssh leads to, with the name of an engine there if it has one; empty
        without ssh."""
        way, _, rest = self.address.partition(" ")
        return rest.strip() if way == SSH else ""

    @property
    def machine(self) -> str:
        """Whose file system the engine sees, in a few words."""
        return self.host.split()[0] if self.host else self.address

    @property
    def is_other_machine(self) -> bool:
        """Whether the engine may see other files than this window. An engine that is called by its
        name is one of this machine; a port may lead to another one."""
        return bool(self.host) or ":" in self.address

    @property
    def can_restart(self) -> bool:
        """Whether the engine is one that the window lets start. Others were started by hand."""
        return bool(self.host) and len(shlex.split(self.host)) == 1

    def call(self, instead: bool = False, anew: bool = False) -> Call:
        """Call the engine; `instead` of another window, or `anew`. Raises Unwelcome."""
        from ..version import version  # the window shows before these are needed
        from .greeting import Unwelcome
        from .ssh import call_at

        call = call_at(
            self.address, version(), self.key, "steer", self.python, instead=instead, anew=anew
        )
        if not call.welcome.serves:
            call.connection.close()
            title = call.welcome.about.title
            raise Unwelcome(f"{title} is a script, no engine: File > Attach shows it.")
        return call
