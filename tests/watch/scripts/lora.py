"""Fine-tunes a small transformer by low-rank adapters with DP-SGD; the model itself stays frozen."""

import argparse

import torch
import torch.nn.functional as F
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

WORDS, LENGTH, WIDTH = 50, 12, 16


class Adapted(nn.Module):
    """A frozen linear layer and a low-rank one beside it."""

    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x):
        y = self.norm1(x)
        x = x + F.scaled_dot_product_attention(self.query(y), self.key(y), self.value(y))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens) + self.places).mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--delta", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    tokens = torch.randint(0, WORDS, (800, LENGTH))
    labels = (tokens < 10).sum(1).gt(2).long()
    train_loader = DataLoader(TensorDataset(tokens, labels), batch_size=50, shuffle=True)

    model = Transformer().requires_grad_(False)
    for block in model.blocks:
        block.query, block.value = Adapted(block.query), Adapted(block.value)
    model.head.requires_grad_(True)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = optim.SGD(trainable, lr=0.5)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=0.8,
        max_grad_norm=0.5,
    )
    model.train()
    for _ in range(args.epochs):
        with BatchMemoryManager(
            data_loader=train_loader, max_physical_batch_size=32, optimizer=optimizer
        ) as memory_safe_loader:
            for data, target in memory_safe_loader:
                optimizer.zero_grad()
                F.cross_entropy(model(data), target).backward()
                optimizer.step()
    print(f"ε = {privacy_engine.get_epsilon(args.delta):.2f}")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
