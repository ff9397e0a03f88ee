"""Steps that are captured once and replayed. What needs a GPU is with the attacks and the trainer."""

import torch

from dp_leakage.common import captures


def test_a_step_is_captured_once_for_each_shape_and_replayed_with_the_new_values():
    total, captured = torch.zeros(()), []

    def step(given):
        total.add_(given.sum())

    def capture(work):
        captured.append(work)
        return work  # in place of a graph, the work itself

    take = captures.repeated(step, capture)
    given = torch.ones(3)
    for values in (given, given * 10, torch.ones(2), given * 100, torch.ones(2) * 1000):
        take(values)
    assert total == 3 + 30 + 2 + 300 + 2000
    assert len(captured) == 2
    assert torch.equal(given, torch.ones(3))


def test_without_a_gpu_nothing_is_captured():
    def step(given):
        raise AssertionError

    assert captures.fast(step, torch.zeros(1)) is step
