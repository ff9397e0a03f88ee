"""Training step as a CUDA graph, so that its many kernels are launched as one.

A graph (`common.captures`) is captured once for each shape of a step's batches. It holds the passes, the penalty and
the optimizer, and is replayed after the next step's rows are copied into the tensors of the capture. It holds only the
passes if something reads the sum before the optimizer does: canaries' watch, or noise that must see the whole sum.
Noise that is added stays outside, since a graph would set up each random stream with extra kernels, which take longer
than the draw itself. Noise that directs gradients is drawn in the passes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from torch import Generator, Tensor

from dp_leakage.common.captures import OFF, Capture, Work, cuda_capture
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.gradients import (
    Examples,
    Program,
    add_examples,
    bounds_examples,
    fill_gradient,
    lay_out,
    on_device,
)
from dp_leakage.training.noise import sees_sum, waits
from dp_leakage.training.samplers import Batch

TOGETHER = 32  # steps whose rows are sent in one copy; a GPU takes them while the next ones are laid out


def gradient_step(program: Program) -> Callable[[list[Batch], int], None]:
    """Return `fill_gradient` of this program, replayed from graphs if device, mechanism and environment allow it."""
    known = capturable(program.mechanism) and not any(layer.foreign for layer in program.layers)
    if program.x.is_cuda and program.viewing is None and known and not os.environ.get(OFF):
        return Replayed(program, cuda_capture(pass_generators(program)))
    return partial(fill_gradient, program)


def pass_generators(program: Program) -> list[Generator]:
    """Return all generators that the passes draw from."""
    drops = any(layer.draws for layer in program.layers)
    dropout = [generator for model_batch in program.model_batches for generator in model_batch.dropout] if drops else []
    return dropout + (program.noise.generators if program.noise.directs else [])


def capturable(mechanism: Mechanism | None) -> bool:
    """Return whether all steps of one shape do the same work and never wait for a result.

    Directional noise around layers waits for results, groups of records have many shapes, and a plugin's bound may do
    anything.
    """
    return bounds_examples(mechanism) and (
        mechanism is None or (not waits(mechanism) and mechanism.bound in ("clip", "normalize"))
    )


class Replayed:
    """`fill_gradient` of one program. Its passes are captured when a shape first occurs, and then replayed.

    Args:
        program: the inputs that all steps share; its mechanism must be `capturable`.
        capture: turns work that was done once into a function that repeats it.
    """

    def __init__(self, program: Program, capture: Capture) -> None:
        self.program, self.capture = program, capture
        self.replays: dict[tuple, tuple[list[Tensor], Work]] = {}

    def __call__(self, batches: Sequence[Batch], step: int = 0) -> None:
        """As `fill_gradient`."""
        for _ in self.steps([batches], step, _nothing):
            pass

    def steps(self, drawn: Sequence[Sequence[Batch]], first: int, finish: Work) -> Iterator[None]:
        """As `take_steps`, always with the same ``finish``."""
        for begin in range(0, len(drawn), TOGETHER):
            laid = [lay_out(self.program, batches) for batches in drawn[begin : begin + TOGETHER]]
            for step, examples in enumerate(on_device(laid, self.program.x.device), first + begin):
                self.program.noise.add(step)
                self._replay(examples, finish)
                yield

    def _replay(self, examples: list[Examples], finish: Work) -> None:
        shape = tuple((rows.shape, weights is None) for rows, weights in examples)
        if not any(rows.shape[1] for rows, _ in examples):
            finish()  # a graph of no pass cannot be captured
        elif shape in self.replays:
            inputs, replay = self.replays[shape]
            for into, new in zip(inputs, _tensors(examples), strict=True):
                into.copy_(new)
            replay()
        else:
            own = [Examples(rows.clone(), None if weights is None else weights.clone()) for rows, weights in examples]

            def work() -> None:
                add_examples(self.program, own)
                finish()

            work()  # runs once normally, so that libraries initialize themselves before the capture
            self.replays[shape] = _tensors(own), self.capture(work)


def take_steps(fill: Callable[..., None], drawn: Sequence[Sequence[Batch]], first: int, finish: Work) -> Iterator[None]:
    """Take steps; yield after each.

    Args:
        fill: from `gradient_step`, or another function like `fill_gradient`. If it is replayed from graphs, the whole
            step but the noise is, unless that reads the sum.
        drawn: for each step a batch per model.
        first: the number of the first step, counted from 0 over the training.
        finish: ends a step, from the gradient to the new parameters.
    """
    if isinstance(fill, Replayed) and not sees_sum(fill.program.noise):
        yield from fill.steps(drawn, first, finish)
        return
    for step, batches in enumerate(drawn, first):
        fill(batches, step=step)
        finish()
        yield


def _nothing() -> None:
    pass


def _tensors(examples: list[Examples]) -> list[Tensor]:
    return [tensor for of_model_batch in examples for tensor in of_model_batch if tensor is not None]
