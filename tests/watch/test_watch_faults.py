"""Published mistakes and planted ones, each named in one sentence on a script that is otherwise untouched."""

import pytest
from watched import MADE, codes, watched

# name → script, lines changed, level, code, words of the sentence, arguments
MADE_PRIVATE = "        noise_multiplier=args.sigma,\n"
STEP = "        optimizer.step()\n"


def before_training(lines):
    return (MADE, "".join(f"    {line}\n" for line in lines.strip("\n").split("\n")) + MADE)


PUBLISHED = {
    "813, weighted sampler without Poisson": (
        "image",
        [
            (
                "batch_size=args.batch_size, shuffle=True",
                "batch_size=args.batch_size, sampler=torch.utils.data.WeightedRandomSampler(1.0 + y[:1437], 1437)",
            ),
            (MADE_PRIVATE, MADE_PRIVATE + "        poisson_sampling=False,\n"),
        ],
        "refuted",
        "sampler",
        "Batches come from WeightedRandomSampler",
    ),
    "813, weighted sampler of another length": (
        "image",
        [
            (
                "batch_size=args.batch_size, shuffle=True",
                "batch_size=args.batch_size, sampler=torch.utils.data.WeightedRandomSampler(1.0 + y[:1437], 300)",
            )
        ],
        "cannot tell",
        "length",
        "Batches hold 287 records on average, not 64",
    ),
    "819, the divisor depends on n": (
        "image",
        [("x[:1437], y[:1437]", "x[:1280], y[:1280]")],
        "note",
        "divisor",
        "ε holds where the number of records",
    ),
    "820, the optimizer holds old parameters": (
        "image",
        [before_training("model._module.fc2 = nn.Linear(32, 10)")],
        "cannot tell",
        "stale",
        "2 of 10 tensors of the private optimizer are not in the model",
    ),
    "830, batches that are not Poisson": (
        "image",
        [(MADE_PRIVATE, MADE_PRIVATE + "        poisson_sampling=False,\n")],
        "refuted",
        "sampler",
        "Batches come from RandomSampler, but the accountant assumes Poisson sampling",
    ),
    "ghost clipping under a clip scheduler": (
        "ghost",
        [
            (
                "    for _ in range(args.epochs):\n",
                "    from opacus.schedulers import ExponentialGradClip\n"
                "    scheduler = ExponentialGradClip(optimizer, gamma=0.5)\n    for _ in range(args.epochs):\n",
            ),
            ("        print(f", "        scheduler.step()\n        print(f"),
        ],
        "refuted",
        "clip_bound",
        "clips records to 1, but the noise is made for 0.5",
    ),
}
NOISE = """
add_noise = optimizer.add_noise
def changed():
    {}
optimizer.add_noise = changed
"""


def noise(*lines):
    return before_training(NOISE.format("\n    ".join(lines)))


