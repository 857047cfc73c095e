"""Models that benchmarks train, as the source of a cell that makes `net`, `x` and `y`. It finds
`torch`, `nn` and `F`."""

from __future__ import annotations

MLP = """
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
x, y = torch.randn(64, 20), torch.randint(2, (64,))
"""

GPT = """
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        size, time, width = x.shape
        q, k, v = (
            part.view(size, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.into(x).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(size, time, width))

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))

class GPT(nn.Module):
    def __init__(self, words=64, width=64, heads=4, blocks=4, length=32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h)).flatten(0, 1)

net = GPT()
x, y = torch.randint(64, (8, 32)), torch.randint(64, (8 * 32,))
"""

LSTM = """
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        h, _ = self.lstm(self.words(x))
        return self.head(h).flatten(0, 1)

net = Tagger()
x, y = torch.randint(100, (16, 30)), torch.randint(5, (16 * 30,))
"""

RESNET = """
class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = None
        if stride != 1 or channels != width:
            self.down = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        kept = x if self.down is None else self.down(x)
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + kept)

class ResNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        parts, channels = [], width
        for stage in range(4):
            for place in range(2):
                parts.append(Block(channels, width << stage, 2 if stage and not place else 1))
                channels = width << stage
        self.stages, self.head = nn.Sequential(*parts), nn.Linear(channels, 10)

    def forward(self, x):
        return self.head(self.stages(F.relu(self.bn(self.conv(x)))).mean((2, 3)))

net = ResNet()
x, y = torch.randn(4, 3, 32, 32), torch.randint(10, (4,))
"""

MODELS = {"MLP": MLP, "GPT": GPT, "LSTM": LSTM, "ResNet-18 shaped": RESNET}
