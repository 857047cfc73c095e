"""Messages to bytes and back: msgpack by msgspec. NaN and infinities survive the trip."""

from __future__ import annotations

import msgspec

from .commands import AnyCommand, AnySignal, Command
from .snapshots import AnySnapshot, Snapshot

MAX_SNAPSHOT_BYTES = 256 * 1024

_encoder = msgspec.msgpack.Encoder()
_commands = msgspec.msgpack.Decoder(AnyCommand)
_signals = msgspec.msgpack.Decoder(AnySignal)
_snapshots = msgspec.msgpack.Decoder(AnySnapshot)


class OversizeSnapshot(ValueError):
    """A snapshot is larger than MAX_SNAPSHOT_BYTES: its sender must summarise more."""


def encode_command(command: Command | AnySignal) -> bytes:
    return _encoder.encode(command)


def decode_command(data: bytes) -> Command:
    """Raises msgspec.DecodeError or msgspec.ValidationError on anything that is no command."""
    return _commands.decode(data)


def decode_signal(data: bytes) -> AnySignal:
    """Raises msgspec.DecodeError or msgspec.ValidationError on anything that is no signal."""
    return _signals.decode(data)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Raises OversizeSnapshot above 256 KiB, TypeError on a value that is no plain data."""
    data = _encoder.encode(snapshot)
    if len(data) > MAX_SNAPSHOT_BYTES:
        raise OversizeSnapshot(f"{type(snapshot).__name__} has {len(data):,} bytes")
    return data


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises msgspec.DecodeError or msgspec.ValidationError on anything that is no snapshot."""
    return _snapshots.decode(data)
