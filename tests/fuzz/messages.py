"""Broken messages: both sides' decoders refuse them with the errors that their callers handle."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from engine.protocol import (
    COMMANDS,
    SNAPSHOTS,
    AnySignal,
    NotAMessage,
    decode_message,
    decode_snapshot_or_error,
    encode_command,
    encode_snapshot_or_error,
)
from tests.fuzz.mutate import broken_bytes, damaged


class Messages:
    """Makes one broken message a call, and tries it."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        kinds = (*COMMANDS, *AnySignal.__args__, *SNAPSHOTS)
        self._bases = [
            msgspec.msgpack.encode(example(msgspec.inspect.type_info(kind))) for kind in kinds
        ]
        self._plain = [msgspec.msgpack.decode(base) for base in self._bases]

    def make(self) -> bytes:
        random_ = self._random
        if random_.random() < 0.5:
            return broken_bytes(random_.choice(self._bases), random_)
        message = damaged(random_.choice(self._plain), random_)
        try:
            return msgspec.msgpack.encode(message)
        except (OverflowError, UnicodeEncodeError, ValueError, RecursionError):
            return broken_bytes(random_.choice(self._bases), random_)

    @staticmethod
    def attempt(data: bytes) -> str:
        """Raises what the program may not raise. Returns "refused" or "opened"."""
        outcome = "refused"
        try:
            encode_command(decode_message(data))
            outcome = "opened"
        except (ValueError, RecursionError) as error:
            assert str(error)
        try:
            encode_snapshot_or_error(decode_snapshot_or_error(data))
            return "opened"
        except NotAMessage as error:
            assert str(error)
        return outcome


def example(kind: Any) -> Any:
    """The plain value of a type, every field filled in."""
    info = msgspec.inspect
    match kind:
        case info.StructType():
            fields = {field.encode_name: example(field.type) for field in kind.fields}
            return ({kind.tag_field: kind.tag} if kind.tag_field else {}) | fields
        case info.UnionType():
            others = [one for one in kind.types if not isinstance(one, info.NoneType)]
            return example(others[0])
        case info.LiteralType():
            return kind.values[0]
        case info.ListType() | info.VarTupleType() | info.SetType() | info.FrozenSetType():
            return [example(kind.item_type)] * 2
        case info.TupleType():
            return [example(one) for one in kind.item_types]
        case info.DictType():
            return {example(kind.key_type): example(kind.value_type)}
        case info.IntType():
            return 1
        case info.FloatType():
            return 0.5
        case info.BoolType():
            return True
        case info.BytesType():
            return b"bytes"
        case info.NoneType():
            return None
        case _:
            return "text"
