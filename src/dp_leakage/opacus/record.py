"""One private optimizer: what is claimed of it, and what it did."""

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
    """What a loader delivered.

    Attributes:
        source: ``Poisson``, or the name of another sampler's class, or ``UNMATCHED``.
        rate: of Poisson sampling; None otherwise.
        rows: places of its records in the data set.
        dataset: where they come from.
    """

    source: str
    rate: float | None
    rows: Sequence[int]
    dataset: Any


@dataclass(frozen=True)
class Claim:
    """What a script states of a training. None: it does not say.

    Attributes:
        noise_multiplier: as given to ``make_private``.
        rate: of sampling that the accountant is told.
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
    """One step that changed the parameters.

    Attributes:
        order: among the steps of all trainings.
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
    """One private optimizer from when it was made, with everything that was seen of it.

    Attributes:
        optimizer: Opacus' optimizer, which is kept so that its id stays its own.
        number: from 1 on, in the order in which they were made.
        engine, accountant: what counts its steps; None if unknown.
        module, wrapped: the model, and what ``make_private`` returned for it.
        loader: that ``make_private`` returned.
        hook: the optimizer's step hook as ``make_private`` left it.
        names, initial: of the optimizer's parameters.
        prior: the accountant's history before the first step: of an earlier run, for instance.
        steps: all that were taken.
        uses: how often each record was in a batch.
        batches: how often each set of records was a batch.
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
    # Of the step that is being made.
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
        """Its name in a sentence's key."""
        return str(self.number)

    @property
    def dataset(self) -> Any:
        """The data set that it trains on; None if unknown."""
        return None if self.loader is None else self.loader.dataset

    @property
    def inner(self) -> nn.Module | None:
        """The model without the wrapper of several processes."""
        if isinstance(self.module, DistributedDataParallel | DifferentiallyPrivateDistributedDataParallel):
            inner: nn.Module = self.module.module
            return inner
        return self.module

    @property
    def is_ghost(self) -> bool:
        """Whether records are clipped within the backward pass, so that their gradients are never there."""
        return any("FastGradient" in base.__name__ for base in type(self.optimizer).__mro__)

    @cached_property
    def is_sharded(self) -> bool:
        """Tell whether each process holds a part of each tensor: most operations then wait for all processes."""
        return any(hasattr(p, "to_local") for p in self.optimizer.params)

    @property
    def is_first_rank(self) -> bool:
        """Whether this process adds the noise."""
        return not getattr(self.optimizer, "rank", 0)

    @property
    def world(self) -> int:
        """How many processes share the batches."""
        return int(getattr(self.optimizer, "world_size", 1))


def steps_counted(accountant: Any) -> int:
    """Return how many steps an accountant has counted."""
    return 0 if accountant is None else sum(int(entry[2]) for entry in accountant.history)
