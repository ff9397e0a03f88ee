"""Correct scripts in every mode of Opacus: the scripts of `tests/watch/scripts` with a few lines changed."""

from watched import MADE

MADE_PRIVATE = "        noise_multiplier=args.sigma,\n"
GHOST_LOOP = "    for _ in range(args.epochs):\n"
PER_LAYER = ("max_grad_norm=args.max_per_sample_grad_norm,", "max_grad_norm=[0.5] * 10,\n        clipping='per_layer',")
ADAPTIVE = (
    "max_grad_norm=args.max_per_sample_grad_norm,",
    "max_grad_norm=args.max_per_sample_grad_norm,\n        clipping='adaptive',\n"
    "        target_unclipped_quantile=0.5,\n"
    "        clipbound_learning_rate=0.2,\n        max_clipbound=10.0,\n        min_clipbound=0.05,\n"
    "        unclipped_num_std=3.0,",
)
MEMORY = [
    (
        "    for data, target in train_loader:\n        optimizer.zero_grad()\n        output = model(data)\n"
        "        loss = criterion(output, target)\n        loss.backward()\n        optimizer.step()\n",
        "    from opacus.utils.batch_memory_manager import BatchMemoryManager\n"
        "    with BatchMemoryManager(data_loader=train_loader, max_physical_batch_size=20, "
        "optimizer=optimizer) as loader:\n"
        "        for data, target in loader:\n            optimizer.zero_grad()\n"
        "            criterion(model(data), target).backward()\n            optimizer.step()\n",
    ),
]
# name → script, lines changed, arguments, what else than a seed is found
MODES = {
    "hooks": ("image", [], [], []),
    "functorch": ("image", [], ["--mode", "functorch"], []),
    "expanded weights": (
        "image",
        [
            ("self.norm(self.conv1(x))", "self.conv1(x)"),
            ("        self.norm = nn.GroupNorm(2, 8)\n", ""),
            ("        test(model, test_loader)\n", ""),
        ],
        ["--mode", "ew"],
        [],
    ),
    "per layer": ("image", [PER_LAYER], [], []),
    "adaptive clipping": ("image", [ADAPTIVE], [], []),
    "no wrapper": (
        "image",
        [
            ("    model, optimizer, train_loader = privacy", "    hooks, optimizer, train_loader = privacy"),
            (MADE_PRIVATE, MADE_PRIVATE + "        wrap_model=False,\n"),
        ],
        [],
        [],
    ),
    "memory manager": ("image", MEMORY, [], []),
    "sum of losses": (
        "image",
        [
            ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(reduction='sum')"),
            (MADE_PRIVATE, MADE_PRIVATE + "        loss_reduction='sum',\n"),
            ("default=0.1", "default=0.002"),
        ],
        [],
        [],
    ),
    "noise and clip schedulers": (
        "image",
        [
            (
                MADE,
                "    from opacus.schedulers import ExponentialGradClip, ExponentialNoise\n"
                "    schedulers = [ExponentialNoise(optimizer, gamma=0.9), ExponentialGradClip(optimizer, gamma=0.8),\n"
                "                  optim.lr_scheduler.StepLR(optimizer, 1)]\n" + MADE,
            ),
            (
                "        test(model, test_loader)\n",
                "        test(model, test_loader)\n        [s.step() for s in schedulers]\n",
            ),
        ],
        [],
        [("note", "schedule")],
    ),
    "training accuracy on the same data with each step": (
        "image",
        [
            (
                "    for data, target in train_loader:\n",
                "    for data, target in train_loader:\n        if len(data) % 9 == 0:\n"
                "            test(model, args.whole)\n"
                "            model.train()\n",
            ),
            (
                "    model = SampleConvNet()\n",
                "    model, args.whole = SampleConvNet(), DataLoader(train_set, batch_size=64)\n",
            ),
        ],
        [],
        [],
    ),
    "workers, momentum, weight decay": (
        "image",
        [("shuffle=True)", "shuffle=True, num_workers=1)"), ("momentum=0)", "momentum=0.9, weight_decay=0.01)")],
        [],
        [],
    ),
    "make_private again in each epoch": (
        "image",
        [
            (
                "    model, optimizer, train_loader = privacy_engine.make_private(\n        module=model,",
                "    raw = model, train_loader\n    model, optimizer, train_loader = privacy_engine.make_private(\n"
                "        module=model,",
            ),
            (
                MADE,
                MADE + "        if epoch == 2:\n            model.train()\n"
                "            _, optimizer, train_loader = privacy_engine.make_private(\n"
                "                module=model, optimizer=optimizer, data_loader=raw[1], noise_multiplier=1.0,\n"
                "                max_grad_norm=1.0)\n",
            ),
        ],
        [],
        [],
    ),
    "pretrained on other data": (
        "image",
        [
            (
                "    privacy_engine = PrivacyEngine",
                "    for data, target in test_loader:\n        F.cross_entropy(model(data), target).backward()\n"
                "        optimizer.step()\n        optimizer.zero_grad()\n    privacy_engine = PrivacyEngine",
            )
        ],
        [],
        [("note", "pretrained")],
    ),
    "frozen batch norm, not in training mode": (
        "image",
        [
            (
                "        self.conv2 =",
                "        self.batch = nn.BatchNorm2d(8).requires_grad_(False)\n        self.conv2 =",
            ),
            ("self.norm(self.conv1(x))", "self.batch(self.norm(self.conv1(x)))"),
            ("    criterion =", "    model._module.batch.eval()\n    criterion ="),
        ],
        [],
        [],
    ),
    "dropout": (
        "image",
        [("        return self.fc2(x)", "        return self.fc2(F.dropout(x, 0.3, self.training))")],
        [],
        [],
    ),
    "checkpoint resumed": (
        "image",
        [
            (
                "        test(model, test_loader)\n",
                "        test(model, test_loader)\n"
                "        privacy_engine.save_checkpoint(path=args.save + '.all', module=model, optimizer=optimizer)\n"
                "        privacy_engine.load_checkpoint(path=args.save + '.all', module=model, optimizer=optimizer)\n",
            )
        ],
        [],
        [],
    ),
    "ghost": ("ghost", [], [], []),
    "ghost, memory manager": (
        "ghost",
        [
            (
                "        for data, target in train_loader:\n            optimizer.zero_grad()\n"
                "            loss = criterion(model(data), target)\n            loss.backward()\n"
                "            optimizer.step()\n",
                "        from opacus.utils.batch_memory_manager import BatchMemoryManager\n"
                "        with BatchMemoryManager(\n"
                "            data_loader=train_loader, max_physical_batch_size=20, optimizer=optimizer\n"
                "        ) as loader:\n            for data, target in loader:\n                optimizer.zero_grad()\n"
                "                criterion(model(data), target).backward()\n                optimizer.step()\n",
            )
        ],
        [],
        [],
    ),
    "text, target of ε": ("text", [], [], [("note", "divisor")]),
    "adapters, memory manager": ("lora", [], [], [("note", "divisor")]),
}
