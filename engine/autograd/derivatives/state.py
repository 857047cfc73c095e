"""What derivatives keep between commands, so that their entries can be asked about."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ...protocol import Initialisation
from .functions import At, Kind
from .gradient_flow import FlowRun


@dataclass
class Derived:
    """The last Jacobian or Hessian: `matrix` is (outputs, inputs), of the function at `at`."""

    at: At
    kind: Kind
    matrix: Tensor
    output_shape: tuple[int, ...]


@dataclass
class DerivativeState:
    """`flow` has a run for each initialisation of the last gradient flow."""

    derived: Derived | None = None
    flow: dict[Initialisation, FlowRun] = field(default_factory=dict)
