"""CUDA graphs, which launch the many kernels of a training step as one.

With small models, a GPU waits for the CPU to launch the next kernel. A graph is captured once and then replayed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from dp_leakage.common.errors import UserError

if TYPE_CHECKING:
    from torch import Generator, Size, Tensor

OFF = "DP_LEAKAGE_NO_CUDA_GRAPHS"  # environment variable: work without graphs
Work = Callable[[], None]
Capture = Callable[[Work], Work]


def cuda_capture(generators: list[Generator]) -> Capture:
    """Return a function that captures work as a CUDA graph.

    The work must have been done once, and its tensors must live as long as the result. All captures share one pool of
    memory, since they are replayed one at a time and none leaves anything there that another needs. They use a stream
    that no other capture uses, because a deleted graph frees the libraries' workspace of its stream.

    Args:
        generators: all generators that the work draws from.

    Raises:
        UserError: from the function, if the capture failed. That leaves an undefined state, so continuing would be
            unsafe.
    """
    import torch

    pool, stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()

    def capture(work: Work) -> Work:
        graph = torch.cuda.CUDAGraph()
        for generator in generators:
            graph.register_generator_state(generator)
        try:
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise UserError(
                f"no CUDA graph could be captured; {OFF}=1 in the environment works without: {error}"
            ) from error
        torch.cuda.current_stream().wait_stream(stream)
        return graph.replay

    return capture


def repeated(step: Callable[[Tensor], None], capture: Capture) -> Callable[[Tensor], None]:
    """Return a step that is captured when a tensor shape first occurs, and replayed afterwards.

    Args:
        step: changes tensors in place by the values of its argument, with the same work for every argument of a shape.
        capture: turns work that was done once into a function that repeats it.
    """
    replays: dict[Size, tuple[Tensor, Work]] = {}

    def take(given: Tensor) -> None:
        if given.shape in replays:
            into, replay = replays[given.shape]
            into.copy_(given)
            replay()
            return
        own = given.clone()
        step(own)  # runs once normally, so that libraries initialize themselves before the capture
        replays[given.shape] = own, capture(lambda: step(own))

    return take


def fast(step: Callable[[Tensor], None], on: Tensor) -> Callable[[Tensor], None]:
    """Return the fastest form of a step for the tensor's device: `repeated` on a GPU unless the
    environment sets `OFF`.
    """
    return repeated(step, cuda_capture([])) if on.is_cuda and not os.environ.get(OFF) else step
