import json
from types import SimpleNamespace

import pytest

from dp_leakage.study import resources
from dp_leakage.study.resources import attack_minutes, measured_pass, memory_mb, training_minutes


def _settings(epochs=100, size=10_000, repeats=5, name="mlp"):
    own = {"engine": "ensemble", "architecture": {"name": name}}
    return {"training": {"epochs": epochs}, "subset": {"size": size}, "repeats": repeats} | own


def test_training_time_grows_with_epochs_records_and_models():
    assert training_minutes(_settings()) == 5 + 17  # 5 million records at 0.2 ms: 16.7 minutes
    assert training_minutes(_settings(epochs=200)) == 5 + 34
    assert training_minutes(_settings(repeats=1)) == 5 + 4
    assert training_minutes(_settings(name="nets:Net")) > 20 * training_minutes(_settings()) - 100


def test_images_that_are_rebuilt_take_time_by_their_steps():
    assert attack_minutes(0, 1, steps=100 * 6000) == 1 + 100


def test_attacks_of_a_cell_take_time_by_its_records_and_models_without_a_floor_for_each():
    assert attack_minutes(58_000, 5, attacks=2) == 1 + 97  # 580,000 pairs at 10 ms: 96.7 minutes
    assert attack_minutes(100, 2, attacks=6) == 1 + 1


def test_a_second_run_requests_three_times_what_the_slowest_training_of_the_model_took(tmp_path):
    for number, (seconds, device) in enumerate([(2.0, "cpu"), (8.0, "cpu"), (500.0, "cuda")]):
        (tmp_path / str(number)).mkdir()
        timing = {"train_seconds": seconds, "models": 2, "passes": 1000, "device": device}
        (tmp_path / str(number) / "timing.json").write_text(json.dumps(timing))
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "timing.json").write_text('{"train_seconds": 900.0, "models": 2, "device": "cpu"}')
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "timing.json").write_text("{")
    assert measured_pass(tmp_path, "cpu") == 0.008
    assert measured_pass(tmp_path, "cuda") == 0.5
    assert measured_pass(tmp_path / "older", "cpu") == 0.0
    # 5 million passes at three times 8 ms.
    assert training_minutes(_settings(), 0.008) == 5 + 2000


def test_memory_grows_with_records_and_models():
    assert memory_mb(0, 0) == 2000
    assert memory_mb(58_000, 5) == 2000 + 2320 + 100
    assert memory_mb(58_000, 100) > memory_mb(58_000, 5) > memory_mb(1_000, 5)


@pytest.mark.parametrize(
    ("line", "built"), [("cuda: Optional[str] = '13.0'", True), ("cuda: Optional[str] = None", False)]
)
def test_a_gpu_counts_only_for_a_pytorch_that_can_use_it(line, built, tmp_path, monkeypatch):
    (tmp_path / "version.py").write_text(f"__all__ = ['cuda']\n__version__ = '2.13.0'\n{line}\nhip = '6.0'\n")
    monkeypatch.setattr(resources, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(resources, "DEVICES", ("/dev/null",))
    assert resources.has_gpu() is built
    monkeypatch.setattr(resources, "DEVICES", ("/dev/there is none",))
    assert not resources.has_gpu()


@pytest.mark.parametrize(("visible", "there"), [("0", True), ("GPU-8932", True), ("", False), ("-1", False)])
def test_a_hidden_gpu_does_not_count(visible, there, monkeypatch):
    monkeypatch.setattr(resources, "DEVICES", ("/dev/null",))
    monkeypatch.setattr(resources, "_built_for_cuda", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert resources.has_gpu() is there


def test_what_the_installed_pytorch_was_built_for_is_read_from_its_files():
    import torch

    assert resources._built_for_cuda() is (torch.version.cuda is not None)
