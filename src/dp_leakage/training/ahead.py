"""Next epoch's batches, drawn while a GPU still runs this epoch's steps."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from dp_leakage.training.samplers import Batch

Drawn = list[list[Batch]]  # for each model the batches of an epoch


class Ahead:
    """Draws the same batches as ``draw``, optionally one epoch in advance.

    The streams advance only when the numbers are used, so a checkpoint does not depend on drawing in advance.

    Args:
        draw: draws the batches of every model for an epoch, counted from 0.
        generators: the streams that it draws from.
        epochs: number of epochs; nothing is drawn beyond.
    """

    def __init__(self, draw: Callable[[int], Drawn], generators: Sequence[Generator], epochs: int) -> None:
        self.draw, self.generators, self.epochs = draw, generators, epochs
        self.kept: tuple[int, Tensor, Drawn, Tensor] | None = None

    def prepare(self, epoch: int) -> None:
        """Draw the batches of an epoch in advance."""
        if epoch < self.epochs:
            before = self._states()
            drawn = self.draw(epoch)
            self.kept = epoch, before, drawn, self._states()
            self._move_to(before)

    def __call__(self, epoch: int) -> Drawn:
        """Return the batches of every model for an epoch."""
        kept, self.kept = self.kept, None
        if kept is None or kept[0] != epoch or not torch.equal(kept[1], self._states()):
            return self.draw(epoch)
        self._move_to(kept[3])
        return kept[2]

    def _states(self) -> Tensor:
        return torch.stack([generator.get_state() for generator in self.generators])

    def _move_to(self, states: Tensor) -> None:
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state.clone())  # aligned, as set_state needs it
