"""Findings about backward, optimizers and parameters."""

from __future__ import annotations

import pytest
import torch

from engine.advice import trained
from engine.advice.notes import Names, Notes
from engine.advice.zeroing import LEFT_AFTER, Zeroing
from tests.engine.advice.desk import Desk

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(16, 3), torch.randn(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
"""
LOOP = """
for step in range(6):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
"""


def test_zero_grad_forgotten(desk: Desk) -> None:
    cell = LOOP.replace("optimizer.zero_grad()", "norms.append(norm())").replace(
        "optimizer.step()", "norms.append(norm()); optimizer.step()"
    )
    norm = "norms, norm = [], lambda: 0 if net[2].bias.grad is None else net[2].bias.grad.norm()"
    found = desk.only(BEGIN + norm + cell)
    assert found.kind == "zero_grad"
    assert "`optimizer.step()`" in found.text
    norms = desk.variables["norms"]
    assert found.evidence == tuple(
        f"`net.2.bias.grad` before and after backward: norm {old:.4g}, then {new:.4g}"
        for old, new in ((norms[2], norms[3]), (norms[4], norms[5]))
    )
    assert found.fix == "optimizer.zero_grad()  # before loss.backward()"
    assert found.line == 11
    assert desk.run(LOOP) == []


@pytest.mark.parametrize(
    "loop",
    [
        LOOP,
        LOOP.replace("zero_grad()", "zero_grad(set_to_none=False)"),
        LOOP.replace("optimizer.zero_grad()", "net.zero_grad()"),
        LOOP.replace("optimizer.zero_grad()", "for p in net.parameters(): p.grad = None"),
        LOOP.replace(
            "optimizer.zero_grad()",
            "for p in net.parameters():\n        if p.grad is not None: p.grad.zero_()",
        ),
        # cleared after the step, and after the forward pass
        "loss = F.mse_loss(net(x), y)\nfor step in range(6):\n    loss.backward()\n"
        "    optimizer.step()\n    optimizer.zero_grad()\n    loss = F.mse_loss(net(x), y)",
        # several backward calls for one step
        "for step in range(12):\n    (F.mse_loss(net(x), y) / 3).backward()\n"
        "    if step % 3 == 2:\n        optimizer.step()\n        optimizer.zero_grad()",
        "for step in range(6):\n    optimizer.zero_grad()\n    for part in range(4):\n"
        "        F.mse_loss(net(x[part::4]), y[part::4]).backward()\n    optimizer.step()",
        # clipped, and in a function
        "def train_step():\n    optimizer.zero_grad()\n    F.mse_loss(net(x), y).backward()\n"
        "    nn.utils.clip_grad_norm_(net.parameters(), 0.1)\n    optimizer.step()\n"
        "for step in range(6): train_step()",
        # a closure clears them itself
        "lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=4)\ndef closure():\n"
        "    lbfgs.zero_grad()\n    loss = F.mse_loss(net(x), y)\n    loss.backward()\n"
        "    return loss\nfor step in range(4): lbfgs.step(closure)",
    ],
)
def test_gradients_that_are_cleared(desk: Desk, loop: str) -> None:
    assert desk.run(BEGIN + loop) == []


def test_a_parameter_that_no_optimizer_holds(desk: Desk) -> None:
    found = desk.only(BEGIN.replace("net.parameters()", "net[0].parameters()") + LOOP)
    assert found.kind == "not_trained"
    assert found.text.startswith("No optimizer holds `net.2.weight`, `net.2.bias`:")
    assert found.evidence == (
        "2 parameters that the loss reaches: (1, 8), (1,)",
        "`optimizer` has taken 6 steps without them",
    )
    assert found.fix.startswith('optimizer.add_param_group({"params": net[2].parameters()})  #')
    assert found.line == 11
    before = desk.variables["net"][2].weight.clone()
    assert desk.run(found.fix + "\n" + LOOP) == []
    assert not torch.equal(before, desk.variables["net"][2].weight)


def test_parameters_of_several_modules_that_no_optimizer_holds(desk: Desk) -> None:
    """They are written as modules where all of a module's are missing."""
    found = desk.only(BEGIN.replace("net.parameters()", "[net[2].weight]") + LOOP)
    assert found.text.startswith("No optimizer holds `net.0.weight`, `net.0.bias`, `net.2.bias`:")
    held = '{"params": [*net[0].parameters(), net[2].bias]}'
    assert found.fix.startswith(f"optimizer.add_param_group({held})  #")
    assert desk.run(f"{found.fix}\n{LOOP}") == []


def test_parameters_that_an_optimizer_of_another_cell_holds_are_left_alone(desk: Desk) -> None:
    desk.run(
        BEGIN.replace("net.parameters()", "net[0].parameters()")
        + "later = torch.optim.SGD(net[2].parameters(), lr=0.01)\n"
    )
    assert desk.run(LOOP) == []
    assert desk.run("del later") == []
    assert desk.only(LOOP).text.startswith("No optimizer holds `net.2.weight`, `net.2.bias`:")


def test_an_optimizer_on_whose_parameters_the_loss_does_not_depend(desk: Desk) -> None:
    """All of them; the loss is trained by hand."""
    loop = LOOP.replace("net(x)", "x @ w").replace(
        "optimizer.step()", "optimizer.step(); w.grad = None"
    )
    found = desk.only(BEGIN + "w = torch.zeros(3, 1, requires_grad=True)\n" + loop)
    assert found.kind == "no_gradient"
    assert found.text == (
        "`net.0.weight`, `net.0.bias`, `net.2.weight` and 1 more got no gradient: the loss does not"
        " depend on them, so no step changes them."
    )
    assert found.fix == "net.requires_grad_(False)  # if it is meant to stay as it is"


def test_one_of_two_optimizers_has_parameters_that_the_loss_does_not_depend_on(desk: Desk) -> None:
    begin = BEGIN + "idle = nn.Linear(2, 2)\nof_idle = torch.optim.SGD(idle.parameters(), 0.1)\n"
    found = desk.only(begin + LOOP.replace("optimizer.step()", "optimizer.step(); of_idle.step()"))
    assert found.text == (
        "`idle.weight`, `idle.bias` got no gradient: the loss does not depend on them, so no step"
        " changes them."
    )


def test_parameters_that_are_gone_or_frozen_are_no_part_of_it(desk: Desk) -> None:
    begin = BEGIN.replace("net.parameters()", "net[0].parameters()") + "warm = nn.Linear(3, 1)\n"
    loop = LOOP.replace("range(6)", "range(20)").replace(
        "net(x)", "net(x) + warm(x) + nn.Linear(3, 1)(x)"
    )
    found = desk.only(f"{begin}{loop}    warm.requires_grad_(False)\n")
    assert found.text.startswith("No optimizer holds `net.2.weight`, `net.2.bias`:")
    assert found.evidence[0] == "2 parameters that the loss reaches: (1, 8), (1,)"


def test_modules_in_a_plain_list(desk: Desk) -> None:
    begin = BEGIN.replace(
        "net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))",
        """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
        self.head = nn.Linear(3, 1)
    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)
net = Net()""",
    )
    found = desk.only(begin + LOOP)
    assert found.kind == "not_trained"
    assert found.text.startswith("`net.layers` is a plain list")
    assert found.evidence[0].startswith("4 parameters in it get a gradient")
    assert found.fix == "self.layers = nn.ModuleList(self.layers)"
    assert (
        desk.run(
            begin.replace(
                "[nn.Linear(3, 3), nn.Linear(3, 3)]",
                found.fix[14:].replace("self.layers", "[nn.Linear(3, 3), nn.Linear(3, 3)]"),
            )
            + LOOP
        )
        == []
    )


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        ("self.parts = {'a': nn.Linear(3, 1)}", "ModuleDict"),
        ("self.parts = [nn.Parameter(torch.ones(3, 1))]", "ParameterList"),
        ("self.parts = {'a': nn.Parameter(torch.ones(3, 1))}", "ParameterDict"),
    ],
)
def test_parts_in_a_plain_dict_or_parameters_in_one(desk: Desk, held: str, kind: str) -> None:
    begin = BEGIN.replace(
        "net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))",
        f"""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {held}
        self.head = nn.Linear(3, 1)
    def forward(self, x):
        part = self.parts['a' if isinstance(self.parts, dict) else 0]
        return self.head(x) + (part(x) if isinstance(part, nn.Module) else x @ part)
net = Net()""",
    )
    found = desk.only(begin + LOOP)
    assert found.kind == "not_trained"
    assert found.text.startswith("`net.parts` is a plain list or dict")
    assert found.fix == f"self.parts = nn.{kind}(self.parts)"


