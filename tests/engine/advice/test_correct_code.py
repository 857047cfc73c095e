"""Nothing is told about code that is right: eight models, the examples, and usual idioms."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.engine.advice.desk import Desk
from tests.engine.subjects.eight import CASES, Case

ASSETS = Path(__file__).parents[3] / "assets"
EPOCHS = """
model = {made}
model.train()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 0.01)
for epoch in range(2):
    for batch in batches_of():
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_model_that_is_right(desk: Desk, case: Case) -> None:
    file = case.path.read_text(encoding="utf-8")
    assert desk.run(file) == []
    names = ModuleType(case.name)
    vars(names).update(desk.variables)
    desk.variables["loss_of"] = lambda model, batch: case.loss(names, model, batch)
    desk.variables["batches_of"] = lambda: case.batches(names)
    is_class = isinstance(eval(case.expression, desk.variables), type)
    made = f"{case.expression}()" if is_class else case.expression
    assert desk.run(EPOCHS.format(made=made)) == []


@pytest.mark.parametrize("path", sorted(ASSETS.rglob("examples/*/*.py")), ids=lambda p: p.stem)
def test_an_example(desk: Desk, path: Path) -> None:
    assert desk.run(path.read_text(encoding="utf-8")) == []


BEGIN = """
torch.manual_seed(0)
def mlp(inputs=4, outputs=3):
    return nn.Sequential(
        nn.Linear(inputs, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(16, outputs))
net = mlp()
x, y = torch.randn(64, 4), torch.randint(3, (64,))
batches = [(x[i:i + 16], y[i:i + 16]) for i in range(0, 64, 16)]
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
"""
IDIOMS = {
    "evaluation after each epoch": """
for epoch in range(4):
    net.train()
    for a, b in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(a), b)
        loss.backward()
        optimizer.step()
    net.eval()
    right = total = 0
    with torch.no_grad():
        for a, b in batches:
            scores = net(a)
            total += F.cross_entropy(scores, b).item()
            right += (scores.argmax(1) == b).sum().item()
    print(right / 64, total)
""",
    "evaluation in a function that inference_mode decorates": """
@torch.inference_mode()
def evaluate():
    net.eval()
    found = [F.cross_entropy(net(a), b) for a, b in batches]
    net.train()
    return torch.stack(found).mean()
for epoch in range(4):
    for a, b in batches:
        loss = F.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate())
""",
    "gradient accumulation": """
for epoch in range(6):
    for i, (a, b) in enumerate(batches):
        (F.cross_entropy(net(a), b) / 2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()
""",
    "GAN with two optimizers": """
G = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
of_g = torch.optim.Adam(G.parameters(), 0.01)
of_d = torch.optim.Adam(D.parameters(), 0.01)
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
bce = nn.BCEWithLogitsLoss()
for epoch in range(3):
    for a, _ in batches:
        of_d.zero_grad()
        bce(D(a), ones).backward()
        fake = G(torch.randn(16, 2))
        bce(D(fake.detach()), zeros).backward()
        of_d.step()
        of_g.zero_grad()
        loss = bce(D(fake), ones)
        loss.backward()
        of_g.step()
""",
    "GAN whose generator steps first, sampled under no_grad": """
G, D = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)), nn.Linear(4, 1)
of_g = torch.optim.Adam(G.parameters(), 0.01)
of_d = torch.optim.Adam(D.parameters(), 0.01)
for a, _ in batches * 3:
    of_g.zero_grad()
    F.softplus(-D(G(torch.randn(16, 2)))).mean().backward()
    of_g.step()
    with torch.no_grad():
        fake = G(torch.randn(16, 2))
    of_d.zero_grad()
    (F.softplus(-D(a)) + F.softplus(D(fake))).mean().backward()
    of_d.step()
""",
    "frozen backbone": """
backbone = mlp(4, 8)
for p in backbone.parameters():
    p.requires_grad_(False)
backbone.eval()
model = nn.Sequential(backbone, nn.Linear(8, 3))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.1)
for a, b in batches * 3:
    loss = F.cross_entropy(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "frozen backbone under no_grad": """
backbone, head = mlp(4, 8).eval(), nn.Linear(8, 3)
optimizer = torch.optim.SGD(head.parameters(), 0.1)
for a, b in batches * 3:
    with torch.no_grad():
        h = backbone(a)
    loss = F.cross_entropy(head(h), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "frozen BatchNorm": """
for epoch in range(3):
    net.train()
    net[1].eval()
    for a, b in batches:
        optimizer.zero_grad()
        F.cross_entropy(net(a), b).backward()
        optimizer.step()
""",
    "LBFGS with a closure": """
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5)
def closure():
    lbfgs.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    return loss
for i in range(6):
    loss = lbfgs.step(closure)
""",
    "clip_grad_norm_ and a schedule": """
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=12)
for a, b in batches * 3:
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(net(a), b).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    schedule.step()
""",
    "exponential moving average": """
import copy
ema = copy.deepcopy(net).requires_grad_(False)
for a, b in batches * 3:
    optimizer.zero_grad()
    with torch.no_grad():
        teacher = ema(a).softmax(1)
    scores = net(a)
    loss = F.cross_entropy(scores, b) + F.kl_div(
        scores.log_softmax(1), teacher, reduction="batchmean")
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for own, other in zip(ema.parameters(), net.parameters()):
            own.mul_(0.99).add_(other, alpha=0.01)
ema.eval()
with torch.no_grad():
    print(F.cross_entropy(ema(x), y), (ema(x).argmax(1) == y).float().mean())
""",
    "averaged weights and update_bn": """
averaged = torch.optim.swa_utils.AveragedModel(net)
for a, b in batches * 3:
    optimizer.zero_grad()
    F.cross_entropy(net(a), b).backward()
    optimizer.step()
    averaged.update_parameters(net)
torch.optim.swa_utils.update_bn(batches, averaged)
averaged.eval()
with torch.no_grad():
    print(F.cross_entropy(averaged(x), y))
""",
    "weight tying": """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.head = nn.Linear(6, 9, bias=False)
        self.head.weight = self.words.weight
    def forward(self, i):
        return self.head(self.words(i))
tied = Tied()
optimizer = torch.optim.Adam(tied.parameters())
words = torch.randint(9, (16, 5))
for i in range(8):
    optimizer.zero_grad()
    F.cross_entropy(tied(words).flatten(0, 1), words.flatten()).backward()
    optimizer.step()
""",
    "mixup": """
for a, b in batches * 3:
    share = float(torch.distributions.Beta(0.2, 0.2).sample())
    order = torch.randperm(len(a))
    mixed = share * a + (1 - share) * a[order]
    scores = net(mixed)
    loss = share * F.cross_entropy(scores, b) + (1 - share) * F.cross_entropy(scores, b[order])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "mixup with soft labels": """
labels = F.one_hot(y, 3).float()
for i in range(8):
    order = torch.randperm(64)
    optimizer.zero_grad()
    loss = F.cross_entropy(net(0.7 * x + 0.3 * x[order]), 0.7 * labels + 0.3 * labels[order])
    loss.backward()
    optimizer.step()
""",
    "losses of several tasks added up": """
trunk, heads = nn.Linear(4, 8), nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 1)])
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()])
for a, b in batches * 4:
    h = torch.tanh(trunk(a))
    loss = 0
    loss = loss + F.cross_entropy(heads[0](h), b)
    loss = loss + F.mse_loss(heads[1](h).squeeze(-1), a[:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a loss summed over time": """
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
for turn in range(6):
    h, loss = torch.zeros(16, 8), 0
    for t in range(10):
        h = cell(torch.randn(16, 4), h)
        loss += F.mse_loss(head(h), torch.zeros(16, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "pairwise distances": """
points = nn.Parameter(torch.randn(16, 1))
optimizer = torch.optim.SGD([points], 0.1)
for i in range(6):
    optimizer.zero_grad()
    distances = ((points - points.T) ** 2).mean() + (points - points.squeeze(1)).abs().mean()
    (-distances).backward()
    optimizer.step()
""",
    "targets of a policy gradient": """
policy = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
for i in range(8):
    chances = torch.distributions.Categorical(policy(x))
    action = chances.sample()
    optimizer.zero_grad()
    (-chances.log_prob(action) * torch.randn(64)).mean().backward()
    optimizer.step()
""",
    "DQN with a target network": """
import copy
policy, target = mlp(4, 3), mlp(4, 3)
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters())
for i in range(8):
    value = policy(x).gather(1, y[:, None]).squeeze(1)
    with torch.no_grad():
        wanted = target(x).max(1).values * 0.9 + 1
    optimizer.zero_grad()
    F.smooth_l1_loss(value, wanted).backward()
    optimizer.step()
""",
    "an adversarial example": """
for i in range(6):
    a = x.clone().requires_grad_()
    F.cross_entropy(net(a), y).backward()
    optimizer.zero_grad()
    F.cross_entropy(net(x + 0.1 * a.grad.sign()), y).backward()
    optimizer.step()
""",
    "a gradient penalty": """
for i in range(6):
    a = x.clone().requires_grad_()
    scores = net(a)
    slope, = torch.autograd.grad(scores.sum(), a, create_graph=True)
    loss = F.cross_entropy(scores, y) + (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "gradient descent by hand": """
w, b = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
target = x.sum(1, keepdim=True)
for i in range(8):
    loss = ((x @ w + b - target) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad.zero_()
""",
    "steps in the backward pass": """
held = {p: torch.optim.SGD([p], 0.1) for p in net.parameters()}
def step(p):
    held[p].step()
    held[p].zero_grad()
for p in net.parameters():
    p.register_post_accumulate_grad_hook(step)
for a, b in batches * 3:
    F.cross_entropy(net(a), b).backward()
""",
    "several optimizers of one model": """
first = torch.optim.SGD(net[0].parameters(), 0.1)
rest = torch.optim.Adam(net[1:].parameters())
for a, b in batches * 3:
    first.zero_grad()
    rest.zero_grad()
    F.cross_entropy(net(a), b).backward()
    first.step()
    rest.step()
""",
    "a mixture of experts": """
experts, gate = nn.ModuleList(nn.Linear(4, 3) for _ in range(3)), nn.Linear(4, 3)
optimizer = torch.optim.Adam([*experts.parameters(), *gate.parameters()])
for a, b in batches * 4:
    chosen = gate(a).softmax(1)
    best = chosen.argmax(1)
    out = torch.stack([experts[i](row) * chosen[n, i] for n, (i, row) in enumerate(zip(best, a))])
    optimizer.zero_grad()
    F.cross_entropy(out, b).backward()
    optimizer.step()
""",
    "mixed precision": """
scaler = torch.amp.GradScaler("cpu")
for a, b in batches * 3:
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(net(a), b)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
""",
    "two models trained in one cell": """
for kind in (torch.optim.SGD, torch.optim.Adam):
    model = mlp()
    optimizer = kind(model.parameters(), lr=0.01)
    losses = []
    for a, b in batches * 2:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
""",
    "dropout kept on to sample predictions": """
for a, b in batches * 2:
    optimizer.zero_grad()
    F.cross_entropy(net(a), b).backward()
    optimizer.step()
net.eval()
net[3].train()
with torch.no_grad():
    spread = torch.stack([net(x).softmax(1) for _ in range(8)]).std(0)
""",
    "dropout kept on to judge averaged predictions": """
for a, b in batches * 2:
    optimizer.zero_grad()
    F.cross_entropy(net(a), b).backward()
    optimizer.step()
net.eval()
net[3].train()
with torch.no_grad():
    right = (torch.stack([net(x).softmax(1) for _ in range(8)]).mean(0).argmax(1) == y).sum()
""",
    "two losses added up to print them, after a backward of each": """
scores = nn.Linear(4, 1)
optimizer = torch.optim.Adam(scores.parameters())
bce = nn.BCEWithLogitsLoss()
for a, _ in batches * 4:
    optimizer.zero_grad()
    of_real = bce(scores(a).view(-1), torch.ones(16))
    of_real.backward()
    of_fake = bce(scores(torch.randn(16, 4)).view(-1), torch.zeros(16))
    of_fake.backward()
    of_both = of_real + of_fake
    optimizer.step()
""",
    "random labels": """
chances = F.softmax(net(x), 1).detach()
for a, b in batches * 2:
    optimizer.zero_grad()
    (F.nll_loss(F.log_softmax(net(a), 1), b) + 0.1 * F.mse_loss(net(a)[:, 0], a[:, 0])).backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("name", IDIOMS)
def test_a_usual_idiom(desk: Desk, name: str) -> None:
    assert desk.run(BEGIN + IDIOMS[name]) == []
