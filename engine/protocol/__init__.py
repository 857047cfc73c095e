"""Messages between the window and the engine. Imports no torch."""

from .codec import (
    MAX_SNAPSHOT_BYTES,
    OversizeSnapshot,
    decode_command,
    decode_message,
    decode_signal,
    decode_snapshot,
    encode_command,
    encode_snapshot,
    encode_snapshot_or_error,
)
from .commands import *  # noqa: F403 - one flat namespace of messages
from .snapshots import *  # noqa: F403
from .values import *  # noqa: F403