def test_modules_in_a_list_of_lists(desk: Desk) -> None:
    begin = BEGIN.replace(
        "net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))",
        """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = [[nn.Linear(3, 3)], [nn.Linear(3, 3)]]
        self.head = nn.Linear(3, 1)
    def forward(self, x):
        for stage in self.stages:
            for layer in stage:
                x = torch.tanh(layer(x))
        return self.head(x)
net = Net()""",
    )
    found = desk.only(begin + LOOP)
    assert found.text.startswith("`net.stages` is a plain list")
    assert found.evidence[0].startswith("4 parameters in it get a gradient")
    assert found.fix.startswith("# nn.ModuleList")


def test_an_optimizer_of_an_old_model(desk: Desk) -> None:
    desk.run(BEGIN + LOOP)
    found = desk.only("net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))\n" + LOOP)
    assert found.kind == "not_trained"
    assert found.text.startswith("`optimizer` holds the parameters of another model")
    assert found.evidence == (
        "`optimizer` holds 4 parameters; backward reaches none of them",
        "backward reaches net.0.weight, net.0.bias, net.2.weight and 1 more, which no optimizer"
        " holds",
    )
    assert found.fix == "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)"
    assert desk.run(found.fix + "\n" + LOOP) == []


def test_a_graph_that_is_too_large_to_walk_does_not_tell_of_another_model(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained, "MAX_NODES", 4)
    desk.run(BEGIN + LOOP)
    other = "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))\nkept = []\n"
    found = desk.run(f"{other}{LOOP}    kept.append(loss)")
    assert {each.kind for each in found} == {"kept_graph", "no_gradient"}  # not "not_trained"


