"""Record of one private optimizer: claims about it, and its steps."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dp_leakage.opacus.noise import NoiseSums

UNMATCHED = "unknown"
MOST_BATCHES = 4096  # that were delivered and not trained on yet


@dataclass(frozen=True)
class Batch:
    """A batch delivered by a loader.

    Attributes:
        source: ``Poisson``, or the name of another sampler's class, or ``UNMATCHED``.
        rate: probability of Poisson sampling; None for other samplers.
        rows: indices of its records in the data set.
        dataset: the data set.
    """

    source: str
    rate: float | None
    rows: Sequence[int]
    dataset: Any


@dataclass(frozen=True)
class Claim:
    """Statements of a script about a training. None: not stated.

    Attributes:
        noise_multiplier: passed to ``make_private``.
        rate: sampling probability in the accounting.
        records: n.
        epsilon, delta, epochs: the target of ``make_private_with_epsilon``.
        batch_dim: the dimension of records in the model's inputs.
    """

    noise_multiplier: float | None = None
    rate: float | None = None
    records: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    epochs: int | None = None
    batch_dim: int = 0


class Step(NamedTuple):
    """A step that changed the parameters.

    Attributes:
        order: rank among the steps of all trainings.
        noise_multiplier: of the optimizer.
        bound: C.
        size: records in the batch.
        source, rate: of its batches; see ``Batch``.
    """

    order: int
    noise_multiplier: float
    bound: float
    size: int
    source: str
    rate: float | None


@dataclass(eq=False)
class Training:
    """A private optimizer, from its creation on, with all observations.

    Attributes:
        optimizer: Opacus' optimizer, kept so that its id is not reused.
        number: from 1 on, in order of creation.
        engine, accountant: engine and accountant that count its steps; None: unknown.
        module, wrapped: the model, before and after ``make_private``.
        loader: the loader returned by ``make_private``.
        hook: the optimizer's step hook after ``make_private``.
        names, initial: names and initial values of the optimizer's parameters.
        prior: the accountant's history before the first step, e.g. from an earlier run.
        steps: all steps taken.
        uses: record → number of its batches.
        batches: set of records → number of batches with exactly these.
        norm_error: the largest relative error of a record's norm, under ghost clipping.
    """

    optimizer: Any
    number: int
    claim: Claim = Claim()
    engine: Any = None
    accountant: Any = None
    module: nn.Module | None = None
    wrapped: Any = None
    loader: Any = None
    hook: Any = None
    names: list[str] = field(default_factory=list)
    initial: list[Tensor] = field(default_factory=list)
    prior: list[tuple[float, float, int]] = field(default_factory=list)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    uses: Counter[int] = field(default_factory=Counter)
    batches: Counter[int] = field(default_factory=Counter)
    noise: NoiseSums = field(default_factory=lambda: NoiseSums([]))
    norm_error: float = 0.0
    norms_seen: int = 0
    sums_seen: int = 0
    mixing: float | None = None
    canaries: Any = None
    # State of the current step.
    is_checked: bool = True
    entries: int = 0  # parts of its batch that were clipped
    is_reduced: bool = False
    is_met: bool = False
    bound: float = 0.0
    counted: int = 0
    reference: list[Tensor] | None = None
    samples: list[Tensor] = field(default_factory=list)
    drawn: list[Batch] = field(default_factory=list)
    norm: tuple[int, float] | None = None
    forwarded: deque[Batch] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    snapshot: list[Tensor] | None = None

    @property
    def about(self) -> str:
        """Name of the training in a finding's key."""
        return str(self.number)

    @property
    def dataset(self) -> Any:
        """Data set of the training; None: unknown."""
        return None if self.loader is None else self.loader.dataset

    @property
    def inner(self) -> nn.Module | None:
        """Model without the wrapper of distributed training."""
        if isinstance(self.module, DistributedDataParallel | DifferentiallyPrivateDistributedDataParallel):
            inner: nn.Module = self.module.module
            return inner
        return self.module

    @property
    def is_ghost(self) -> bool:
        """Return whether records are clipped within the backward pass, so that per-record gradients never exist."""
        return any("FastGradient" in base.__name__ for base in type(self.optimizer).__mro__)

    @cached_property
    def is_sharded(self) -> bool:
        """Return whether each process holds a part of each tensor, so that most operations wait for all processes."""
        return any(hasattr(p, "to_local") for p in self.optimizer.params)

    @property
    def is_first_rank(self) -> bool:
        """Return whether this process adds the noise."""
        return not getattr(self.optimizer, "rank", 0)

    @property
    def world(self) -> int:
        """Number of processes that share the batches."""
        return int(getattr(self.optimizer, "world_size", 1))


def steps_counted(accountant: Any) -> int:
    """Return the number of steps that an accountant has counted."""
    return 0 if accountant is None else sum(int(entry[2]) for entry in accountant.history)
