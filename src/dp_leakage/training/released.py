"""Training of a model for release: every secret draw comes from the operating system, without a seed.

A seeded generator is made for repeating a training, which lets anyone with the seed take the noise away again. And
floating-point noise that is added to floating-point gradients leaves low bits from which the gradients can be told
(Mironov 2012, "On significance of the least significant bits for differential privacy"). So here

- batches and noise are drawn by ``os.urandom``;
- a normal draw is half the sum of four in float64, as in Opacus' secure mode (Holohan & Braghin 2021), so that no
  arithmetic on a result finds the uniforms behind it;
- sum and noise are rounded to one grid, which depends on no record, before they are added, as integers. The result is a
    post-processing of an integer sum plus noise, so no low bit of a gradient is left.

Rounding moves neighboring sums apart by at most √P grid steps (P parameters). The grid is so fine, and the training in
float64, that this and all rounding of the sums stay below `SLACK` of the clipping norm, by which the noise is larger.
Gradients of a person's records may cancel, and then their sum rounds by more than its own length says. So each
person's mean gradient is formed, bounded and rounded to the grid before it is added (see `formed`).
"""

import math
import os
import secrets
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Layers, Parameters
from dp_leakage.privacy.mechanism import PERSON, Mechanism
from dp_leakage.privacy.mechanisms.base import Noise
from dp_leakage.training.formed import check_size, fill_formed
from dp_leakage.training.graphs import gradient_step
from dp_leakage.training.requests import check_request
from dp_leakage.training.samplers import Batch, Roster, records_of
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import EnsembleTraining, rosters, start

DRAWS = 4  # normal draws behind one number of the noise
SLACK = 2.0**-20  # by how much more noise is added, relative
AT_ONCE = 1 << 20  # numbers drawn at a time
SAMPLERS = ("poisson", "shuffle")


