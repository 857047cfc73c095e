"""Sequence classification: an LSTM over packed sequences of different lengths."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class LSTMClassifier(nn.Module):
    def __init__(self, vocab=12, embed=8, hidden=8, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed, padding_idx=0)
        self.lstm = nn.LSTM(
            embed, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2
        )
        self.attention = nn.Linear(2 * hidden, 1)
        self.classifier = nn.Linear(4 * hidden, classes)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        output, (h, _) = self.lstm(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        score = self.attention(output).squeeze(-1)
        score = score.masked_fill(tokens == 0, float("-inf"))
        context = (score.softmax(1).unsqueeze(-1) * output).sum(1)
        return self.classifier(torch.cat([context, h[-2], h[-1]], dim=1))


class Sentences(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.samples = []
        for _ in range(n):
            length = int(torch.randint(2, 9, (1,), generator=g))
            tokens = torch.randint(1, 12, (length,), generator=g)
            self.samples.append((tokens, int(tokens.sum()) % 3))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def collate(batch):
    sequences, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in sequences])
    return pad_sequence(sequences, batch_first=True), lengths, torch.tensor(labels)


train_loader = DataLoader(Sentences(14, seed=0), batch_size=5, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(Sentences(6, seed=1), batch_size=3, collate_fn=collate)

criterion = nn.CrossEntropyLoss()


def step(model, batch):
    tokens, lengths, labels = batch
    logits = model(tokens, lengths)
    loss = criterion(logits, labels)
    accuracy = (logits.argmax(dim=1) == labels).float().mean().item()
    return {"loss": loss, "accuracy": accuracy}


if __name__ == "__main__":
    model = LSTMClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        model.train()
        for batch in train_loader:
            optimizer.zero_grad()
            result = step(model, batch)
            result["loss"].backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [step(model, batch)["loss"].item() for batch in valid_loader]
        print(f"epoch {epoch}: validation {sum(losses) / len(losses):.4f}")
