"""The windows that are attached to a process: what each has asked, and what they are told."""

from __future__ import annotations

import itertools
import threading

import msgspec

from ..connecting.greeting import Role
from ..connecting.peer import Peer
from ..protocol import Command, DoneSnapshot, ErrorSnapshot, Snapshot
from ..system.errors import LabError, error_report


class Seat:
    """One window steers a process at a time. A window has its role before it is told of it, and
    until it leaves: one that comes in the same moment has another."""

    def __init__(self) -> None:
        self._taking = threading.Lock()
        self._is_taken = False

    def take(self, wants: Role) -> Role:
        """The role of a window that comes."""
        if wants == "watch":
            return wants
        with self._taking:
            role: Role = "watch" if self._is_taken else "steer"
            self._is_taken = True
        return role

    def leave(self, role: Role) -> None:
        """A window of this role has gone, or has never come."""
        if role == "steer":
            self._is_taken = False


class Windows:
    """`add` and `remove` are for one thread at a time, all else for any."""

    def __init__(self) -> None:
        self.peers: tuple[Peer, ...] = ()
        self._numbers = itertools.count(1)
        self._asked: dict[int, tuple[Peer, int]] = {}

    def has_steering(self) -> bool:
        return any(peer.role == "steer" for peer in self.peers)

    def add(self, peer: Peer) -> None:
        self.peers = (*self.peers, peer)

    def remove(self, peer: Peer) -> None:
        self.peers = tuple(other for other in self.peers if other is not peer)

    def numbered(self, peer: Peer, command: Command) -> Command:
        """The command of this window, with a number that no other window's has."""
        number = next(self._numbers)
        self._asked[number] = peer, command.id
        return msgspec.structs.replace(command, id=number)

    def tell(self, snapshot: Snapshot) -> None:
        """Tell all windows, each as of its own document; the one that has asked gets the number of
        its command with it. How a command has ended is for that one only."""
        asker, asked = self._asked.get(snapshot.reply_to, (None, 0))
        is_for_all = not isinstance(snapshot, ErrorSnapshot | DoneSnapshot)
        for peer in self.peers:
            if peer is asker or is_for_all:
                number, revision = asked if peer is asker else 0, peer.revision
                peer.tell(msgspec.structs.replace(snapshot, reply_to=number, revision=revision))

    def done(self, command: Command) -> None:
        self.tell(DoneSnapshot(reply_to=command.id))
        self._asked.pop(command.id, None)

    def refuse(self, command: Command, error: LabError) -> None:
        kind = type(command).__name__
        self.tell(ErrorSnapshot(reply_to=command.id, command=kind, error=error_report(error)))
        self.done(command)
