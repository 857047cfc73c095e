"""Messages between the window and the engine, in one flat namespace, and their encoding.

Not here: the document that some messages carry (`project`), and anything of torch.

Messages are frozen structs in msgpack, never pickles: a stray tensor is refused. All structs that
derive from `Command` or `Snapshot` are messages; this door alone lists the files with them.
"""

from .advice_snapshots import *  # noqa: F403
from .artifact_messages import *  # noqa: F403
from .autograd_commands import *  # noqa: F403
from .autograd_snapshots import *  # noqa: F403
from .commands import *  # noqa: F403
from .dataset_messages import *  # noqa: F403
from .derivative_snapshots import *  # noqa: F403
from .explanation_snapshots import *  # noqa: F403
from .exporting.messages import *  # noqa: F403
from .flow_snapshots import *  # noqa: F403
from .holding import *  # noqa: F403
from .memory_snapshots import *  # noqa: F403
from .rule_snapshots import *  # noqa: F403
from .shape_snapshots import *  # noqa: F403
from .snapshots import *  # noqa: F403
from .stepping import *  # noqa: F403
from .structure_commands import *  # noqa: F403
from .subject_commands import *  # noqa: F403
from .tensor_commands import *  # noqa: F403
from .trace_snapshots import *  # noqa: F403
from .training.checks import *  # noqa: F403
from .training.commands import *  # noqa: F403
from .training.elements import *  # noqa: F403
from .training.execution import *  # noqa: F403
from .training.landscape import *  # noqa: F403
from .training.looks import *  # noqa: F403
from .training.memory_curve import *  # noqa: F403
from .training.predictions import *  # noqa: F403
from .training.ranks import *  # noqa: F403
from .training.runs import *  # noqa: F403
from .training.snapshots import *  # noqa: F403
from .value_snapshots import *  # noqa: F403
from .values import *  # noqa: F403

from .codec import *  # isort: skip  # noqa: F403 - it reads off which messages there are
