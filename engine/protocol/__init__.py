"""Messages between the window and the engine. Imports no torch."""

from .any_command import *  # noqa: F403 - one flat namespace of messages
from .autograd_commands import *  # noqa: F403
from .autograd_snapshots import *  # noqa: F403
from .codec import *  # noqa: F403
from .commands import *  # noqa: F403
from .derivative_snapshots import *  # noqa: F403
from .flow_snapshots import *  # noqa: F403
from .rule_snapshots import *  # noqa: F403
from .snapshots import *  # noqa: F403
from .stepping import *  # noqa: F403
from .tensor_commands import *  # noqa: F403
from .tensor_snapshots import *  # noqa: F403
from .trace_snapshots import *  # noqa: F403
from .values import *  # noqa: F403