PLANTED = {
    "half of the noise": (
        "image",
        [noise("optimizer.noise_multiplier /= 2", "add_noise()", "optimizer.noise_multiplier *= 2")],
        "refuted",
        "noise",
        "All tensors got 0.50",
    ),
    "five percent less noise": (
        "image",
        [noise("optimizer.noise_multiplier *= 0.95", "add_noise()", "optimizer.noise_multiplier /= 0.95")],
        "refuted",
        "noise",
        "times the noise that the accountant counts",
    ),
    "a layer without noise": (
        "image",
        [noise("add_noise()", "p = optimizer.params[2]", "p.grad = p.summed_grad.clone()")],
        "refuted",
        "noise",
        "norm.weight got no noise in 23 of 23 steps",
    ),
    "one coordinate without noise": (
        "image",
        [noise("add_noise()", "p = optimizer.params[-1]", "p.grad[3] = p.summed_grad[3]")],
        "refuted",
        "coordinates",
        "1 of 10 coordinates of fc2.bias have no noise in any step",
    ),
    "a third of the coordinates without noise, others each time": (
        "image",
        [
            noise(
                "add_noise()",
                "for p in optimizer.params:",
                "    p.grad = torch.where(torch.rand_like(p) < 1 / 3, p.summed_grad, p.grad)",
            )
        ],
        "refuted",
        "noise",
        "times the noise that the accountant counts",
    ),
    "each batch clipped instead of each record": (
        "image",
        [
            before_training("""
def changed():
    sums = [g.sum(0) for g in optimizer.grad_samples]
    size = torch.stack([g.norm() for g in sums]).norm()
    for p, g in zip(optimizer.params, sums):
        p.summed_grad = g * (1 / size).clamp(max=1)
optimizer.clip_and_accumulate = changed
""")
        ],
        "refuted",
        "clipping",
        "The sum of the batch is clipped to 1, not the gradient of each record",
    ),
    "records clipped to twice the bound": (
        "image",
        [
            before_training("""
clip = optimizer.clip_and_accumulate
def changed():
    optimizer.max_grad_norm *= 2
    clip()
    optimizer.max_grad_norm /= 2
optimizer.clip_and_accumulate = changed
""")
        ],
        "refuted",
        "clipping",
        "Records are not clipped: one adds 2 times the bound",
    ),
    "the same draw in each step": (
        "image",
        [
            (MADE_PRIVATE, MADE_PRIVATE + "        noise_generator=(generator := torch.Generator()),\n"),
            noise("generator.manual_seed(7)", "add_noise()"),
        ],
        "refuted",
        "repeat",
        "The same noise was used",
    ),
    "each draw used twice, with the other sign": (
        "image",
        [
            noise(
                "optimizer.kept = None if getattr(optimizer, 'kept', None) else [torch.randn_like(p) for p in "
                "optimizer.params]",
                "sign = 1 if optimizer.kept else -1",
                "draws = optimizer.kept or optimizer.last",
                "optimizer.last = draws",
                "for p, z in zip(optimizer.params, draws):",
                "    p.grad = p.summed_grad + sign * z",
            )
        ],
        "refuted",
        "repeat",
        "The same noise was used",
    ),
    "noise that the next step takes back in part": (
        "image",
        [
            noise(
                "add_noise()",
                "before = getattr(optimizer, 'before', [0] * len(optimizer.params))",
                "optimizer.before = [p.grad - p.summed_grad for p in optimizer.params]",
                "for p, z in zip(optimizer.params, before):",
                "    p.grad = p.grad - 0.5 * z",
            )
        ],
        "refuted",
        "correlation",
        "correlated with the noise of the step before",
    ),
    "uniform noise": (
        "image",
        [noise("for p in optimizer.params:", "    p.grad = p.summed_grad + (torch.rand_like(p) - 0.5) * 12**0.5")],
        "refuted",
        "law",
        "is not Gaussian",
    ),
    "a part of the raw gradient added after the noise": (
        "image",
        [noise("add_noise()", "for p in optimizer.params:", "    p.grad = p.grad + 0.3 * p.summed_grad")],
        "refuted",
        "update",
        "The update holds 1.3",
    ),
    "steps that are not counted": (
        "image",
        [before_training("optimizer.attach_step_hook(lambda optimizer: None)")],
        "refuted",
        "uncounted",
        "attach_step_hook replaced the hook",
    ),
    "an accountant that begins anew in each epoch": (
        "image",
        [(MADE, MADE + "        privacy_engine.accountant.history = []\n")],
        "refuted",
        "uncounted",
        "23 of 46 steps were not counted",
    ),
    "a larger noise counted than added": (
        "image",
        [
            before_training("""
count = privacy_engine.accountant.step
privacy_engine.accountant.step = lambda noise_multiplier, sample_rate: count(
    noise_multiplier=2 * noise_multiplier, sample_rate=sample_rate)
""")
        ],
        "refuted",
        "multiplier",
        "The accountant counts a noise multiplier of 2, but the optimizer uses 1",
    ),
    "a lower rate counted than drawn": (
        "image",
        [
            before_training(
                "optimizer.attach_step_hook(privacy_engine.accountant.get_optimizer_hook_fn(sample_rate=0.01))"
            )
        ],
        "refuted",
        "rate",
        "Records were drawn with probability 0.04348, but the accountant counted 0.01",
    ),
    "a sampler that draws more": (
        "image",
        [before_training("train_loader.batch_sampler.sample_rate *= 2")],
        "refuted",
        "rate",
        "Records were drawn with probability 0.08696",
    ),
    "the old loader": (
        "image",
        [
            ("    model = SampleConvNet()\n", "    model, old_loader = SampleConvNet(), train_loader\n"),
            before_training("train_loader = old_loader"),
        ],
        "refuted",
        "sampler",
        "23 of 23 steps used batches of RandomSampler",
    ),
    "the same batches in each epoch": (
        "image",
        [
            before_training("train_loader.batch_sampler.generator = torch.Generator()"),
            (MADE, MADE + "        train_loader.batch_sampler.generator.manual_seed(1)\n"),
        ],
        "refuted",
        "same_batches",
        "The same batch was drawn",
    ),
    "a second optimizer": (
        "image",
        [
            before_training("args.other = optim.Adam(model._module.fc2.parameters())"),
            (STEP, "        args.other.step()\n" + STEP),
        ],
        "refuted",
        "optimizer",
        "Adam trains 2 tensors of the private model without noise",
    ),
    "the wrapped optimizer called directly": (
        "image",
        [(STEP, "        optimizer.original_optimizer.step()\n")],
        "refuted",
        "bypass",
        "A step was taken without clipping and noise",
    ),
    "parameters written by hand": (
        "image",
        [(STEP, STEP + "        model._module.fc2.bias.data -= 0.01 * output.detach().mean(0)\n")],
        "cannot tell",
        "written",
        "1 of 10 tensors were changed between two steps",
    ),
    "trained without noise on the same data before": (
        "image",
        [
            (
                "    privacy_engine = PrivacyEngine",
                "    for data, target in train_loader:\n        optimizer.zero_grad()\n"
                "        F.cross_entropy(model(data), target).backward()\n        optimizer.step()\n"
                "    privacy_engine = PrivacyEngine",
            )
        ],
        "refuted",
        "optimizer",
        "SGD trained 10 tensors of this model without noise before make_private, on the same data",
    ),
    "a buffer that follows the data": (
        "image",
        [
            (
                "class SampleConvNet",
                "class Center(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.register_buffer('mean', torch.zeros(1))\n\n    def forward(self, x):\n"
                "        if self.training:\n            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean()\n"
                "        return x - 0.1\n\n\nclass SampleConvNet",
            ),
            ("        self.conv1 =", "        self.center = Center()\n        self.conv1 ="),
            ("        x = F.max_pool2d(F.relu(self.norm(", "        x = F.max_pool2d(F.relu(self.norm("),
            (
                "    def forward(self, x):\n        x = F.max",
                "    def forward(self, x):\n        x = self.center(x)\n        x = F.max",
            ),
        ],
        "refuted",
        "buffer",
        "Buffers change with the data and are saved with the model without noise: center.mean",
    ),
    "frozen batch norm in training mode": (
        "image",
        [
            (
                "        self.conv2 =",
                "        self.batch = nn.BatchNorm2d(8).requires_grad_(False)\n        self.conv2 =",
            ),
            ("self.norm(self.conv1(x))", "self.batch(self.norm(self.conv1(x)))"),
        ],
        "refuted",
        "batch_norm",
        "batch (BatchNorm2d) mixes the records of a batch",
    ),
    "a model that centers its batch": (
        "image",
        [("    def forward(self, x):\n", "    def forward(self, x):\n        x = x - x.mean(0, keepdim=True)\n")],
        "refuted",
        "mixing",
        "when another record of its batch changes",
    ),
    "a δ that allows to publish a record": (
        "image",
        [("default=1e-5", "default=0.01")],
        "cannot tell",
        "delta",
        "δ = 0.01 exceeds 1/n",
    ),
    "a learning rate of zero": (
        "image",
        [("type=float, default=0.1", "type=float, default=0.0")],
        "cannot tell",
        "still",
        "have not moved",
    ),
    "an accountant that approximates from below": (
        "image",
        [('accountant="rdp"', 'accountant="gdp"')],
        "refuted",
        "epsilon",
        "is an approximation from below",
    ),
    "more epochs than the target was made for": (
        "text",
        [("        epochs=args.epochs,\n", "        epochs=1,\n")],
        "refuted",
        "target",
        "the target was 5",
    ),
    "a checkpoint without its accountant": (
        "text",
        [
            (
                "    for _ in range(args.epochs):\n",
                "    state = {i: {'step': torch.tensor(40.0), 'exp_avg': torch.zeros_like(p), 'exp_avg_sq': "
                "torch.zeros_like(p)} for i, p in enumerate(optimizer.params)}\n"
                "    optimizer.load_state_dict({**optimizer.state_dict(), 'state': state})\n"
                "    for _ in range(args.epochs):\n",
            )
        ],
        "cannot tell",
        "resumed",
        "The optimizer took 40 steps before, but the accountant has counted 0",
    ),
}


TWO_EPOCHS = ("an accountant that begins anew in each epoch", "the same batches in each epoch")


@pytest.mark.parametrize("name", PUBLISHED | PLANTED)
def test_a_fault_is_named_in_one_sentence(name, tmp_path):
    script, edits, level, code, words = (PUBLISHED | PLANTED)[name]
    one_epoch = script == "image" and name not in TWO_EPOCHS
    seen, status = watched(tmp_path, script, edits, ["--epochs", 1] if one_epoch else [])
    sentences = [finding.sentence for finding in seen.findings if (finding.level, finding.code) == (level, code)]
    assert len(sentences) == 1, (codes(seen), [finding.sentence for finding in seen.findings])
    assert words in sentences[0]
    assert "watch" not in [code for _, code in codes(seen)]
    assert seen.verdict == ("holds" if level == "note" else level)
    assert status == (1 if name.startswith("820") else 0)  # Opacus finds no gradient there
