"""How long a private step takes, relative to a plain PyTorch step in the same process, for us and for others.

    python benchmarks/trainer.py            # all tables, minutes; writes results/bench/trainer.json
    python benchmarks/trainer.py --quick    # fewer repetitions
    python benchmarks/trainer.py --profile mlp
    python benchmarks/trainer.py --device cuda    # writes results/bench/trainer_cuda.json

One process, one thread. All variants of a workload take turns, a block of steps each, and the medians over the rounds
are compared: so a busy neighbor slows them alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dp_leakage.training.launcher import ENVIRONMENT

RESULTS = Path("results/bench")
RECORDS = 10_000
ENSEMBLE = 30
FLOOR_GOAL = 1.25  # a private step over its products and noise alone
# Goals: a private step over a plain one, and how many times an ensemble is faster per model than Opacus' hooks.
GOALS = {
    "softmax_regression": (0.6, 18.0),
    "mlp": (0.9, 22.0),
    "lenet28": (1.2, 2.4),
    "lenet32": (1.25, 2.4),
    "resnet32": (1.6, None),
}


def main() -> None:
    """Run the benchmark in a process that was started in the trainer's environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--profile", metavar="WORKLOAD", help="print where a step's time goes, and stop")
    parser.add_argument(
        "--only", metavar="WORKLOAD", action="append", help="this workload only, and write nothing; may be repeated"
    )
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--no-cell", action="store_true", help="leave out the whole cell")
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        command = [sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env={**os.environ, **ENVIRONMENT}, check=False).returncode)
    if arguments.profile:
        profile(arguments.profile, arguments.device)
        return
    warnings.filterwarnings("ignore")  # Opacus' advice on hooks and secure generators, at each step
    rounds = 5 if arguments.quick else 25
    from dp_leakage.common.kernels import exact

    with exact():  # as in a training; other variants too, so that all are compared at one precision
        rows = compare(rounds, arguments.only, arguments.device)
        if arguments.device == "cpu":
            rows += default_path(rounds, arguments.only)
            rows += persons(rounds, arguments.only)
    if arguments.only:
        return
    if not arguments.no_cell:
        rows.append(whole_cell(2 if arguments.quick else 10, arguments.device))
    path = RESULTS / ("trainer.json" if arguments.device == "cpu" else f"trainer_{arguments.device}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"written: {path}")


def workloads(device: str) -> list:
    """What is timed, on this device."""
    from rivals import WORKLOADS

    return [replace(workload, device=device) for workload in WORKLOADS]


def ours(workload, x, y, models: int) -> Callable[[], None]:
    """Our private step of ``models`` models, batches included."""
    import torch

    from dp_leakage.privacy.mechanism import Mechanism
    from dp_leakage.training.settings import TrainingSettings
    from dp_leakage.training.trainer import start, steps

    settings = TrainingSettings(workload.optimizer, workload.learning_rate, epochs=10**9, batch_size=200)
    mechanism = Mechanism(clip_norm=1.0, noise_multiplier=1.0)
    subsets = torch.arange(len(x)).expand(models, -1)
    with torch.inference_mode():
        training = start(workload.layers(), x, y, subsets, range(models), settings, mechanism, device=workload.device)

    def endless():
        while True:
            yield from steps(training)
            training.epoch += 1

    endless_steps = endless()

    def step() -> None:
        with torch.inference_mode():
            next(endless_steps)

    return step


def compare(rounds: int, only: list[str] | None, device: str) -> list[dict]:
    """The tables of single steps and of ensembles."""
    import torch
    from rivals import opacus_ghost, opacus_hooks, plain, plain_fused, vmap_grad

    torch.set_num_threads(1)
    rows: list[dict] = []
    for workload in workloads(device):
        if only and workload.name not in only:
            continue
        convolutional = len(workload.shape) == 3
        x, y = workload.data(2_000 if convolutional else RECORDS)
        variants = {
            "plain": plain(workload, x, y),
            "plain_fused": plain_fused(workload, x, y),
            "ours": ours(workload, x, y, 1),
            f"ours_ensemble{ENSEMBLE}": ours(workload, x, y, ENSEMBLE),
            "opacus_hooks": opacus_hooks(workload, x, y),
            "opacus_ghost": opacus_ghost(workload, x, y),
            "vmap_grad": vmap_grad(workload, x, y),
        }
        if device == "cpu" and not convolutional:
            variants["floor"] = products_and_noise(workload.layers(), workload.shape, 200, 1)
            variants[f"floor_ensemble{ENSEMBLE}"] = products_and_noise(workload.layers(), workload.shape, 200, ENSEMBLE)
        models = {name: ENSEMBLE if "ensemble" in name else 1 for name in variants}
        # A block lasts about as long for all, and takes in whole epochs of ours where that is affordable.
        block = dict.fromkeys(variants, 2 if convolutional else 50)
        if convolutional:
            block[f"ours_ensemble{ENSEMBLE}"] = 1
        seconds = {name: time_ / models[name] for name, time_ in interleave(variants, block, rounds, device).items()}
        print(f"\n{workload.name}: plain step {seconds['plain'] * 1e6:.0f} µs")
        floor = seconds.pop("floor", None)
        floors = {"ours": floor, f"ours_ensemble{ENSEMBLE}": seconds.pop(f"floor_ensemble{ENSEMBLE}", None)}
        for name, value in seconds.items():
            ratio, speedup = value / seconds["plain"], seconds["opacus_hooks"] / value
            print(f"  {name:16s} {ratio:6.2f} × plain   {speedup:6.1f} × faster than Opacus' hooks", flush=True)
            row = {"workload": workload.name, "variant": name, "ratio_to_plain": ratio}
            rows.append(row | ({"speedup_over_opacus": speedup} if name.startswith("ours") else {}))
        ratio, speedup = GOALS[workload.name]
        wanted = "" if speedup is None else f", ensemble ≥ {speedup:g} × faster than Opacus' hooks"
        print(f"  goals: ours ≤ {ratio} × plain{wanted}")
        if floor is not None:
            print(
                f"  products and noise alone: {floor / seconds['plain']:.2f} × plain, "
                f"so none that uses the same libraries is more than {seconds['opacus_hooks'] / floor:.1f} × faster",
                flush=True,
            )
            for name, least in floors.items():
                print(f"  {name}: {seconds[name] / least:.2f} × its products and noise (goal {FLOOR_GOAL})", flush=True)
    return rows


def products_and_noise(layers, shape: tuple[int, ...], records: int, models: int) -> Callable[[], None]:
    """What no private step of K models can leave out: the layers' products and a normal number per parameter.

    A convolution's products are those of plain training; only an architecture's own layers count, not those in blocks.
    """
    import torch

    from dp_leakage.models.layers import Conv2d, Linear
    from dp_leakage.models.products import add_outer, affine, times
    from dp_leakage.training import flat

    operands = []
    for layer in layers:
        after = layer.output_shape(shape)
        if isinstance(layer, Conv2d | Linear):
            shapes = layer.parameter_shapes()
            sizes = ((records, *shape), shapes["weight"], shapes["bias"], (records, *after))
            operands.append((layer, [torch.randn(models, *size) for size in sizes]))
        shape = after
    noise = torch.empty(models, flat.size(layers))

    def step() -> None:
        with torch.inference_mode():
            for number, (layer, (x, weight, bias, delta)) in enumerate(operands):
                if isinstance(layer, Conv2d):
                    sides = [layer.stride] * 2, [layer.padding] * 2, [1] * 2
                    for own in zip(x, weight, bias, delta, strict=True):
                        torch.conv2d(*own[:3], *sides)
                        wanted = [number > 0, True, True]
                        torch.ops.aten.convolution_backward(
                            own[3], own[0], own[1], [layer.outputs], *sides, False, [0, 0], 1, wanted
                        )
                    continue
                affine(x, weight, bias)
                add_outer(weight, delta, x)
                if number:
                    times(delta, weight)
            for row in noise:
                row.normal_(0.0, 1.0)

    return step


# Of the default path: records, of which each batch takes so many on average.
POOL, POOL_BATCH, CASES = 800, 50, ("shuffled", "coins", "Poisson", "Poisson and coins")


def default_path(rounds: int, only: list[str] | None) -> list[dict]:
    """Small ensembles with whole batches, with coins and with Poisson batches, beside Opacus' Poisson loader."""
    import torch
    from rivals import NOISE, Workload, opacus_poisson

    from dp_leakage.models.architectures import build
    from dp_leakage.privacy.mechanism import Mechanism
    from dp_leakage.training.settings import TrainingSettings
    from dp_leakage.training.trainer import start

    def epochs(workload, layers, models: int, private: bool, case: str) -> Callable[[], None]:
        x, y = workload.data(POOL)
        held = torch.rand(models, POOL, generator=torch.Generator().manual_seed(2)) < 0.5 if "coins" in case else None
        sampler = "poisson" if "Poisson" in case else "shuffle"
        mechanism = Mechanism(sampler, noise_multiplier=NOISE) if private else None
        settings = TrainingSettings(workload.optimizer, workload.learning_rate, epochs=10**9, batch_size=POOL_BATCH)
        subsets = torch.arange(POOL).expand(models, -1)
        with torch.inference_mode():
            training = start(layers, x, y, subsets, range(models), settings, mechanism, held=held)
        return torch.inference_mode()(training.run_epoch)

    torch.set_num_threads(1)
    rows: list[dict] = []
    for name, architecture, shape, classes, models, options in (
        ("softmax_regression_pool", "softmax_regression", (30,), 2, 24, {}),
        ("mlp64_pool", "mlp", (30,), 2, 24, {"hidden": (64, 64)}),
        ("lenet28_pool", "lenet", (1, 28, 28), 10, 2, {}),
    ):
        if only and name not in only:
            continue
        workload, layers = (
            Workload(name, architecture, shape, classes, "adam", 0.01),
            build(architecture, shape, classes, **options),
        )
        steps = POOL // POOL_BATCH
        one_floor = products_and_noise(layers, shape, POOL_BATCH, models)
        variants = {
            "products and noise": lambda one=one_floor: [one() for _ in range(POOL // POOL_BATCH)],
            **{f"private, {case}": epochs(workload, layers, models, True, case) for case in CASES},
            **{f"plain, {case}": epochs(workload, layers, models, False, case) for case in CASES[:2]},
            "Opacus, Poisson loader": opacus_poisson(workload, layers, POOL, POOL_BATCH),
        }
        found = interleave(variants, dict.fromkeys(variants, 1), rounds, "cpu")
        print(f"\n{name}: {models} models, batches of {POOL_BATCH} of {POOL} records, µs per model and step")
        for variant, seconds in found.items():
            each = seconds / steps / (1 if "Opacus" in variant else models)
            rows.append({"workload": name, "variant": variant, "seconds": each})
            over = each / rows[-1 - list(found).index(variant)]["seconds"]
            print(f"  {variant:28s} {each * 1e6:8.1f}   {over:6.2f} × products and noise", flush=True)
    return rows


def persons(rounds: int, only: list[str] | None) -> list[dict]:
    """Steps for whole persons beside steps for as many single records; all of it is the workload ``persons``."""
    import torch
    from persons import GOAL, STEPS, WORKLOADS, epochs

    rows: list[dict] = []
    if only and "persons" not in only:
        return rows
    torch.set_num_threads(1)
    print(f"\npersons: µs per model and step (goal: at most {GOAL:g} × the record-level step)")
    for even in (True, False):
        for name, shape, settings, models in WORKLOADS:
            for sampler in ("poisson", "shuffle"):
                variants = epochs(name, shape, settings, models, sampler, even)
                found = interleave(variants, dict.fromkeys(variants, 2), rounds, "cpu")
                record, person = (found[unit] / models / STEPS for unit in ("record", "person"))
                words = f"{name} {settings.get('hidden', '')}, {sampler}, {'5' if even else '1 to 40'} records each"
                print(
                    f"  {words:55s} {record * 1e6:8.0f} {person * 1e6:8.0f} {person / record:6.2f} ×",
                    flush=True,
                )
                rows.append({"workload": f"persons: {words}", "variant": "ours", "ratio_to_record": person / record})
    return rows


def interleave(
    variants: dict[str, Callable[[], None]], block: dict[str, int], rounds: int, device: str
) -> dict[str, float]:
    """Median seconds per step of each variant; the variants take turns.

    On the CPU it is processor time, which others on the machine stretch less than the clock's.
    """
    import torch

    clock = time.process_time if device == "cpu" else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, step in variants.items():
            begin = clock()
            for _ in range(block[name]):
                step()
            if device != "cpu":
                torch.cuda.synchronize()
            if turn:  # the first is for warming up
                seconds[name].append((clock() - begin) / block[name])
    return {name: statistics.median(values) for name, values in seconds.items()}


def whole_cell(epochs: int, device: str) -> dict:
    """5 repeats and 5 shadow models of the MLP, 100 epochs of 10,000 records; Opacus' documented loop beside it.

    Both are run for fewer epochs and scaled to 100; ours evaluates its models once, Opacus' loop does not.
    """
    import torch
    from opacus import PrivacyEngine
    from rivals import BATCH, CLIP, NOISE
    from torch.utils.data import DataLoader, TensorDataset

    from dp_leakage.privacy.mechanism import Mechanism
    from dp_leakage.training.settings import TrainingSettings
    from dp_leakage.training.trainer import train

    (workload,) = (w for w in workloads(device) if w.name == "mlp")
    x, y = workload.data(RECORDS)
    settings = TrainingSettings("adam", 0.01, epochs=epochs, batch_size=BATCH, evaluate_every=epochs)
    subsets = torch.arange(RECORDS).expand(5, -1)
    begin = time.perf_counter()
    private = Mechanism("poisson", clip_norm=CLIP, noise_multiplier=NOISE)
    train(workload.layers(), x, y, subsets, range(5), settings, private, device=device)
    train(workload.layers(), x, y, subsets, range(5), settings, device=device)
    our_seconds = (time.perf_counter() - begin) * 100 / epochs

    module = workload.module()
    module, optimizer, loader = PrivacyEngine().make_private(
        module=module,
        optimizer=workload.torch_optimizer(module),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
    )
    plain_module = workload.module()
    plain_optimizer = workload.torch_optimizer(plain_module)
    plain_loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    loops = ((module, optimizer, loader), (plain_module, plain_optimizer, plain_loader))

    def epoch() -> None:
        for one, its_optimizer, its_loader in loops:
            for inputs, classes in its_loader:
                its_optimizer.zero_grad()
                torch.nn.functional.cross_entropy(one(inputs), classes).backward()
                its_optimizer.step()

    epoch()  # to warm up
    begin = time.perf_counter()
    epoch()
    opacus_seconds = (time.perf_counter() - begin) * 100 * 5
    print(
        f"\nwhole cell, MLP, 5 private repeats + 5 plain shadow models, n = {RECORDS}, 100 epochs\n"
        f"  ours   {our_seconds:8.1f} s ({epochs} epochs run, scaled to 100)\n"
        f"  Opacus {opacus_seconds:8.1f} s (1 epoch of 1 private and 1 plain model run, scaled)\n"
        f"  {opacus_seconds / our_seconds:.1f} × faster",
        flush=True,
    )
    return {
        "workload": "cell_mlp",
        "variant": "ours",
        "seconds": our_seconds,
        "opacus_seconds": opacus_seconds,
        "speedup_over_opacus": opacus_seconds / our_seconds,
        "note": f"5 private repeats + 5 plain shadows; ours: {epochs} epochs, Opacus: 1 epoch of 1 + 1; scaled to 100",
    }


def profile(name: str, device: str) -> None:
    """Where one step's time goes, by operator."""
    import torch

    torch.set_num_threads(1)
    (workload,) = (w for w in workloads(device) if w.name == name)
    step = ours(workload, *workload.data(2_000), 1)
    for _ in range(10):
        step()
    with torch.profiler.profile() as profiler:
        for _ in range(50):
            step()
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))


if __name__ == "__main__":
    main()
