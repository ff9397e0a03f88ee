"""Correct scripts in every mode of Opacus hold, and a watched run's weights equal an unwatched run's in every byte."""

import opacus
import pytest
import torch
from modes import MODES
from opacus.optimizers.adaclipoptimizer import AdaClipDPOptimizer
from watched import MADE, codes, edited, same_bytes, unwatched, watched

TWO_EPOCHS = ("noise and clip schedulers", "make_private again in each epoch", "checkpoint resumed")


@pytest.mark.parametrize("name", MODES)
def test_a_correct_script_holds_and_its_weights_are_the_same(name, tmp_path):
    if name == "adaptive clipping" and opacus.__version__ < "1.6":
        pytest.skip("Opacus 1.5 does not count all that it publishes")
    script, edits, arguments, found = MODES[name]
    if script == "image" and name not in TWO_EPOCHS:
        arguments = [*arguments, "--epochs", 1]
    path = edited(tmp_path, script, edits)
    plain, other = str(tmp_path / "plain.pt"), str(tmp_path / "watched.pt")
    unwatched(path, [*arguments, "--save", plain])
    seen, status = watched(tmp_path, script, edits, [*arguments, "--save", other])
    assert status == 0
    assert codes(seen) == found, [finding.sentence for finding in seen.findings]
    assert seen.verdict == "holds"
    assert same_bytes(plain, other)
    assert torch.load(plain).keys()
    training = seen.trainings[0]
    assert training.counted == training.steps
    assert training.noise.interval[0] < 1.02
    (budget,) = seen.budgets
    assert budget.epsilon["zero_out"] <= budget.accounted * 1.01 + 0.02
    assert budget.proven.advantage < 0.6


def test_two_engines_on_one_data_set_are_composed(tmp_path):
    edits = [
        (
            "    if args.save:\n",
            "    other = SampleConvNet()\n    second = PrivacyEngine(accountant='rdp')\n"
            "    other, optimizer, loader = second.make_private(module=other, "
            "optimizer=optim.SGD(other.parameters(), lr=0.1),\n"
            "        data_loader=DataLoader(train_set, batch_size=64), noise_multiplier=1.5, max_grad_norm=1.0)\n"
            "    train(args, other, loader, optimizer, second, 1)\n    if args.save:\n",
        ),
    ]
    seen, status = watched(tmp_path, "image", edits)
    assert (status, seen.verdict, codes(seen)) == (0, "holds", [("note", "composed")])
    first, second = seen.budgets
    together = seen.judgement.together.epsilon["zero_out"]
    assert max(first.epsilon["zero_out"], second.epsilon["zero_out"]) < together
    assert together < first.epsilon["zero_out"] + second.epsilon["zero_out"]


def test_steps_before_a_checkpoint_are_counted_and_said(tmp_path):
    """In another process, so to speak: the watch sees only the second half."""
    edits = [
        (
            "        test(model, test_loader)\n",
            "        test(model, test_loader)\n        if epoch == 1:\n"
            "            privacy_engine.save_checkpoint(path=args.save, module=model, optimizer=optimizer)\n"
            "            return\n",
        ),
    ]
    path, kept = edited(tmp_path, "image", edits), str(tmp_path / "kept.pt")
    unwatched(path, ["--save", kept])
    edits = [(MADE, f"    privacy_engine.load_checkpoint(path={kept!r}, module=model, optimizer=optimizer)\n" + MADE)]
    seen, _ = watched(tmp_path, "image", edits, ["--epochs", 1])
    whole, _ = watched(tmp_path, "image", (), ["--epochs", 2])
    assert codes(seen) == [("note", "earlier")]
    assert seen.epsilon["zero_out"] == pytest.approx(whole.epsilon["zero_out"], rel=1e-6)


def test_adaptive_clipping_that_counts_the_larger_noise_is_refuted(tmp_path, monkeypatch):
    """Opacus 1.5: the noise of the sum alone, 1.014, is counted, and the noisy count beside it is not."""
    made = AdaClipDPOptimizer.__init__

    def as_before(self, *args, **kwargs):
        made(self, *args, **kwargs)
        self.noise_multiplier = (self.noise_multiplier**-2 - (2 * self.unclipped_num_std) ** -2) ** -0.5

    if opacus.__version__ >= "1.6":
        monkeypatch.setattr(AdaClipDPOptimizer, "__init__", as_before)
    script, edits, arguments, _ = MODES["adaptive clipping"]
    seen, status = watched(tmp_path, script, edits, [*arguments, "--epochs", 1])
    assert (status, seen.verdict) == (0, "refuted")
    assert [code for level, code in codes(seen) if level == "refuted"] == ["count"]
    assert "it counts a noise multiplier of 1.014, where both together are 1." in seen.findings[0].sentence
    assert set(seen.epsilon.values()) == {None}


def test_adaptive_ghost_clipping_cannot_be_told(tmp_path):
    """Opacus says itself that the noise of its count depends on the size of the batch."""
    edits = [
        (
            "from opacus import PrivacyEngine\n",
            "from opacus.utils.adaptive_clipping import PrivacyEngineAdaptiveClipping as PrivacyEngine\n",
        ),
        (
            '        grad_sample_mode="ghost",\n',
            '        grad_sample_mode="ghost",\n        target_unclipped_quantile=0.5,\n        min_clipbound=0.1,\n'
            "        max_clipbound=10.0,\n        clipbound_learning_rate=0.1,\n",
        ),
        ('reduction="mean"', 'reduction="none"'),
        ("nn.CrossEntropyLoss", "PerRecord"),
        (
            "def main():\n    parser",
            "class PerRecord(nn.CrossEntropyLoss):\n    def __init__(self, reduction):\n"
            "        super().__init__(reduction='none')\n        self.reduction = 'mean'\n\n"
            "    def forward(self, x, y):\n"
            "        return nn.functional.cross_entropy(x, y, reduction='none')\n\n\ndef main():\n    parser",
        ),
    ]
    path = edited(tmp_path, "ghost", edits)
    unwatched(path, ["--save", str(tmp_path / "plain.pt")])
    seen, status = watched(tmp_path, "ghost", edits, ["--save", str(tmp_path / "watched.pt")])
    assert status == 0
    assert seen.verdict == "cannot tell", seen.findings
    assert [code for level, code in codes(seen) if level == "cannot tell"] == ["adaptive"]
    assert same_bytes(tmp_path / "plain.pt", tmp_path / "watched.pt")


def test_adapters_by_peft_hold_and_their_weights_are_the_same(tmp_path):
    for package in ("peft", "transformers"):
        pytest.importorskip(package)
    path = edited(tmp_path, "peft_lora")
    unwatched(path, ["--save", tmp_path / "plain.pt"])
    seen, status = watched(tmp_path, "peft_lora", (), ["--save", tmp_path / "watched.pt"])
    assert (status, seen.verdict, codes(seen)) == (0, "holds", [])
    (training,) = seen.trainings
    assert sum("lora_" in name for name in training.names) == 8
    assert same_bytes(tmp_path / "plain.pt", tmp_path / "watched.pt")
