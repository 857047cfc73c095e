"""A U-Net that segments circles; the data are drawn by two worker processes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def double_conv(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
        nn.Conv2d(out_channels, out_channels, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, channels=(1, 4, 8), classes=3):
        super().__init__()
        self.downs = nn.ModuleList(
            double_conv(a, b) for a, b in zip(channels[:-1], channels[1:], strict=True)
        )
        self.pool = nn.MaxPool2d(2)
        self.bottleneck = double_conv(channels[-1], channels[-1] * 2)
        self.ups = nn.ModuleList()
        self.merges = nn.ModuleList()
        for c in reversed(channels[1:]):
            self.ups.append(nn.ConvTranspose2d(c * 2, c, 2, stride=2))
            self.merges.append(double_conv(c * 2, c))
        self.head = nn.Conv2d(channels[1], classes, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottleneck(x)
        for up, merge in zip(self.ups, self.merges, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


class Circles(Dataset):
    """Grey images with a disc (class 1) and its rim (class 2)."""

    def __init__(self, count, size=16):
        g = torch.Generator().manual_seed(7)
        self.centers = torch.rand(count, 2, generator=g) * size
        self.noise = torch.rand(count, 1, size, size, generator=g)
        self.size = size

    def __len__(self):
        return len(self.centers)

    def __getitem__(self, i):
        grid = torch.arange(self.size, dtype=torch.float32)
        cy, cx = self.centers[i]
        distance = ((grid[:, None] - cy) ** 2 + (grid[None] - cx) ** 2).sqrt()
        mask = (distance < 6).long() + ((distance >= 5) & (distance < 6)).long()
        image = self.noise[i] * 0.3 + mask[None].float()
        return image, mask


dataset = Circles(9)
train_loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)


if __name__ == "__main__":
    model = UNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for image, mask in train_loader:
        loss = criterion(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
