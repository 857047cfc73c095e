"""Messages to bytes and back: msgpack by msgspec. NaN and infinities survive the trip."""

from __future__ import annotations

from functools import cache
from typing import TypeVar, Union

import msgspec

from .commands import AnySignal, Command
from .snapshots import ErrorSnapshot, Snapshot
from .values import ErrorReport

MAX_SNAPSHOT_BYTES = 256 * 1024

_S = TypeVar("_S", bound=msgspec.Struct)


def message_types(base: type[_S]) -> tuple[type[_S], ...]:
    """All structs that derive from `base`, in the order of their declaration."""
    found: list[type[_S]] = []
    for kind in base.__subclasses__():
        found += [kind, *message_types(kind)]
    return tuple(found)


COMMANDS = message_types(Command)
SNAPSHOTS = message_types(Snapshot)

_encoder = msgspec.msgpack.Encoder()


@cache
def _decoder(kinds: tuple) -> msgspec.msgpack.Decoder:
    """Made for the first message: it reads the types of all fields, and the window shows sooner."""
    return msgspec.msgpack.Decoder(Union[kinds])  # noqa: UP007


class NotAMessage(ValueError):
    """Bytes that do not even name the command that they answer."""


class OversizeSnapshot(ValueError):
    """A snapshot has more than MAX_SNAPSHOT_BYTES; its sender must send less."""


def encode_command(command: Command | AnySignal) -> bytes:
    return _encoder.encode(command)


def decode_command(data: bytes) -> Command:
    """Raises msgspec.DecodeError or msgspec.ValidationError on anything but a command."""
    return _decoder(COMMANDS).decode(data)


def decode_message(data: bytes) -> Command | AnySignal:
    """Decode a command or a signal. Raises as `decode_command` does."""
    return _decoder((*COMMANDS, AnySignal)).decode(data)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Raises OversizeSnapshot above 256 KiB, and TypeError on a value that is not plain data."""
    data = _encoder.encode(snapshot)
    if len(data) > MAX_SNAPSHOT_BYTES:
        raise OversizeSnapshot(f"{type(snapshot).__name__} has {len(data):,} bytes")
    return data


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises msgspec.DecodeError or msgspec.ValidationError on anything but a snapshot."""
    return _decoder(SNAPSHOTS).decode(data)


def decode_snapshot_or_error(data: bytes) -> Snapshot:
    """As `decode_snapshot`, but bytes that are not a snapshot become an ErrorSnapshot in words, to
    the command that they answer. Raises NotAMessage if they name none."""
    try:
        return decode_snapshot(data)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        reason = error
    try:
        raw = msgspec.msgpack.decode(data)
    except (ValueError, TypeError, RecursionError) as error:  # TypeError: a dict as a key
        raise NotAMessage(str(error)) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise NotAMessage(f"{type(raw).__name__} is not a snapshot")
    reply_to, revision = (raw.get(name) for name in ("reply_to", "revision"))
    return ErrorSnapshot(
        reply_to=reply_to if isinstance(reply_to, int) else 0,
        revision=revision if isinstance(revision, int) else 0,
        command=raw["type"],
        error=_fault("The answer could not be read", reason),
    )


def encode_snapshot_or_error(snapshot: Snapshot) -> bytes:
    """As `encode_snapshot`, but a snapshot that cannot be sent becomes an ErrorSnapshot that says
    so: a fault of one handler must not end the engine."""
    try:
        return encode_snapshot(snapshot)
    except (OversizeSnapshot, TypeError, ValueError, OverflowError, RecursionError) as error:
        return _encoder.encode(
            ErrorSnapshot(
                reply_to=snapshot.reply_to,
                revision=snapshot.revision,
                command=type(snapshot).__name__,
                error=_fault("The answer could not be sent", error),
            )
        )


def _fault(what: str, error: Exception) -> ErrorReport:
    return ErrorReport(
        type=type(error).__name__,
        message=f"{what}: {error}",
        hint="This is a fault of Tensor Lab's, not of your model. Please report it.",
    )
