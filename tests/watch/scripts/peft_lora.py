"""Fine-tunes a small BERT by PEFT's low-rank adapters with DP-SGD, as Opacus' tutorial on text does."""

import argparse

import torch
from opacus import PrivacyEngine
from peft import LoraConfig, TaskType, get_peft_model
from torch import optim
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

WORDS, LENGTH = 50, 12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--delta", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    tokens = torch.randint(0, WORDS, (810, LENGTH))
    labels = (tokens < 10).sum(1).gt(2).long()
    train_loader = DataLoader(TensorDataset(tokens, labels), batch_size=50, shuffle=True)

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=WORDS, max_position_embeddings=LENGTH, num_labels=2, **sizes)
    lora = LoraConfig(task_type=TaskType.SEQ_CLS, r=4, lora_alpha=8, target_modules=["query", "value"])
    model = get_peft_model(BertForSequenceClassification(config), lora)
    model.train()
    optimizer = optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=0.8,
        max_grad_norm=0.5,
    )
    for _ in range(args.epochs):
        for data, target in train_loader:
            optimizer.zero_grad()
            model(input_ids=data, labels=target).loss.backward()
            optimizer.step()
    print(f"ε = {privacy_engine.get_epsilon(args.delta):.2f}")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
