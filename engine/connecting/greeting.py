"""The first messages on a connection, before any command: who is there, and who may steer."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

import msgspec
from msgspec import Struct

MAX_BYTES = 16_384
"""The most bytes of one of these messages."""

Role = Literal["steer", "watch"]
"""One window steers; others are told the same and may only read."""


class Unwelcome(Exception):
    """No connection came about; the words say why and what to do."""


class Refused(Unwelcome):
    """The process has said so."""


class About(Struct, frozen=True, kw_only=True):
    """The process that listens. `started_s` is in seconds since 1970; `rank` and `world_size` are
    those of torch.distributed, if it is one of several, and `group` is what the ranks of one run
    have in common."""

    name: str
    pid: int
    script: str = ""
    version: str = ""
    started_s: float = 0.0
    rank: int = 0
    world_size: int = 1
    group: str = ""

    @property
    def known_as(self) -> tuple[str, ...]:
        """The names by which it can be called: process number, name and script."""
        return str(self.pid), self.name, PurePath(self.script).name

    @property
    def title(self) -> str:
        """In words: "train.py (pid 4711)"."""
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return f"{self.name} (pid {self.pid}{rank})"


class Hello(Struct, frozen=True, tag=True):
    """The window's first message."""

    version: str
    wants: Role = "steer"


class Welcome(Struct, frozen=True, tag=True):
    """`models` are the names that the script has given its models to be watched. `serves`: it is
    no script but an engine that serves windows."""

    about: About
    role: Role
    models: tuple[str, ...] = ()
    serves: bool = False


class Refusal(Struct, frozen=True, tag=True):
    words: str


def encode(message: Hello | Welcome | Refusal | About) -> bytes:
    return msgspec.json.encode(message)


def decode_hello(data: bytes) -> Hello:
    """Raises Unwelcome."""
    try:
        return msgspec.json.decode(data, type=Hello)
    except (ValueError, RecursionError) as error:
        raise Unwelcome("These bytes are no greeting of Tensor Lab's.") from error


def decode_answer(data: bytes) -> Welcome:
    """Raises Unwelcome, in the words of a Refusal if it is one."""
    try:
        answer = msgspec.json.decode(data, type=Welcome | Refusal)
    except (ValueError, RecursionError) as error:
        raise Unwelcome("What answers there is not Tensor Lab.") from error
    if isinstance(answer, Refusal):
        raise Refused(answer.words)
    return answer


def decode_about(data: bytes) -> About:
    """Raises ValueError."""
    return msgspec.json.decode(data, type=About)
