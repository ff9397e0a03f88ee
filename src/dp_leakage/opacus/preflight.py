"""Checks before the first step, from loader, model and settings alone."""

from typing import Any

from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler, UniformWithReplacementSampler
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from dp_leakage.opacus.findings import Findings, Level
from dp_leakage.opacus.record import Training

POISSON = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)
UNWEIGHTED = ("RandomSampler", "SequentialSampler", "DistributedSampler")
KNOWN_BATCHES = ("BatchSampler",)  # torch's own: batches of a fixed size
ROUNDING = 1 + 1e-9
SIMILAR = 2.0  # ratio of a batch's expected size to the size that the loader names, up to which nothing is said


def sampling_of(loader: Any) -> tuple[str, float | None]:
    """Return a loader's sampling: ``Poisson`` and its probability, or the class of another sampler."""
    sampler = loader.batch_sampler
    while isinstance(sampler, BatchSplittingSampler):
        sampler = sampler.sampler
    if isinstance(sampler, POISSON):
        return "Poisson", float(sampler.sample_rate)
    if type(sampler).__name__ in KNOWN_BATCHES:
        return type(sampler.sampler).__name__, None
    return type(sampler or loader.sampler).__name__, None


def is_known(source: str) -> bool:
    """Return whether a sampler is one of PyTorch's, none of which draws Poisson batches."""
    return source in (*UNWEIGHTED, "WeightedRandomSampler", "SubsetRandomSampler", "_InfiniteConstantSampler")


def check_loader(findings: Findings, training: Training, asked_loader: Any) -> None:
    """Compare the sampling of batches with the accountant's assumption.

    Args:
        findings: receive a finding for each difference.
        training: training after ``make_private``.
        asked_loader: the loader passed to ``make_private``.
    """
    claim, about = training.claim, training.about
    records, counted = claim.records or 0, claim.rate or 1.0
    source, rate = sampling_of(training.loader)
    if rate is None:
        known = is_known(source)
        sentence = (
            f"Batches come from {source}, but the accountant assumes Poisson sampling. "
            "make_private(poisson_sampling=True) draws Poisson batches."
            if known
            else f"Batches come from {source}, which is not one of Opacus' samplers: whether it is Poisson is unknown."
        )
        findings.add(Level.REFUTED if known else Level.UNKNOWN, "sampler", sentence, about)
    elif rate > counted * ROUNDING:
        sentence = (
            f"The sampler draws each record with probability {rate:.4g}, but the accountant counts {counted:.4g}."
        )
        findings.add(Level.REFUTED, "rate", sentence, about)
    given = type(asked_loader.sampler).__name__
    if rate is not None and given not in UNWEIGHTED and not isinstance(asked_loader.batch_sampler, POISSON):
        sentence = f"Opacus replaces {given} with uniform sampling: its weights or its order have no effect."
        findings.add(Level.NOTE, "weights", sentence, about)
    batch = asked_loader.batch_size or getattr(asked_loader.batch_sampler, "batch_size", None)
    if rate is not None and batch and records > batch and not 1 / SIMILAR < rate * records / batch < SIMILAR:
        sentence = (
            f"Batches hold {rate * records:.0f} records on average, not {batch}: the rate is 1/len(data_loader) = "
            f"1/{len(asked_loader)}, and its sampler has another length than the data. ε is for these batches."
        )
        findings.add(Level.UNKNOWN, "length", sentence, about)
    if (change := divisor_change(training, asked_loader, batch)) is not None:
        findings.add(Level.NOTE, "divisor", change, about)
    check_delta(findings, claim.delta, records, about)


def check_count(findings: Findings, training: Training) -> None:
    """Check that the noisy count of adaptive clipping is paid for, by more noise on the sum than is counted.

    Opacus 1.5 counts the larger noise instead, as if the count were not published (Theorem 1 of arXiv:1905.03871).
    """
    optimizer, stated = training.optimizer, training.claim.noise_multiplier
    if hasattr(optimizer, "unclipped_num_std") and stated and optimizer.noise_multiplier > stated * ROUNDING:
        sentence = (
            f"Adaptive clipping publishes a noisy count of records too, which the accountant leaves out: it counts a "
            f"noise multiplier of {optimizer.noise_multiplier:.4g}, where both together are {stated:.4g}. Opacus 1.6 "
            "mended this."
        )
        findings.add(Level.REFUTED, "count", sentence, training.about)