def test_a_parameter_that_gets_no_gradient(desk: Desk) -> None:
    begin = BEGIN.replace(
        "optimizer =",
        "net.unused = nn.Linear(2, 2)\nnet.forward = lambda x:"
        " net[2](net[1](net[0](x)))\noptimizer =",
    )
    found = desk.only(begin + LOOP)
    assert found.kind == "no_gradient"
    assert found.text.startswith("`net.unused.weight`, `net.unused.bias` got no gradient: the loss")
    assert found.evidence == (
        "`.grad` of 2 of 6 parameters of `optimizer` was None in all of its 6 steps",
    )
    assert found.fix.startswith("net.unused.requires_grad_(False)")
    assert desk.run(found.fix + "\n" + LOOP) == []


def test_a_parameter_with_a_gradient_in_the_first_step_only(desk: Desk) -> None:
    loop = LOOP.replace("loss = F", "loss = (other(x).sum() if step == 0 else 0) + F")
    begin = BEGIN.replace("optimizer =", "other = nn.Linear(3, 1)\noptimizer =").replace(
        "net.parameters()", "[*net.parameters(), *other.parameters()]"
    )
    assert desk.run(begin + loop) == []


def test_gradients_cleared_before_the_step(desk: Desk) -> None:
    loop = LOOP.replace("    optimizer.zero_grad()\n", "").replace(
        "    optimizer.step()", "    optimizer.zero_grad()\n    optimizer.step()"
    )
    found = desk.only(BEGIN + loop)
    assert found.kind == "no_gradient"
    assert "were cleared after backward, before `optimizer.step()`" in found.text
    assert found.fix.startswith("optimizer.zero_grad()  # before loss.backward()")


