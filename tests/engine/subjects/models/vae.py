"""A variational autoencoder on synthetic binary images, after pytorch/examples."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class VAE(nn.Module):
    def __init__(self, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.ReLU())
        self.fc_mu = nn.Linear(20, latent)
        self.fc_logvar = nn.Linear(20, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 20), nn.ReLU(), nn.Linear(20, 64), nn.Sigmoid()
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce, kld


class Bars(Dataset):
    def __init__(self, n=18):
        generator = torch.Generator().manual_seed(3)
        self.rows = torch.randint(8, (n,), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        image = torch.zeros(1, 8, 8)
        image[0, self.rows[index]] = 1.0
        return image, self.rows[index]


train_loader = DataLoader(Bars(), batch_size=6, shuffle=True)


def step(model, batch):
    data, _ = batch
    recon_batch, mu, logvar = model(data)
    bce, kld = loss_function(recon_batch, data, mu, logvar)
    return {"loss": (bce + kld) / len(data), "bce": bce, "kld": kld}


def train(model, optimizer, epoch):
    model.train()
    train_loss = 0
    for batch in train_loader:
        optimizer.zero_grad()
        loss = step(model, batch)["loss"]
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"====> Epoch: {epoch} Average loss: {train_loss / len(train_loader):.4f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 3):
        train(model, optimizer, epoch)
