"""Trains a text classifier on generated sentences with DP-Adam and a target ε, as Opacus' example does on IMDb."""

import argparse

import torch
import torch.nn.functional as F
from opacus import PrivacyEngine
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

WORDS = 200


class Sentences(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 2, (count,), generator=generator)
        lengths = torch.randint(5, 20, (count,), generator=generator)
        self.texts = [
            1 + (torch.randint(0, WORDS - 1, (int(n),), generator=generator) // 2 * 2 + int(label)) % (WORDS - 1)
            for n, label in zip(lengths, self.labels, strict=True)
        ]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


class SampleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(WORDS, 16)
        self.fc1 = nn.Linear(16, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        x = self.emb(x).transpose(1, 2)
        x = F.avg_pool1d(x, x.shape[-1]).squeeze(-1)
        return self.fc2(F.relu(self.fc1(x)))


def padded_collate(batch):
    texts, labels = zip(*batch, strict=True)
    return pad_sequence(texts, batch_first=True), torch.stack(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=5.0)
    parser.add_argument("--delta", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_loader = DataLoader(Sentences(900, 1), batch_size=64, collate_fn=padded_collate, shuffle=True)
    test_loader = DataLoader(Sentences(200, 2), batch_size=64, collate_fn=padded_collate)
    model = SampleNet()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        target_epsilon=args.epsilon,
        target_delta=args.delta,
        epochs=args.epochs,
        max_grad_norm=1.0,
    )
    for _ in range(args.epochs):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(data), target).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(data).argmax(1) == target).sum().item() for data, target in test_loader)
        print(f"right: {right} of 200 (ε = {privacy_engine.get_epsilon(args.delta):.2f})")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
