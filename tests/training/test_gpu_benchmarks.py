"""The scripts for the first half hour with a GPU do on a CPU what they do there."""

import importlib.util
import sys
from pathlib import Path

import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bytes_are_compared_and_a_difference_is_told(monkeypatch, capsys):
    module = script("gpu_bytes")
    monkeypatch.setattr(module, "SHAPES", {"softmax_regression": (12,)})
    monkeypatch.setattr(sys, "argv", ["gpu_bytes.py", "--device", "cpu"])
    threads = torch.get_num_threads()
    assert module.main() == 0
    assert capsys.readouterr().out.count("same bytes") == len(module.STEPS)
    count, trained = iter(range(99)), module.trained

    def drifting(name, step, device):
        found = trained(name, step, device)
        found.parameters["1.weight"][0] += next(count) % 2  # of three trainings the second
        return found

    monkeypatch.setattr(module, "trained", drifting)
    monkeypatch.setattr(module, "STEPS", {"none": None})
    assert module.main() == 1
    assert "differs again\n" in capsys.readouterr().out
    torch.set_num_threads(threads)


def test_cells_are_timed(monkeypatch, capsys):
    module = script("gpu_cells")
    monkeypatch.setattr(sys, "argv", ["gpu_cells.py", "--device", "cpu", "--quick"])
    threads = torch.get_num_threads()
    module.main()
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [[n, m] for n in module.ARCHITECTURES for m in module.MECHANISMS]
    assert all(float(number) > 0 for line in lines for number in line.split()[2:])
    torch.set_num_threads(threads)


def test_cells_are_timed_in_several_processes_at_once(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu_cells.py", "--device", "cpu", "--quick", "--processes", "2"])
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # where the processes look for what they are to do
    threads = torch.get_num_threads()
    importlib.import_module("gpu_cells").main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["2"]
    assert all(float(line[3]) > 0 for line in lines)
    torch.set_num_threads(threads)