def test_a_backward_that_is_never_called(desk: Desk) -> None:
    found = desk.only(BEGIN + LOOP.replace("    loss.backward()\n", ""))
    assert (found.kind, found.line) == ("no_gradient", 10)
    assert found.text == (
        "`optimizer.step()` runs, and backward() does not: no parameter has a gradient."
    )
    assert found.fix == "loss.backward()  # before optimizer.step()"


NO_STEP = LOOP.replace("    optimizer.step()\n", "").replace("range(6)", "range(20)")


def test_a_step_that_is_never_called(desk: Desk) -> None:
    found = desk.only(BEGIN + NO_STEP)
    assert (found.kind, found.line) == ("not_trained", 10)
    assert found.text.endswith("`optimizer.step()` does not run: the weights do not change.")
    assert found.evidence == ("the gradients of 16 backward passes were cleared, and no step ran",)
    assert found.fix == "optimizer.step()  # after loss.backward()"


@pytest.mark.parametrize(
    "loop",
    [
        NO_STEP.replace("    optimizer.zero_grad()\n", "") + "optimizer.zero_grad()\n",  # a sum
        NO_STEP + "    with torch.no_grad():\n        for p in net.parameters():\n"
        "            p -= 0.01 * p.grad\n",  # a step of the user's own
        NO_STEP + "    for p in net.parameters():\n        p.data.sub_(0.01 * p.grad)\n",
        NO_STEP + "optimizer.step()\n",
    ],
)
def test_gradients_without_a_step(desk: Desk, loop: str) -> None:
    assert desk.run(BEGIN + loop) == []


def test_a_step_that_is_nowhere(desk: Desk) -> None:
    """The optimizer is made, and neither clears nor steps."""
    for loop, evidence in (
        (NO_STEP.replace("optimizer.zero_grad()", "net.zero_grad()"), "were cleared"),
        (NO_STEP.replace("    optimizer.zero_grad()\n", ""), "added to the gradients"),
    ):
        found = desk.only(BEGIN + loop)
        assert found.kind == "not_trained" and evidence in found.evidence[0]
        assert found.text == (
            "backward() computes gradients, and no step uses them: `optimizer.step()` does not run:"
            " the weights do not change."
        )
        # Of an optimizer that another cell has made, gradients may be looked at.
        desk.run(BEGIN)
        assert desk.run(loop) == []


def test_one_of_two_optimizers_does_not_step(desk: Desk) -> None:
    begin = BEGIN + "other = nn.Linear(1, 1)\nof_other = torch.optim.SGD(other.parameters(), 0.1)\n"
    loop = LOOP.replace("net(x)", "other(net(x))").replace(
        "    optimizer.zero_grad()", "    optimizer.zero_grad(); of_other.zero_grad()"
    )
    found = desk.only(begin + loop.replace("range(6)", "range(20)"))
    assert found.text.endswith("`of_other.step()` does not run: the weights do not change.")
    assert found.evidence[0].endswith("and no step ran; other optimizers took 20 steps")
    assert (
        desk.run(begin + loop.replace("optimizer.step()", "optimizer.step(); of_other.step()"))
        == []
    )


def test_an_optimizer_of_two_names_is_told_once(desk: Desk) -> None:
    found = desk.only(BEGIN + "opt = optimizer\n" + NO_STEP.replace("optimizer.", "opt."))
    assert found.fix == "opt.step()  # after loss.backward()"
    assert found.evidence == ("the gradients of 16 backward passes were cleared, and no step ran",)


def test_an_optimizer_that_is_an_attribute_does_not_step(desk: Desk) -> None:
    begin = BEGIN + "class Held: pass\nheld = Held(); held.opt = optimizer\n"
    found = desk.only(begin + NO_STEP.replace("optimizer.", "held.opt."))
    assert found.fix == "held.opt.step()  # after loss.backward()"


