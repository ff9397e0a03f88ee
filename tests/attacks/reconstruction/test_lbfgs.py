"""Many small minimizations at once, against functions whose minimum is known."""

import torch

from dp_leakage.attacks.reconstruction.lbfgs import minimize


def rosenbrock(x):
    return (1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2


def test_all_find_the_minimum_of_a_curved_valley():
    start = torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(minimize(rosenbrock, start, 200), torch.ones_like(start), atol=1e-5, rtol=0)


def test_each_problem_goes_its_own_way():
    """A problem takes the same steps alone as beside one that starts elsewhere."""
    start = torch.tensor([[-1.2, 1.0], [3.0, -2.0]], dtype=torch.float64)
    together = minimize(rosenbrock, start, 12)
    alone = torch.cat([minimize(rosenbrock, row[None], 12) for row in start])
    torch.testing.assert_close(together, alone)


def test_it_never_ends_worse_than_it_began_and_survives_a_cliff():
    def cliff(x):
        return torch.where(x[:, 0] > 0, x.square().sum(1), torch.inf)

    start = torch.tensor([[1.0, 1.0], [0.5, 4.0]], dtype=torch.float64)
    end = minimize(cliff, start, 20)
    assert (cliff(end) <= cliff(start)).all()
    assert cliff(end).isfinite().all()


def test_a_start_at_the_minimum_stays():
    start = torch.ones(3, 2, dtype=torch.float64)
    assert torch.equal(minimize(rosenbrock, start, 5), start)
