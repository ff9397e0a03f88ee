"""Canaries in a training, and the information that a white-box observer of every step's result gains about them.

Rows from `WhiteBoxObserver.first` on are not records. The sampler draws them like any other row. Then they are removed
from the batch, and the gradient that they represent, along one parameter or zero, goes through the step's own bound. So
a canary can be present or absent while every model trains on equally many rows, and it can be a gradient that no record
has.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from dp_leakage.models.products import CPU_MULTIPLE, add_rows
from dp_leakage.privacy.clipping import bound_scales, layer_norm
from dp_leakage.privacy.mechanism import PER_LAYER, Mechanism
from dp_leakage.privacy.mechanisms.base import Noise
from dp_leakage.training import flat
from dp_leakage.training.backward import BackwardPass, backpropagate
from dp_leakage.training.blocks import block_dimensions
from dp_leakage.training.gradients import Apart, Program, adds_apart, bounds_examples, example_scales, fill_gradient
from dp_leakage.training.model_batches import make_model_batches, model_batch_size
from dp_leakage.training.samplers import Batch

LONG = 1e3  # length of a gradient canary before it is bounded, in units of C, so that every bound acts on it


@dataclass
class WhiteBoxObserver:
    """White-box observer that scores m canaries step by step.

    Attributes:
        first: rows of x from here on are not records.
        held, other: int64 (r,): a row that stands for a canary's presence, and the row for its absence or for another
            canary in its place; each model's subset holds one of the two, for all rows of a canary the same.
        along: int64 (m,): for canaries that are gradients, the parameter (in the flat buffer) along which each lies;
            None for records. For gradients, ``other`` is the opposite gradient if ``replaced``, otherwise nothing.
        replaced: see ``along``.
        of: int64 (r,), the canary of each of the two, 0 to m − 1; None: 0, 1, ….
        units: for each canary the rows of its unit with ``held``, and with ``other``, if units have several records;
            None: it is a unit by itself.
        claimed: the mechanism that the training claims. Its σ and its rate decide the weight of a step's evidence. None
            for sums without weights.
        rate: chance that a row is in a batch, in (0, 1), if the claim relies on the batches being secret; 1 if the
            claim, and so the score, holds for an observer who knows every batch. With the sampler ``balls_in_bins`` a
            row is in one secret step of each epoch. With cyclic Poisson subsets, the observer knows the subsets.
        scored: whether an observer scores the canaries; if not, their rows are only removed.
        scores: float64 (K, m), filled by the training: for Gaussian noise the log-likelihood ratio of "held" against
            "other", step by step, given everything else; of a gradient canary also where the noise is correlated over
            steps (`mechanisms.base.Noise.independent`). For other noise the sum of the noisy updates along the
            difference of both gradients.
        past: (b − 1, 2, K, m), what the score of the next steps needs of the last ones, where noise is correlated.
        epoch: (2, K, m), ln Σ of the likelihood ratios of this epoch's steps so far, of "held" and of "other", where a
            canary is in one secret step of each epoch; and taken: int64 (1,), the number of these steps; of the whole
        training where parts take turns.
        turn: (2, K, m), the log-likelihood ratios of "held" and of "other", given that the canary was in the last step
            that its part of the data had, where parts take turns.
    """

    first: int
    held: Tensor
    other: Tensor
    along: Tensor | None = None
    replaced: bool = False
    of: Tensor | None = None
    units: tuple[Sequence[Tensor], Sequence[Tensor]] | None = None
    claimed: Mechanism | None = None
    rate: float = 1.0
    scored: bool = True
    scores: Tensor = field(default_factory=lambda: torch.empty(0))
    past: Tensor = field(default_factory=lambda: torch.empty(0))
    epoch: Tensor = field(default_factory=lambda: torch.empty(0))
    taken: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.int64))
    turn: Tensor = field(default_factory=lambda: torch.empty(0))

    def begin(self, program: Program, parameters: Tensor, parts: Tensor | None = None) -> None:
        """Prepare for the first step of K models with parameters in a flat buffer (K, P).

        ``parts`` int64 (K, n): each model's cyclic Poisson subset of each row, if there are subsets.
        """
        rows = len(program.x)
        of = torch.arange(len(self.held)) if self.of is None else self.of
        self.scores = torch.zeros(len(parameters), int(of.max()) + 1, dtype=torch.float64)
        known = self.claimed is not None and self.claimed.noise_multiplier
        self.filter = list(program.noise.independent) if known else []
        passed = 2 * len(self.held) + CPU_MULTIPLE
        size = model_batch_size(program.layers, parameters, program.mechanism, passed, program.x.shape[1:])
        self.model_batches = make_model_batches(program.layers, parameters, program.gradient, [], size, program.fixed)
        if self.along is None and len(self.filter) > 1:
            self.filter = []  # a record's gradient changes from step to step
        self.past = torch.zeros(max(len(self.filter) - 1, 0), 2, *self.scores.shape, dtype=torch.float64)
        secret = bool(self.filter) and self.rate < 1
        self.allocated = secret and self.claimed is not None and self.claimed.sampler == "balls_in_bins"
        self.epoch = torch.full((2, *self.scores.shape) if self.allocated else (0,), -math.inf, dtype=torch.float64)
        self.turn = torch.zeros((2, *self.scores.shape) if secret and parts is not None else (0,), dtype=torch.float64)
        self.fixed = torch.ones(rows, dtype=torch.bool)
        self.fixed[self.held], self.fixed[self.other], self.fixed[self.first :] = False, False, False
        self.canary, self.sign = torch.zeros(rows, dtype=torch.int64), torch.zeros(rows)
        for row, sign in ((self.held, 1.0), (self.other, -1.0 if self.replaced else 0.0)):
            self.canary[row], self.sign[row] = of, sign
        self.part = torch.zeros(self.scores.shape, dtype=torch.int64)
        if parts is not None:  # a canary's row, and the one in its place, stand at the same place of a model's subset
            for row in (self.held, self.other):
                self.part[:, of] = self.part[:, of].maximum(parts[:, row])

    def tensors(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint."""
        allocated = {"canary_epoch": self.epoch, "canary_taken": self.taken} if self.allocated else {}
        turn = {"canary_turn": self.turn, "canary_taken": self.taken} if len(self.turn) else {}
        return {"canary_scores": self.scores, "canary_past": self.past, **allocated, **turn}

    def step(self, program: Program, fill: Callable[[list[Batch], int], None], batches: list[Batch], step: int) -> None:
        """Compute every model's gradient on one batch per model, including canaries, and add to the scores.

        ``fill`` does the same as `fill_gradient` of the program; ``step`` is counted over the whole training.
        """
        kept: list[Batch] = [[rows[rows < self.first] for rows in batch] for batch in batches]
        known = None
        if self.scored and adds_apart(program):
            known = torch.zeros_like(program.gradient)
            fill_gradient(program, kept, step, Apart(self.fixed, known))
        else:
            fill(kept, step)
        there, signs = self._drawn(batches)
        if self.along is not None:
            self._insert(program, signs, self.along)
        if self.scored:
            self._observe(program, there, self._known(program, batches) if known is None else known)

    def _drawn(self, batches: list[Batch]) -> tuple[Tensor, Tensor]:
        """Return (K, m): 1 if a canary's row is in the batch; and the sign of its gradient."""
        there, signs = torch.zeros(2, *self.scores.shape)
        parts = [(model, rows) for model, batch in enumerate(batches) for rows in batch]
        rows = torch.cat([self.held[:0], *(part for _, part in parts)])
        lengths = torch.tensor([len(part) for _, part in parts], dtype=torch.int64)
        models = torch.tensor([model for model, _ in parts], dtype=torch.int64).repeat_interleave(lengths)
        own = ~self.fixed[rows]
        models, rows = models[own], rows[own]
        canaries = self.canary[rows]
        there[models, canaries], signs[models, canaries] = 1.0, self.sign[rows]
        return there, signs

    def _insert(self, program: Program, drawn: Tensor, at: Tensor) -> None:
        mechanism = program.mechanism
        drawn = drawn.to(program.gradient)
        if program.noise.directs:
            for model, signs in enumerate(drawn):
                total = flat.views(program.layers, program.gradient[model : model + 1])
                for sign, along in zip(signs, at, strict=True):
                    if sign:
                        vector = torch.zeros_like(program.gradient[:1])
                        vector[0, along] = sign
                        program.noise.add_unit(flat.views(program.layers, vector), total, model)
            return
        if mechanism is None:
            bounded = drawn / program.divisor
        elif mechanism.bound == PER_LAYER:  # it lies in one layer
            share = layer_norm(mechanism.clip_norm, len(block_dimensions(program.layers, "layer")))
            bounded = drawn * share / program.divisor
        else:
            lengths = torch.full_like(drawn, LONG * mechanism.clip_norm)
            bounded = drawn * lengths * example_scales(program.noise, lengths, range(len(drawn)), drawn.abs())
        add_rows(program.gradient.mT, at.to(drawn.device), bounded.mT)

    def _observe(self, program: Program, there: Tensor, known: Tensor) -> None:
        """Update each canary's evidence from the step's update; ``known`` is the other units' contribution."""
        clip = 1.0 if program.mechanism is None else program.noise.clip_norm_of(range(len(self.scores)))
        seen = (program.gradient - known) * (program.divisor / clip)
        up = self._possible(there)
        if self.along is not None:
            along, squares = self._filtered(seen[:, self.along.to(seen.device)].double().cpu(), up)
            held, other = (along, squares), (-along, squares * float(self.replaced))
            self._add(self._evidence(*held), self._evidence(*other), up, program.noise.steps)
            return
        if self.units is None:
            found = self._projected(program, seen, torch.cat([self.held, self.other]))
        else:
            found = self._projected_units(program, seen, [*self.units[0], *self.units[1]])
        held, other = zip(*(part.chunk(2, dim=1) for part in found), strict=True)
        self._add(up * self._evidence(*held), up * self._evidence(*other), up, program.noise.steps)

    def _possible(self, there: Tensor) -> Tensor:
        """Return 1 where, to the observer's knowledge, a canary may be in this step's batch; float64, (K, m) or ()."""
        if self.rate == 1:
            return there.double()
        if len(self.turn):
            assert self.claimed is not None  # or nobody would know of turns
            return (self.part == self.taken % self.claimed.turns).double()
        return torch.ones((), dtype=torch.float64)

    def _add(self, held: Tensor, other: Tensor, up: Tensor, steps: int) -> None:
        """Add a step's evidence for "held" and for "other"; with one secret step per epoch, when the epoch is
        complete.
        """
        if len(self.turn):  # one coin for all steps from one in which it is ``up`` to the next
            before = self.turn * (1 - up)
            self.turn.copy_(before + torch.stack([held, other]))
            new, old = self._sampled(self.turn), self._sampled(before)
            self.scores += (new - old)[0] - (new - old)[1]
            self.taken += 1
            return
        if not self.allocated:
            self.scores += held - other
            return
        torch.logaddexp(self.epoch, torch.stack([held, other]), out=self.epoch)
        self.taken += 1
        if int(self.taken) == steps:
            self.scores += self.epoch[0] - self.epoch[1]
            self.epoch.fill_(-math.inf)
            self.taken.zero_()

    def _filtered(self, along: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the update along a canary, filtered so that its noise is independent, times the canary's
        contribution to it.
        """
        now = torch.stack([along, places.expand_as(along)])
        if not self.filter:
            return now[0] * now[1], now[1]
        found = self.filter[0] * now
        for back, coefficient in enumerate(self.filter[1:]):
            found += coefficient * self.past[back]
        if len(self.past):
            self.past.copy_(torch.cat([now[None], self.past[:-1]]))
        return found[0] * found[1], found[1].square()

    def _projected(self, program: Program, seen: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the update along each row's bounded gradient in units of C, (K, r), and the squared lengths."""
        mechanism = program.mechanism
        along, squares = torch.zeros(2, len(seen), len(rows), dtype=torch.float64)
        records = rows < self.first
        if not bool(records.any()):
            return along, squares
        own = rows[records]
        padded = F.pad(own, (0, -len(own) % CPU_MULTIPLE), value=int(own[0])).to(program.x.device)
        shared = program.x[padded], program.y[padded]
        silent = program.noise.silent(seen)
        silent.divisor = 1.0
        for model_batch in self.model_batches:
            of_model_batch = slice(model_batch.models.start, model_batch.models.stop)
            x, y = (data.expand(len(model_batch.models), *data.shape) for data in shared)
            passed, norms = backpropagate(program.layers, model_batch.parameters, x, y).finite()
            parts = [(passed, norms)]
            if mechanism is not None and mechanism.bound == PER_LAYER:
                parts = [(BackwardPass([part]), part.norms()) for part in passed.parts]
            for part, lengths in parts:
                scales = _scales(mechanism, silent, lengths, model_batch.models, len(parts))
                found = part.directional_derivative(flat.views(program.layers, seen[of_model_batch])) * scales
                along[of_model_batch, records] += found[:, : len(own)].double().cpu()
                squares[of_model_batch, records] += (lengths * scales)[:, : len(own)].double().square().cpu()
        return along, squares

    def _projected_units(self, program: Program, seen: Tensor, units: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """As the projection for single rows, for units of several rows each; rows that are not records contribute
        nothing.
        """
        assert program.mechanism is not None  # plain training has no units
        along, squares = torch.zeros(2, len(seen), len(units), dtype=torch.float64)
        for place, unit in enumerate(units):
            own: list[Batch] = [[unit[unit < self.first]]] * len(along)
            bounded = _without_noise(program, own) * (program.divisor / program.mechanism.clip_norm)
            along[:, place] = (seen * bounded).sum(1).double().cpu()
            squares[:, place] = bounded.double().square().sum(1).cpu()
        return along, squares

    def _evidence(self, along: Tensor, squares: Tensor) -> Tensor:
        there = (squares > 0).double()
        if self.claimed is None or not self.filter:
            return along * there
        # N(g, σ²) with chance q, else N(0, σ²), against N(0, σ²): along ⟨update, g⟩, squares ‖g‖².
        exponent = (along - squares / 2) / self.claimed.sigma**2
        if self.rate < 1 and not self.allocated and not len(self.turn):
            exponent = self._sampled(exponent)
        return exponent * there

    def _sampled(self, exponent: Tensor) -> Tensor:
        """Return the log-likelihood ratio under Poisson sampling, given the ratio for a canary in the batch."""
        return torch.logaddexp(exponent + math.log(self.rate), exponent.new_full((), math.log1p(-self.rate)))

    def _known(self, program: Program, batches: list[Batch]) -> Tensor:
        """Return the contribution of units without a canary to each step's gradient, if it is known without the
        noise.
        """
        if program.noise.directs or program.mechanism is None:
            return torch.zeros(())
        if bounds_examples(program.mechanism):
            return _without_noise(program, [[rows[self.fixed[rows]] for rows in batch] for batch in batches])
        return _without_noise(program, [[rows for rows in batch if self.fixed[rows].all()] for batch in batches])


def _scales(mechanism: Mechanism | None, silent: Noise, norms: Tensor, models: range, parts: int) -> Tensor:
    """Return the factor that bounds each gradient, or each of its ``parts`` layers, in units of the clipping norm."""
    if mechanism is None:
        return torch.ones_like(norms)
    if mechanism.bound == PER_LAYER:
        share = layer_norm(mechanism.clip_norm, parts)
        return bound_scales(norms, share, PER_LAYER, silent.divisor) * (silent.divisor / mechanism.clip_norm)
    return example_scales(silent, norms, models) / silent.clip_norm_of(models)


def _without_noise(program: Program, batches: list[Batch]) -> Tensor:
    """Return the gradient of a step without its noise, (K, P)."""
    alone = torch.zeros_like(program.gradient)
    model_batches = [
        replace(
            model_batch, gradient=flat.views(program.layers, alone[model_batch.models.start : model_batch.models.stop])
        )
        for model_batch in program.model_batches
    ]
    assert program.mechanism is not None  # plain training has no noise
    noise = program.noise.silent(alone)
    fill_gradient(
        replace(program, mechanism=noise.mechanism, gradient=alone, noise=noise, model_batches=model_batches), batches
    )
    return alone