@pytest.mark.parametrize("last", [40, 100])
def test_zero_grad_that_stops_being_called(desk: Desk, last: int) -> None:
    loop = LOOP.replace("range(6)", "range(140)")
    stops = loop.replace("optimizer.zero_grad()", f"if step < {last}: optimizer.zero_grad()")
    found = desk.only(BEGIN + stops)
    assert found.kind == "zero_grad" and len(found.evidence) == 2
    assert desk.run(BEGIN + loop) == []


def test_zero_grad_of_two_optimizers_in_turn_is_looked_at_later_too(desk: Desk) -> None:
    begin = BEGIN + "two = nn.Linear(3, 1)\nof_two = torch.optim.SGD(two.parameters(), 0.01)\n"
    loop = """
for step in range(160):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()
    if step < {0}: of_two.zero_grad()
    F.mse_loss(two(x), y).backward()
    of_two.step()
"""
    assert desk.run(begin + loop.format(200)) == []
    found = desk.only(begin + loop.format(30))
    assert found.kind == "zero_grad" and "`of_two.step()`" in found.text


def test_outputs_kept_in_a_list(desk: Desk) -> None:
    loop = LOOP.replace("loss = F.mse_loss(net(x), y)", "out = net(x); loss = F.mse_loss(out, y)")
    found = desk.only(BEGIN + "outs = []\n" + loop + "    outs.append(out)\n")
    assert (found.kind, found.line) == ("kept_graph", 13)
    assert found.text.startswith("`outs` holds outputs of a model with their graphs")
    assert found.fix == "outs.append(out.detach())"
    assert desk.run(BEGIN + "outs = []\n" + loop + f"    {found.fix}\n") == []
    inside = (
        "    outs = [net(x) for part in range(4)]\n    loss = sum(F.mse_loss(o, y) for o in outs)"
    )
    assert desk.run(BEGIN + LOOP.replace("    loss = F.mse_loss(net(x), y)", inside)) == []


@pytest.mark.parametrize(
    ("begin", "kept", "fix", "line"),
    [
        ("outs = {}", "outs[step] = out", "outs[step] = out.detach()", 13),
        ("net.outs = []", "net.outs.append(out)", "net.outs.append(out.detach())", 13),
        ("outs = []", "outs.append((step, out))", "outs.append(output.detach())", 13),
        ("outs = []", "outs += [out]", "outs.append(output.detach())", 0),
        (
            "outs = []",
            "outs.append(out) if step else outs.append(out)",
            "outs.append(output.detach())",
            0,
        ),
    ],
)
def test_outputs_kept_in_other_forms(
    desk: Desk, begin: str, kept: str, fix: str, line: int
) -> None:
    loop = LOOP.replace("loss = F.mse_loss(net(x), y)", "out = net(x); loss = F.mse_loss(out, y)")
    found = desk.only(f"{BEGIN}{begin}\n{loop}    {kept}\n")
    kind = "dict" if "{}" in begin else "list"
    assert found.evidence == (
        "5 of the last 5 outputs that a loss function got are in"
        f" the {kind} of 6 elements, with their grad_fn",
    )
    assert (found.fix, found.line) == (fix, line)


def test_losses_kept_in_a_list(desk: Desk) -> None:
    found = desk.only(BEGIN + "losses = []\n" + LOOP + "    losses.append(loss)\n")
    assert found.kind == "kept_graph"
    assert found.text.startswith("`losses` holds losses with their graphs")
    assert "6 of the last 6 losses" in found.evidence[0]
    assert found.fix == "losses.append(loss.item())  # or loss.detach()"
    assert found.line == 13


