"""How often something has to be seen before it is told: at that count it is, below it is not."""

from __future__ import annotations

import pytest

from tests.engine.advice.desk import Desk
from tests.engine.advice.test_modes import BATCH_NORM, DROPOUT
from tests.engine.advice.test_steps import BEGIN, LOOP, NO_STEP

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")  # torch's own word on it

HALF = BEGIN.replace("net.parameters()", "net[0].parameters()")
"""The optimizer holds the first layer only."""
WITH_OTHER = BEGIN + "other = nn.Linear(3, 1)\n"
HOLDS_OTHER = (
    WITH_OTHER + "optimizer = torch.optim.SGD([*net.parameters(), *other.parameters()], 0.01)\n"
)
LOGITS = "torch.manual_seed(0)\nw = nn.Parameter(torch.rand(4, 3))\nlabels = torch.arange(4) % 3\n"


def loop(steps: int, source: str = LOOP) -> str:
    return source.replace("range(6)", f"range({steps})").replace("range(20)", f"range({steps})")


def used_from(step: int, steps: int) -> str:
    """A loop whose loss depends on `other` from this step on."""
    return loop(steps).replace("net(x)", f"net(x) + (other(x) if step >= {step} else 0)")


def zeroed(when: str, steps: int) -> str:
    return loop(steps).replace("optimizer.zero_grad()", f"if {when}: optimizer.zero_grad()")


def kept_from(step: int, line: str = "kept.append(loss)") -> str:
    return f"kept = []\n{LOOP}    if step >= {step}: {line}\n"


def total_from(step: int) -> str:
    return f"total = torch.zeros(())\n{LOOP}    if step >= {step}: total = total + loss\n"


def differences(count: int) -> str:
    """So many of them before one backward, which is called on the last."""
    each = "[(net(x) - y[:, 0]).square().mean() for _ in range({})]"
    return f"losses = {each.format(count)}\nlosses[-1].backward()\n"


def stretched_at(step: int) -> str:
    """Of steps that are counted from 1, this one has a difference that is stretched."""
    difference = f"(net(x) - (y if step != {step} else y[:, 0])).square().mean()"
    return LOOP.replace("range(6)", "range(1, 301)").replace("F.mse_loss(net(x), y)", difference)


def evaluated(count: int, mode: str) -> str:
    """So many losses with a graph."""
    each = f"for i in range({count}):\n    F.cross_entropy(net(held_out), wanted).item()\n"
    return f"fit(3)\nnet.{mode}()\n{each}"


def scored(count: int) -> str:
    """Losses of logarithms, and at last one of scores."""
    right = f"for i in range({count}):\n    F.nll_loss(-w.abs(), labels).backward()\n"
    return f"{LOGITS}{right}F.nll_loss(w, labels).backward()\n"


BOUNDS = {
    "a parameter that no optimizer holds": (HALF + loop(3), HALF + loop(2), "not_trained"),
    "one that the walked graphs reach": (
        WITH_OTHER + used_from(6, 12),
        WITH_OTHER + used_from(7, 12),
        "not_trained",
    ),
    "one that gets its first gradient late": (
        HOLDS_OTHER + used_from(64, 70),
        HOLDS_OTHER + used_from(63, 70),
        "no_gradient",
    ),
    "an optimizer that does not step": (
        BEGIN + loop(17, NO_STEP),
        BEGIN + loop(16, NO_STEP),
        "not_trained",
    ),
    "gradients that are not cleared": (
        BEGIN + zeroed("step in (0, 3, 4, 5)", 6),
        BEGIN + zeroed("step in (0, 2, 3, 4, 5)", 6),
        "zero_grad",
    ),
    "losses in a list": (BEGIN + kept_from(3), BEGIN + kept_from(4), "kept_graph"),
    "losses in a running total": (BEGIN + total_from(3), BEGIN + total_from(4), "kept_graph"),
    "differences before one backward": (
        BEGIN + differences(64),
        BEGIN + differences(65),
        "broadcast",
    ),
    "the first steps, which are all looked at": (
        BEGIN + stretched_at(34),
        BEGIN + stretched_at(35),
        "broadcast",
    ),
    "the last step before one in 128": (
        BEGIN + stretched_at(257),
        BEGIN + stretched_at(256),
        "broadcast",
    ),
    "the first step after the 64th": (
        BEGIN + stretched_at(65),
        BEGIN + stretched_at(66),
        "broadcast",
    ),
    "training in eval mode": (
        DROPOUT + "fit(3)\nnet.eval()\nfit(4)",
        DROPOUT + "fit(3)\nnet.eval()\nfit(3)",
        "mode",
    ),
    "evaluations with graphs": (
        DROPOUT + evaluated(3, "eval"),
        DROPOUT + evaluated(2, "eval"),
        "mode",
    ),
    "forward passes in train mode without a backward": (
        BATCH_NORM + evaluated(4, "train"),
        BATCH_NORM + evaluated(3, "train"),
        "mode",
    ),
    "losses whose values are read": (scored(2), scored(3), "softmax"),
}


@pytest.mark.parametrize("what", BOUNDS)
def test_at_its_bound_it_is_told_and_below_it_is_not(desk: Desk, what: str) -> None:
    told, untold, kind = BOUNDS[what]
    assert desk.run(untold) == []
    assert desk.only(told).kind == kind


def test_the_differences_of_each_backward_are_counted_anew(desk: Desk) -> None:
    unused = "for _ in range(70):\n    net(x) - y[:, 0]\n    F.mse_loss(net(x), y).backward()\n"
    begin = BEGIN.partition("optimizer")[0]
    found = desk.only(f"{begin}{unused}(net(x) - y[:, 0]).square().mean().backward()")
    assert (found.kind, found.line) == ("broadcast", 8)


def test_losses_are_looked_for_each_16th_backward(desk: Desk) -> None:
    """Of the last 16 losses; `kept` is told while the loop runs, before it is emptied."""
    source = "kept = []\n" + loop(40) + "    kept.append(loss)\n    if step == 15: kept.clear()\n"
    found = desk.only(BEGIN + source)
    assert found.evidence == (
        "15 of the last 15 losses that were looked at are in the list of 15 elements, with their"
        " grad_fn",
    )
    late = "kept = []\n" + loop(40) + "    if 20 <= step < 31: kept.append(loss)\n"
    found = desk.only(BEGIN + late)
    assert found.evidence == (
        "11 of the last 16 losses that were looked at are in the list of 11 elements, with their"
        " grad_fn",
    )


def test_outputs_are_looked_for_among_the_last_16() -> None:
    desk = Desk()
    source = loop(40).replace("F.mse_loss(net(x), y)", "F.mse_loss(out := net(x), y)")
    late = f"kept = []\n{source}    if 20 <= step < 31: kept.append(out)\n"
    assert desk.only(BEGIN + late).evidence == (
        "11 of the last 16 outputs that a loss function got are in the list of 11 elements, with"
        " their grad_fn",
    )


def test_losses_without_steps_are_kept_too_but_not_without_their_graph(desk: Desk) -> None:
    code = (
        "kept = []\nfor step in range(6):\n    loss = F.mse_loss(net(x), y)\n"
        "    loss.backward()\n    kept.append(loss)\n"
    )
    found = desk.only(BEGIN + code)
    assert found.evidence[0].startswith("6 of the last 6 losses")
    assert desk.run(BEGIN + code + "    loss.detach_()\n") == []