def divisor_change(training: Training, loader: Any, batch: int | None) -> str | None:
    """Describe a sampling probability or divisor that depends on n, so that ε needs a public n; otherwise None."""
    records = training.claim.records or 0
    if not batch or training.optimizer.loss_reduction != "mean":
        return None

    def settings(count: int) -> tuple[int, int]:
        length = count // batch if loader.drop_last else -(-count // batch)
        return length, int(count / length) if length else 0

    for change in (-1, 1):
        if settings(records + change) != settings(records):
            (batches, divisor), (other_batches, other) = settings(records), settings(records + change)
            what = (
                f"the divisor from {divisor} to {other}"
                if batches == other_batches
                else f"the batches of an epoch from {batches} to {other_batches}"
            )
            return (
                f"One record {'less' if change < 0 else 'more'} than {records} changes {what}. So ε holds where the "
                "number of records is public, not if a record is added or removed; set "
                "optimizer.expected_batch_size to a constant."
            )
    return None


def check_delta(findings: Findings, delta: float | None, records: int | None, about: str) -> None:
    """Report a δ so large that publishing a record would be allowed."""
    if delta and records and delta > 1 / records:
        sentence = f"δ = {delta:g} exceeds 1/n = {1 / records:.2g}: such a δ allows to publish a record."
        findings.add(Level.UNKNOWN, "delta", sentence, about)


def check_model(findings: Findings, training: Training, module: nn.Module) -> None:
    """Check for layers that mix the records of a batch, before the first forward pass in training mode."""
    layers = [
        (name, type(layer).__name__)
        for name, layer in module.named_modules()
        if isinstance(layer, _BatchNorm) and layer.training
    ]
    if layers:
        name, kind = layers[0]
        more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
        sentence = (
            f"{name or 'The model'} ({kind}){more} mixes the records of a batch, so clipping does not bound the effect "
            "of a record."
        )
        findings.add(Level.REFUTED, "batch_norm", sentence, training.about)


def check_optimizer(findings: Findings, training: Training) -> None:
    """Check for tensors that only the model or only the optimizer has, before the first step."""
    if training.module is None:
        return
    own = {id(p) for p in training.optimizer.params}
    named = dict(training.module.named_parameters())
    held = {id(p) for p in named.values()}
    lost = [p for p in training.optimizer.params if id(p) not in held]
    if lost:
        sentence = (
            f"{len(lost)} of {len(own)} tensors of the private optimizer are not in the model (any more): the model's "
            "own tensors are not trained by it. Make the optimizer after the model has its final parameters."
        )
        findings.add(Level.UNKNOWN, "stale", sentence, training.about)
    outside = [name for name, p in named.items() if p.requires_grad and id(p) not in own]
    if outside and not lost:
        sentence = f"{len(outside)} trainable tensors are not in the private optimizer ({', '.join(outside[:3])})."
        findings.add(Level.NOTE, "outside", sentence, training.about)


def check_resumed(findings: Findings, training: Training) -> None:
    """Compare the steps in the optimizer's state with the accountant's, before the first step."""
    taken = [int(state["step"]) for state in training.optimizer.state.values() if "step" in state]
    counted = sum(entry[2] for entry in training.prior)
    if taken and max(taken) > counted:
        sentence = (
            f"The optimizer took {max(taken)} steps before, but the accountant has counted {counted}: a checkpoint was "
            "loaded without its accountant (PrivacyEngine.load_checkpoint loads both)."
        )
        findings.add(Level.UNKNOWN, "resumed", sentence, training.about)
    elif counted:
        sentence = f"{counted} earlier steps are taken from the accountant's history; they were not watched."
        findings.add(Level.NOTE, "earlier", sentence, training.about)