@pytest.mark.parametrize(
    ("begin", "kept", "fix"),
    [
        ("kept = {}", "kept[step] = loss", "kept[step] = loss.item()"),
        ("kept = []", "kept.append((step, loss))", "kept.append((step, loss.item()))"),
        ("kept = {'loss': []}", "kept['loss'].append(loss)", "kept['loss'].append(loss.item())"),
        ("net.kept = []", "net.kept.append(loss)", "net.kept.append(loss.item())"),
        ("t = 0.0", "t += loss * len(x)", "t += loss.item() * len(x)"),
        ("t = 0.0", "pass; t = t + loss / 3", "t = t + loss.item() / 3"),
        ("t = torch.zeros(())", "t.add_(loss)", "t.add_(loss.item())"),
        ("t = torch.zeros(())", "t = torch.add(t, loss)", "t = torch.add(t, loss.item())"),
    ],
)
def test_losses_kept_in_other_forms(desk: Desk, begin: str, kept: str, fix: str) -> None:
    found = desk.only(f"{BEGIN}{begin}\n{LOOP}    {kept}\n")
    assert (found.kind, found.line) == ("kept_graph", 13)
    assert found.fix == f"{fix}  # or loss.detach()"
    assert desk.run(f"{BEGIN}{begin}\n{LOOP}    {fix}\n") == []


def test_a_total_of_parameters_leaves_the_advice_going(desk: Desk) -> None:
    begin = f"{BEGIN}kept, total = [], 0.0\nleaf = nn.Parameter(torch.ones(()))\n"
    found = desk.only(f"{begin}{LOOP}    total = total + leaf\n    kept.append(loss)\n")
    assert found.text.startswith("`kept` holds losses with their graphs")


def test_each_list_of_losses_is_told(desk: Desk) -> None:
    loop = LOOP.replace("range(6)", "range(16)")
    code = "{0} = []\n" + loop + "    {0}.append(loss)\n"
    found = desk.run(BEGIN + code.format("first") + code.format("second"))
    assert [each.fix.partition(".")[0] for each in found] == ["first", "second"]


def test_after_the_first_steps_one_in_64_is_looked_at(desk: Desk) -> None:
    loop = LOOP.replace("range(6)", "range(1, 193)").replace(
        "F.mse_loss(net(x), y)", "(net(x) - (y if step != wrong else y[:, 0])).square().mean()"
    )
    for wrong, kinds in ((177, []), (129, ["broadcast"])):
        assert [each.kind for each in desk.run(f"wrong = {wrong}\n{BEGIN}{loop}")] == kinds


def test_a_running_total_with_its_graph(desk: Desk) -> None:
    found = desk.only(BEGIN + "total = 0.0\n" + LOOP + "    total += loss\n")
    assert (found.kind, found.line) == ("kept_graph", 13)
    assert found.fix == "total += loss.item()  # or loss.detach()"


@pytest.mark.parametrize(
    "kept",
    [
        "total = total + loss",
        "total = 0.9 * total + loss",
        "total = total + loss; total = total + loss / 2",
    ],
)
def test_a_running_total_in_other_forms(desk: Desk, kept: str) -> None:
    found = desk.only(f"{BEGIN}total = 0.0\n{LOOP}    {kept}\n")
    assert (found.kind, found.line) == ("kept_graph", 13)


@pytest.mark.parametrize(
    "kept",
    [
        "losses.append(loss.item())",
        "losses.append(loss.detach())",
        "losses.append(float(loss.detach()))",
        "total += loss.item()",
        "total += loss.detach()",
        "last = loss",
        "total += loss.item() * len(x)",
        "losses.append((step, loss.item()))",
        "total = total + 2 * net(x).sum()",
        "total = torch.zeros(2) + loss",
        "total = loss + 1.0",
        "total = total + loss.exp()",
    ],
)
def test_figures_kept_without_a_graph(desk: Desk, kept: str) -> None:
    assert desk.run(BEGIN + f"losses, total = [], 0.0\n{LOOP}    {kept}\n") == []


def test_an_optimizer_that_steps_no_more_is_watched_no_longer() -> None:
    notes = Notes(lambda finding: None)
    zeroing = Zeroing(notes, Names(notes))
    first, second = (torch.optim.SGD([torch.ones(1, requires_grad=True)]) for _ in range(2))
    zeroing.before_step(first, False)
    for step in range(1, LEFT_AFTER + 2):
        assert zeroing.active
        notes.steps = step
        zeroing.before_step(second, True)  # its closure clears them: it is not watched
    assert not zeroing.active
