"""The last derivatives that were computed, so that the window can ask for their entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ...protocol import Initialisation
from .functions import FunctionAtPoint, Kind
from .gradient_flow import FlowRun


@dataclass
class Derived:
    """The last Jacobian or Hessian: `matrix` is (output elements, input elements), at `at`."""

    at: FunctionAtPoint
    kind: Kind
    matrix: Tensor
    output_shape: tuple[int, ...]


@dataclass
class DerivativeState:
    """`flow` has the run of each initialisation in the last gradient flow."""

    derived: Derived | None = None
    flow: dict[Initialisation, FlowRun] = field(default_factory=dict)