def uniforms(count: int) -> np.ndarray:
    """Draw ``count`` float64 uniforms in (0, 1] from the operating system: multiples of 2⁻⁵³."""
    words = np.frombuffer(os.urandom(8 * count), np.uint64)
    return ((words >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def normals(count: int) -> np.ndarray:
    """Draw ``count`` float64 standard normals, each half the sum of `DRAWS` draws of Box and Muller (1958)."""
    half = -(-count * DRAWS // 2)
    length, angle = np.sqrt(-2 * np.log(uniforms(half))), 2 * np.pi * uniforms(half)
    drawn = np.concatenate([length * np.cos(angle), length * np.sin(angle)])[: count * DRAWS]
    return drawn.reshape(DRAWS, count).sum(axis=0) / math.sqrt(DRAWS)


class GridNoise(Noise):
    """Gaussian noise on a grid, from the operating system; the gradient must be float64, on the CPU.

    After `finish` the gradient is a multiple of `step`, whatever the records were.
    """

    @property
    def step(self) -> float:
        """The grid's step: a power of two."""
        allowed = SLACK / 2 * self.mechanism.clip_norm / self.divisor
        return 2.0 ** math.floor(math.log2(allowed / math.sqrt(self.gradient.shape[1])))

    def finish(self) -> None:
        """As in `Noise`."""
        deviation = self.deviation * (1 + SLACK)
        for row in self.gradient.numpy():
            for begin in range(0, len(row), AT_ONCE):
                part = row[begin : begin + AT_ONCE]
                noise = normals(len(part)) * deviation
                part[:] = (np.rint(part / self.step) + np.rint(noise / self.step)) * self.step

    def tensors(self) -> dict[str, Tensor]:
        """As in `Noise`: nothing is remembered."""
        return {}


def permutation(count: int) -> Tensor:
    """Draw a random order of the numbers below ``count`` from the operating system, int64."""
    order = np.argsort(np.frombuffer(os.urandom(16 * count), "u8,u8"), order=("f0", "f1"))
    return torch.from_numpy(order.astype(np.int64))


def positions(sampler: str, count: int, batch_size: float) -> list[Tensor]:
    """Draw the batches of one epoch as positions below ``count``, int64, from the operating system; see `samplers`.

    Args:
        sampler: one of `SAMPLERS`.
        count: n units.
        batch_size: expected batch size; an epoch has ⌈n / batch_size⌉ batches, and Poisson batches have the sampling
            probability batch_size/n.
    """
    if sampler == "shuffle":
        return list(permutation(count).split(int(batch_size)))
    rate = min(1.0, batch_size / count)
    steps = math.ceil(count / batch_size)
    return [torch.from_numpy(np.flatnonzero(uniforms(count) <= rate).astype(np.int64)) for _ in range(steps)]


def check_released(mechanism: Mechanism | None) -> Mechanism:
    """Return the mechanism if a training can be released under it. Raises UserError otherwise."""
    if mechanism is None or mechanism.noise != "gaussian" or not mechanism.noise_multiplier:
        raise UserError("a model can be released only under Gaussian noise; name a cell of defense `gaussian`")
    if mechanism.unit not in ("example", PERSON) or mechanism.bound not in ("clip", "normalize"):
        words = f"got unit {mechanism.unit!r} and bound {mechanism.bound!r}"
        raise UserError(f"a release must bound each record, or each person, by `clip` or `normalize`; {words}")
    if mechanism.sampler not in SAMPLERS:
        raise UserError(f"the sampler of a release must be {' or '.join(SAMPLERS)}; got {mechanism.sampler!r}")
    return mechanism


class Release:
    """One training to be released, epoch by epoch. It measures nothing on the records.

    Args:
        layers: the architecture.
        x: float32 (n, …) records; y: int64 (n,) classes.
        settings: training settings; batches count units.
        mechanism: protection of each step; see `check_released`.
        held: bool (n,): the records that are left in the batches, for an audit; None: all.
        person: int64 (n,): the owner of each record, for the unit ``person``.

    Raises:
        UserError: an impossible request.
    """

    def __init__(
        self,
        layers: Layers,
        x: Tensor,
        y: Tensor,
        settings: TrainingSettings,
        mechanism: Mechanism,
        held: Tensor | None = None,
        person: Tensor | None = None,
    ) -> None:
        check_released(mechanism)
        rows, x = torch.arange(len(x))[None], x.double()
        seeds = [secrets.randbits(63)]  # of the initial parameters and of dropout, which need not be secret
        check_request(layers, x, y, rows, seeds, settings, mechanism)
        self.settings = settings
        with torch.inference_mode():
            training = start(layers, x, y, rows, seeds, settings, mechanism, person)
            program = training.program
            noise = GridNoise(mechanism, program.gradient, program.divisor, [], 0)
            training.program = program = replace(program, noise=noise)
            if mechanism.unit == PERSON:
                assert person is not None  # or `start` would have complained
                (persons,) = rosters(mechanism, rows, person, None if held is None else held[None])
                check_size(program, noise.step, len(persons.sizes))
                _draw_persons(training, mechanism, persons, noise.step)
            else:
                _draw_records(training, mechanism, held)
            self._training = training

    @property
    def epoch(self) -> int:
        """Return the number of finished epochs."""
        return self._training.epoch

    def run_epoch(self) -> bool:
        """Train for an epoch; return whether all parameters are still finite."""
        with torch.inference_mode():
            self._training.run_epoch()
        self._training.epoch += 1
        return bool(self._training.parameters.isfinite().all())

    def parameters(self) -> Parameters:
        """Name → float32 (…), the model as it is now."""
        return {name: view[0].float().clone() for name, view in self._training.models().parameters.items()}

    def state(self) -> dict[str, Tensor]:
        """Return the state for the next epochs: parameters and the optimizer's averages, all already noised."""
        moved = {"parameters": self._training.parameters, **self._training.memory}
        return {name: tensor.clone() for name, tensor in moved.items()}

    def restore(self, epoch: int, state: dict[str, Tensor]) -> None:
        """Continue from the ``state`` after ``epoch`` epochs, with new draws: no draw is used twice."""
        with torch.inference_mode():
            for name, into in {"parameters": self._training.parameters, **self._training.memory}.items():
                into.copy_(state[name])
        self._training.epoch = epoch


def _draw_records(training: EnsembleTraining, mechanism: Mechanism, held: Tensor | None) -> None:
    """Draw batches of records from the operating system instead of seeded generators."""
    program = training.program

    def draw(epoch: int) -> list[list[Batch]]:
        drawn = positions(mechanism.sampler, len(program.x), program.divisor)
        return [[[rows if held is None else rows[held[rows]]] for rows in drawn]]

    training.fill_gradient, training.draw = gradient_step(program), draw


def _draw_persons(training: EnsembleTraining, mechanism: Mechanism, persons: Roster, step: float) -> None:
    """Draw batches of people from the operating system; their terms lie on the grid."""
    program, largest = training.program, int(persons.sizes.max())

    def draw(epoch: int) -> list[list[Batch]]:
        drawn = positions(mechanism.sampler, len(persons.sizes), program.divisor)
        return [records_of(persons, drawn, permutation)]

    training.fill_gradient, training.draw = partial(fill_formed, program, step, largest), draw
