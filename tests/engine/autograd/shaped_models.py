"""Models with the true structure of well-known ones, and small widths so that they run quickly."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x_BTC: Tensor) -> Tensor:
        size, time, width = x_BTC.shape
        q, k, v = (
            part.view(size, time, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x_BTC).split(width, dim=2)
        )
        weights = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.ones(time, time, dtype=torch.bool).tril()
        weights = weights.masked_fill(~mask, float("-inf")).softmax(-1)
        mixed_BTC = (weights @ v).transpose(1, 2).reshape(size, time, width)
        return self.c_proj(mixed_BTC)


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.act = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(self.act(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """GPT-2: 12 blocks of 12 heads, learned positions, the head's weight tied to the embedding."""

    def __init__(self, layers: int = 12, width: int = 48, heads: int = 12, words: int = 64) -> None:
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(words, width),
                "wpe": nn.Embedding(32, width),
                "h": nn.ModuleList(Block(width, heads) for _ in range(layers)),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, words_BT: Tensor) -> Tensor:
        part = self.transformer
        x = part["wte"](words_BT) + part["wpe"](torch.arange(words_BT.shape[1]))
        for block in part["h"].children():
            x = block(x)
        return self.lm_head(part["ln_f"](x))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        kept = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.bn3(self.conv3(x))
        x += kept
        return self.relu(x)


class ResNet50(nn.Module):
    """ResNet-50: four stages of 3, 4, 6 and 3 bottlenecks, here 4 channels wide to begin with."""

    def __init__(self, width: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = width
        for stage, blocks in enumerate((3, 4, 6, 3)):
            inner = width * 2**stage
            parts = []
            for place in range(blocks):
                parts.append(Bottleneck(channels, inner, 2 if stage and not place else 1))
                channels = 4 * inner
            setattr(self, f"layer{stage + 1}", nn.Sequential(*parts))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def gpt2(layers: int = 12) -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    model = GPT2(layers)
    words_BT = torch.randint(64, (2, 16))
    return model, lambda: F.cross_entropy(model(words_BT).flatten(0, 1), words_BT.flatten())


def resnet50() -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    model = ResNet50()
    x_BCHW, y_B = torch.rand(2, 3, 64, 64), torch.randint(10, (2,))
    return model, lambda: F.cross_entropy(model(x_BCHW), y_B)


def mlp(layers: int = 3, width: int = 16) -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*parts, nn.Linear(width, 4))
    x_BF, y_B = torch.rand(8, width), torch.randint(4, (8,))
    return model, lambda: F.cross_entropy(model(x_BF), y_B)


def chain(layers: int = 1_000) -> Tensor:
    """`layers` times a product and a tanh, without any module."""
    x = torch.ones(4, requires_grad=True)
    for _ in range(layers):
        x = (x * 0.5).tanh()
    return x.sum()


def unrolled(steps: int = 200, width: int = 8) -> tuple[nn.Module, Callable[[], Tensor]]:
    """One RNNCell run `steps` times: its weights are shared by all steps."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"cell": nn.RNNCell(4, width), "head": nn.Linear(width, 1)})
    x_TBF = torch.rand(steps, 3, 4)

    def run() -> Tensor:
        h_BH = torch.zeros(3, width)
        for x_BF in x_TBF:
            h_BH = model["cell"](x_BF, h_BH)
        return model["head"](h_BH).sum()

    return model, run


class Double(nn.Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.conv1(x).relu()).relu()


class UNet(nn.Module):
    """Down `depth` times and up again, each stage joined with its counterpart by a long skip."""

    def __init__(self, depth: int = 4, width: int = 2) -> None:
        super().__init__()
        widths = [width * 2**stage for stage in range(depth + 1)]
        pairs = list(zip([3, *widths], widths, strict=False))
        self.down = nn.ModuleList(Double(a, b) for a, b in pairs[:-1])
        self.middle = Double(*pairs[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * b, b, 2, 2) for b in widths[-2::-1])
        self.join = nn.ModuleList(Double(2 * b, b) for b in widths[-2::-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for stage in self.down.children():
            kept.append(stage(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.middle(x)
        for up, join in zip(self.up.children(), self.join.children(), strict=True):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def unet() -> tuple[nn.Module, Callable[[], Tensor]]:
    torch.manual_seed(0)
    model, x_BCHW = UNet(), torch.rand(1, 3, 32, 32)
    return model, lambda: model(x_BCHW).mean()
