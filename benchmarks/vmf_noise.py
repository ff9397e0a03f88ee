"""Cost of von Mises–Fisher noise, relative to Gaussian noise of the same size.

Run by hand: ``python benchmarks/vmf_noise.py``. Interleaved medians, one thread; only ratios mean anything.
Goal: at most 1.5 for d ≥ 1e4.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch

from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.privacy.directional import Drawing, add_directed_examples
from dp_leakage.privacy.noise import sample_vmf
from dp_leakage.privacy.vmf_sum import draw_vmf_sums
from dp_leakage.training.backward import BackwardPass

NUMBERS = 2_000_000  # per call, so that a call takes milliseconds
REPEATS = 25


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print("time of sample_vmf / time of mean + sigma * normal, float32")
    for dimension in (100, 1_000, 10_000, 100_000, 1_000_000):
        for rows in sorted({1, NUMBERS // dimension}):
            mean = torch.randn(rows, dimension)
            mean /= mean.norm(dim=1, keepdim=True)
            functions = {"gaussian": lambda mean=mean: gaussian(mean, generator)}
            for kappa in (0.5, 250.0, 150_000.0):
                functions[f"{kappa:g}"] = lambda mean=mean, kappa=kappa: sample_vmf(mean, kappa, generator)
            times = interleaved(functions)
            ratios = "  ".join(f"κ={k}: {t / times['gaussian']:.2f}" for k, t in times.items() if k != "gaussian")
            print(f"d={dimension:>9,} rows={rows:>6,}  {ratios}")

    kappa = torch.full((1, 200), 250.0, dtype=torch.float64)
    print("time of a sum of draw_vmf_sums for 200 units / time of one normal vector of that dimension")
    for dimension in (10_000, 100_000, 1_000_000):
        units = torch.randn(200, 1000, dtype=torch.float64)
        units /= units.norm(dim=1, keepdim=True)
        gram, vector = units @ units.T, torch.empty(dimension)
        singular = gram.clone()
        singular[1], singular[:, 1] = singular[0].clone(), singular[:, 0].clone()
        times = interleaved(
            {
                "normal": lambda vector=vector: vector.normal_(generator=generator),
                "regular": lambda gram=gram, d=dimension: draw_vmf_sums([gram], d, [kappa], generators=[generator]),
                "singular": lambda gram=singular, d=dimension: draw_vmf_sums(
                    [gram], d, [kappa], generators=[generator]
                ),
            }
        )
        print(
            f"d={dimension:>9,}  normal {1e3 * times['normal']:.2f} ms"
            f"  regular Gram: {times['regular'] / times['normal']:.2f}"
            f"  singular Gram: {times['singular'] / times['normal']:.2f}"
        )

    print("time of a linear layer's rows, drawn from the Gram matrix / drawn one by one, 64 examples")
    for inputs, outputs in ((400, 120), (784, 256), (3072, 256)):
        names = ("0.weight", "0.bias")
        part = LinearGradients(names, torch.rand(1, 64, inputs), torch.randn(1, 64, outputs))
        total = {"0.weight": torch.zeros(1, outputs, inputs), "0.bias": torch.zeros(1, outputs)}
        times = interleaved(
            {
                "gram": lambda part=part, total=total: add_directed_examples(
                    BackwardPass([part]), Drawing("row", 0.5, 1.0, [64], [generator]), total
                ),
                "formed": lambda part=part: sample_vmf(
                    torch.nn.functional.normalize(part.rows()[0], dim=2).flatten(0, 1), 0.5, generator
                ),
            }
        )
        print(f"{inputs:>5} → {outputs}  {1e3 * times['gram']:.1f} ms  {times['gram'] / times['formed']:.3f}")


def gaussian(mean: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.empty_like(mean).normal_(generator=generator).mul_(0.7).add_(mean)


def interleaved(functions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each function, called in turn so that the machine's moods meet all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = perf_counter()
            function()
            times[name].append(perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


if __name__ == "__main__":
    main()
