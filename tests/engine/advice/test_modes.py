"""Findings about train and eval mode, graphs of evaluations, and units that are dead."""

from __future__ import annotations

import pytest

from tests.engine.advice.desk import Desk

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), {layer}, nn.ReLU(), nn.Linear(16, 3))
x, y = torch.randn(64, 4), torch.randint(3, (64,))
held_out, wanted = torch.randn(32, 4), torch.randint(3, (32,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def fit(steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
"""
DROPOUT, BATCH_NORM = (
    BEGIN.format(layer=f"nn.{name}") for name in ("Dropout(0.5)", "BatchNorm1d(16)")
)
EVALUATIONS = [
    "F.cross_entropy(net(held_out), wanted)",
    "(net(held_out).argmax(1) == wanted).float().mean()",
    "net(held_out).max(1).indices.eq(wanted).sum()",
]


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize(("begin", "layer"), [(DROPOUT, "Dropout"), (BATCH_NORM, "BatchNorm")])
def test_an_evaluation_in_train_mode(desk: Desk, begin: str, layer: str, evaluation: str) -> None:
    found = desk.only(f"{begin}fit(5)\nwith torch.no_grad():\n    print({evaluation})")
    assert found.kind == "mode"
    assert found.text.startswith(f"`net` is evaluated in train mode: {layer} ")
    assert found.line == 15
    assert found.evidence == (
        f"its {layer} ran in train mode under no_grad, and line 15 compares the result with"
        " targets",
        "5 optimizer steps had been taken",
    )
    assert found.fix.startswith("net.eval()  # before the evaluation")
    right = f"net.eval()\nwith torch.no_grad():\n    print({evaluation})\nnet.train()\nfit(5)"
    assert desk.run(right) == []


@pytest.mark.parametrize("evaluation", EVALUATIONS)
def test_an_evaluation_after_many_steps_is_looked_at_too(desk: Desk, evaluation: str) -> None:
    found = desk.only(f"{DROPOUT}fit(100)\nwith torch.no_grad():\n    print({evaluation})")
    assert (found.kind, found.line) == ("mode", 15)
    assert found.evidence[1] == "100 optimizer steps had been taken"
    graphs = f"net.eval()\nfor i in range(4):\n    {EVALUATIONS[0]}.item()\n"
    assert desk.only(f"net.train()\nfit(100)\n{graphs}").line == 5


BY_HAND = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(16))
        self.register_buffer("var", torch.ones(16))
    def forward(self, x): return F.batch_norm(x, self.mean, self.var, training=True)
"""


def test_a_batch_norm_of_the_users_own_is_one_too(desk: Desk) -> None:
    begin = BY_HAND + BEGIN.format(layer="Own()")
    found = desk.only(f"{begin}fit(5)\nwith torch.no_grad():\n    {EVALUATIONS[0]}")
    assert found.text.startswith("`net` is evaluated in train mode: BatchNorm ")


@pytest.mark.parametrize(
    "code",
    [
        f"{DROPOUT}with torch.no_grad():\n    {EVALUATIONS[0]}",  # before any step
        f"{DROPOUT}net.eval()\nfor i in range(5): {EVALUATIONS[0]}.item()",
        # what the model gave without a graph is used in a loss, or beside one, with gradients on
        f"{DROPOUT}fit(5)\nw = torch.ones(4, 3).requires_grad_()\n"
        "with torch.no_grad():\n    soft = net(x)\n"
        "y == y.clone()\nF.mse_loss(x @ w, soft).backward()",
        # a model that is not trained, and a comparison that is none with targets
        f"{DROPOUT}fit(5)\nnet = nn.Sequential(nn.Dropout(), nn.Linear(4, 3))\n"
        f"with torch.no_grad():\n    {EVALUATIONS[0]}",
        f"{DROPOUT}fit(5)\nwith torch.no_grad():\n    (net(held_out) == 0).float().mean()",
        f"{BEGIN.format(layer='nn.BatchNorm1d(16, track_running_stats=False)')}"
        f"fit(5)\nwith torch.no_grad():\n    {EVALUATIONS[0]}",
    ],
)
def test_what_is_no_evaluation_of_the_trained_model_is_left_alone(desk: Desk, code: str) -> None:
    assert desk.run(code) == []


def test_dropout_that_is_not_a_layer_or_drops_nothing_is_left_alone(desk: Desk) -> None:
    evaluation = f"with torch.no_grad():\n    print({EVALUATIONS[0]})\n"
    nothing = BEGIN.format(layer="nn.Dropout(0.0)")
    assert desk.run(f"{nothing}fit(5)\n{evaluation}") == []
    own = (
        "class Own(nn.Module):\n    def forward(self, x): return F.dropout(x, 0.5, self.training)\n"
    )
    begin = own + BEGIN.format(layer="Own(), nn.BatchNorm1d(16)")
    found = desk.only(f"{begin}fit(5)\n{evaluation}")  # the advice goes on
    assert found.text.startswith("`net` is evaluated in train mode: BatchNorm ")


@pytest.mark.parametrize("begin", [DROPOUT, BATCH_NORM])
def test_training_goes_on_in_eval_mode(desk: Desk, begin: str) -> None:
    evaluate = "net.eval()\nwith torch.no_grad():\n    F.cross_entropy(net(held_out), wanted)\n"
    found = desk.only(f"{begin}fit(3)\n{evaluate}fit(100)")
    assert found.kind == "mode"
    assert found.text.startswith("`net` is trained in eval mode: ")
    assert found.evidence[0].endswith("`net.training` is False")
    assert found.fix.startswith("net.train()") and found.line == 10
    assert desk.run(f"net.train()\nfit(3)\n{evaluate}net.train()\nfit(100)") == []


def test_an_evaluation_that_builds_graphs(desk: Desk) -> None:
    evaluate = "net.eval()\nfor i in range(4):\n    F.cross_entropy(net(held_out), wanted).item()\n"
    found = desk.only(f"{DROPOUT}fit(3)\n{evaluate}")
    assert (found.kind, found.line) == ("mode", 16)
    assert "is evaluated with gradients on, and backward is not called" in found.text
    assert found.evidence[0].startswith("`F.cross_entropy(net(held_out), wanted).item()` ran 3")
    assert found.fix.startswith("with torch.no_grad():")


@pytest.mark.parametrize(
    "code",
    [
        # the gradient of the input, in eval mode
        "net.eval()\nfor i in range(5):\n    a = x.clone().requires_grad_()\n"
        "    F.cross_entropy(net(a), y).backward()\n    net.zero_grad()\nnet.train()\nfit(3)",
        "net.eval()\nfor i in range(5):\n    a = x.clone().requires_grad_()\n"
        "    torch.autograd.grad(F.cross_entropy(net(a), y), a)\nnet.train()\nfit(3)",
        # a loss that looks through a frozen network in eval mode
        "judge = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 3))\n"
        "judge.requires_grad_(False).eval()\nfor i in range(8):\n    optimizer.zero_grad()\n"
        "    F.cross_entropy(judge(net(x)), y).backward()\n    optimizer.step()",
        # a frozen teacher has no graph, and its student no layer that differs between the modes
        "teacher = nn.Sequential(nn.Linear(4, 3), nn.Dropout()).requires_grad_(False).eval()\n"
        "student = nn.Linear(4, 3)\nfor i in range(5):\n"
        "    F.mse_loss(student(x), teacher(x)).item()",
        # what is compared under no_grad came from the pass with a graph, not from the one before
        "for i in range(5):\n    with torch.no_grad():\n        net(x)\n    out = net(x)\n"
        "    F.cross_entropy(out, y).backward()\n    with torch.no_grad():\n"
        "        (out.argmax(1) == y).float().mean()",
        # the graph of the pass in eval mode was not used, and its student has no such layer
        "net.eval()\nstudent = nn.Linear(4, 3)\nfor i in range(5):\n    net(x)\n"
        "    with torch.no_grad():\n        wanted = net(x)\n"
        "    F.mse_loss(student(x), wanted).item()",
        # some steps in eval mode, again and again
        "for i in range(3):\n    net.eval()\n    fit(3)\n    net.train()\n    fit(1)",
        # once for each epoch
        "for epoch in range(5):\n    fit(2)\n    net.eval()\n"
        "    F.cross_entropy(net(x), y).item()\n    net.train()",
    ],
)
def test_modes_that_are_meant_so(desk: Desk, code: str) -> None:
    assert desk.run(f"{DROPOUT}fit(3)\n{code}") == []


@pytest.mark.parametrize(
    ("first", "then", "end"),
    [
        ("train", "eval", "its graphs are built for nothing, and cost memory and time."),
        ("eval", "train", "Its graphs are built for nothing, too."),
    ],
)
def test_the_mode_of_the_last_forward_pass_counts(
    desk: Desk, first: str, then: str, end: str
) -> None:
    loss = "F.cross_entropy(net(x), y).item()"
    code = f"for i in range(6):\n    net.{first}()\n    net(x)\n    net.{then}()\n    {loss}\n"
    assert desk.only(f"{DROPOUT}fit(3)\n{code}").text.endswith(end)


def test_of_two_models_the_one_that_ran_last_is_judged(desk: Desk) -> None:
    code = (
        "helper = nn.Sequential(nn.Dropout())\nfor i in range(5):\n"
        "    helper(x.clone().requires_grad_())\n    F.cross_entropy(net(x), y).item()\n"
    )
    found = desk.only(f"{DROPOUT}fit(3)\n{code}")
    assert found.text.startswith("`net` is evaluated in train mode")


def test_units_that_are_dead(desk: Desk) -> None:
    begin = DROPOUT.replace("nn.Dropout(0.5)", "nn.Tanh()")
    code = "with torch.no_grad():\n    net[0].bias.fill_(3.0)\n    net[1] = nn.Identity()\n"
    assert desk.run(f"{begin}{code}fit(80)") == []
    found = desk.only("with torch.no_grad():\n    net[0].bias[:12] = -100.0\nfit(80)")
    assert found.kind == "dead_units"
    assert found.text.startswith("12 of the 16 units of `net.2` behind a ReLU give 0")
    assert found.evidence == (
        "12 of 16 outputs were 0 for all of 640 values each, at 10 steps from 16 to 64",
    )
    desk.run("with torch.no_grad():\n    alive = net[:3](x).ne(0).any(0).sum()")
    assert desk.variables["alive"] == 4


@pytest.mark.parametrize(("batch", "steps"), [(8, 450), (16, 70), (32, 70)])
def test_units_that_are_dead_for_small_batches(desk: Desk, batch: int, steps: int) -> None:
    begin = DROPOUT.replace("nn.Dropout(0.5)", "nn.Identity()").replace("64", str(batch))
    dead = "with torch.no_grad():\n    net[0].bias.fill_(-100.0)\n"
    found = desk.only(f"{begin}{dead}fit({steps})")
    assert found.text.startswith("All 16 units of `net.2` behind a ReLU give 0 for every sample")


def test_units_that_die_later(desk: Desk) -> None:
    begin = DROPOUT.replace("nn.Dropout(0.5)", "nn.Identity()")
    alive = "with torch.no_grad():\n    net[0].bias.fill_(3.0)\n"
    dead = "with torch.no_grad():\n    net[0].bias.fill_(-100.0)\n"
    found = desk.only(f"{begin}{alive}fit(330)\n{dead}fit(440)")
    assert found.kind == "dead_units" and found.evidence[0].endswith("at 3 steps from 512 to 768")


def test_each_relu_is_looked_at_on_its_own(desk: Desk) -> None:
    begin = BEGIN.format(layer="nn.ReLU(), nn.Linear(16, 16)")
    code = "with torch.no_grad():\n    net[2].bias.fill_(3.0)\n    net[2].bias[:12] = -100.0\n"
    found = desk.only(f"{begin}{code}fit(80)")
    assert found.text.startswith("12 of the 16 units of `net.3` behind a ReLU give 0")


def test_a_relu_of_several_layers_and_small_batches_are_left_alone(desk: Desk) -> None:
    assert (
        desk.run(
            """
relu = nn.ReLU()
first, last = nn.Linear(4, 16), nn.Linear(16, 8)
with torch.no_grad():
    first.bias.fill_(-100.0)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], 0.01)
for step in range(80):
    optimizer.zero_grad()
    relu(last(relu(first(torch.randn(2, 4))))).sum().backward()
    optimizer.step()
"""
        )
        == []
    )


CALLS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        return self.head({call})
net = Net()
x = torch.randn(8, 4)
net(x)
net.eval()
with torch.no_grad():
    net(x); net(x)
"""


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        ("F.dropout(x)", "F.dropout(x, 0.5, training=self.training)"),
        ("F.dropout(x, p=0.2)", "F.dropout(x, 0.2, training=self.training)"),
    ],
)
def test_a_dropout_that_eval_mode_does_not_reach(desk: Desk, call: str, fix: str) -> None:
    found = desk.only(CALLS.format(call=call))
    assert (found.kind, found.line, found.fix) == ("mode", 7, fix)
    assert found.text.startswith("`F.dropout` drops values at random in eval mode too")
    assert found.evidence == (
        "it ran in the forward of Net, whose `training` is False",
        f"`return self.head({call})` gives no training",
    )


@pytest.mark.parametrize(
    "call",
    [
        "F.dropout(x, 0.5, self.training)",
        "F.dropout(x, training=self.training)",
        "F.dropout(x, 0.5, training=True)",  # as in Monte Carlo dropout
        "F.dropout(x, 0.5, True)",
        "F.dropout(x, 0.0)",
        "F.alpha_dropout(x, 0.1)",  # which drops nothing unless it is told to
        "nn.Dropout()(x)",
    ],
)
def test_a_dropout_that_is_told_its_mode_is_left_alone(desk: Desk, call: str) -> None:
    assert desk.run(CALLS.format(call=call)) == []


EVALUATED = """
net = nn.Sequential(nn.Linear(4, 8), nn.{layer}, nn.ReLU(), nn.Linear(8, 3))
x, y = torch.randn(64, 4), torch.randint(3, (64,))
batches = [(x[i:i + 8], y[i:i + 8]) for i in range(0, 64, 8)]
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range({epochs}):
    for a, b in batches * {turns}:
        optimizer.zero_grad()
        F.cross_entropy(net(a), b).backward()
        optimizer.step()
    {before}
    right = total = 0
    for a, b in batches:
        out = net(a)
        {judge}
"""
LOST = "total += F.cross_entropy(out, b).item()"
COUNTED = "right += (out.argmax(1) == b).sum().item()"


@pytest.mark.parametrize("layer", ["BatchNorm1d(8)", "Dropout(0.5)"])
@pytest.mark.parametrize("judge", [LOST, COUNTED])
@pytest.mark.parametrize("turns", [1, 9])
def test_an_evaluation_in_train_mode_with_a_graph(
    desk: Desk, layer: str, judge: str, turns: int
) -> None:
    """In the first steps, and when most steps are not looked at any more."""
    cell = EVALUATED.format(layer=layer, judge=judge, turns=turns, epochs=2, before="pass")
    found = desk.only(cell)
    assert (found.kind, found.line) == ("mode", 15)
    assert found.text.startswith("`net` is evaluated in train mode: ")
    assert found.text.endswith("Its graphs are built for nothing, too.")
    assert found.evidence[0] == (
        "the graphs of 3 forward passes in train mode were dropped without a backward; line 15"
        " compares their results with targets"
    )
    assert found.fix == "net.eval()  # before the evaluation, in which: with torch.no_grad():"
    right = cell.replace("pass", "net.eval()", 1).replace(
        "    for a, b in batches * ", "    net.train()\n    for a, b in batches * "
    )
    right = right.replace("        out = net(a)", "        with torch.no_grad(): out = net(a)")
    assert desk.run(right) == []


def test_losses_in_train_mode_that_are_added_up_before_one_backward(desk: Desk) -> None:
    cell = EVALUATED.format(
        layer="Dropout(0.5)", judge="total = total + F.cross_entropy(out, b)", turns=1, epochs=2,
        before="optimizer.zero_grad()",
    )  # fmt: skip
    assert desk.run(cell + "    total.backward()\n    optimizer.step()\n") == []
