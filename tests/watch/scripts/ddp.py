"""Trains a small network on the bundled digits in several processes, as Opacus' distributed example does."""

import argparse
import os

import torch
import torch.distributed as dist
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from opacus.utils.fsdp_utils import FSDP2Wrapper
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="hooks")
    parser.add_argument("--save")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    x, y = load_digits(return_X_y=True)
    train_set = TensorDataset(torch.tensor(x[:1437] / 16, dtype=torch.float32), torch.tensor(y[:1437]))
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    is_sharded = args.mode == "ghost_fsdp"
    model = FSDP2Wrapper(model) if is_sharded else DPDDP(model)
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    criterion = nn.CrossEntropyLoss()
    engine = PrivacyEngine(accountant="rdp")
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "grad_sample_mode": args.mode}
    loader = DataLoader(train_set, batch_size=64)
    made = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, criterion=criterion, **settings)
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if len(made) == 4 else criterion
    for data, target in loader:
        optimizer.zero_grad()
        criterion(model(data), target).backward()
        optimizer.step()
    state = model.state_dict()
    if is_sharded:
        state = {name: part.full_tensor() for name, part in state.items()}
    if rank == 0:
        print(f"ε = {engine.get_epsilon(1e-5):.2f}")
        if args.save:
            torch.save(state, args.save)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
