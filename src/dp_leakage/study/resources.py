"""Memory and time that a job requests from a cluster, from the size of its cell.

The limits are generous, since a job over its limit is killed. A second attempt requests twice as much, and a second run
three times what the trainings of the first took. The limits do not change results, so they are not part of a step's
settings. `benchmarks/requests.py` prints them beside what was needed.
"""

import json
import os
import re
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any

from dp_leakage.engines import TRAINERS
from dp_leakage.models.architectures import is_import_path

Json = dict[str, Any]

DEVICES = ("/dev/nvidiactl", "/dev/dxg")  # of NVIDIA's driver, on Linux and under Windows
START = 5  # minutes of a training, for its submission: processes, imports and reading over a network
GENEROUS = 3  # times the measured seconds of a pass
# Seconds of a pass, of one record through one model, on one core. Measured: 2e-5 for a 256-256 MLP with clipping.
SECONDS = {"ensemble": 2e-4, "opacus": 1e-3, "estimator": 1e-3}
PUBLIC = 50_000  # records, as CIFAR's, from which features are learned
FOREIGN = 25  # how many times as long a module of the user's takes
BASE_MB = 2000  # Python, PyTorch and what they allocate before any data
MB_PER_RECORD = 0.04  # three copies of 3,072 float32 features
MB_PER_MODEL = 20  # parameters, gradient and two Adam slots of 1.2 million weights


def training_minutes(settings: Json, measured: float = 0.0) -> int:
    """Return the time limit of step ``train`` in minutes.

    Args:
        settings: the step's own.
        measured: seconds of a pass in an earlier run (`measured_pass`); 0 if there was none.
    """
    passes = settings["training"].get("epochs", 1) * settings["subset"]["size"] * settings["repeats"]
    foreign = settings["engine"] in TRAINERS and is_import_path(settings["architecture"]["name"])
    seconds = GENEROUS * measured or SECONDS.get(settings["engine"], 0.0) * (FOREIGN if foreign else 1)
    return START + ceil(passes * seconds / 60)


def measured_pass(folder: Path, device: str) -> float:
    """Return the most seconds that a pass took in trainings of a model, as their ``timing.json`` says; 0 if none does.

    Args:
        folder: of the model; its subfolders hold cells. A few of them suffice.
        device: ``cpu`` or ``cuda``.
    """
    found = [0.0]
    for path in islice(folder.glob("*/timing.json"), 20):
        with suppress(OSError, ValueError, KeyError, TypeError):
            timing = json.loads(path.read_bytes())
            if timing["device"] == device:
                found.append(timing["train_seconds"] / timing["passes"])
    return max(found)


def public_minutes(epochs: int) -> int:
    """Return the time limit for learning features, in minutes; the number of records is unknown during planning."""
    return START + ceil(epochs * PUBLIC * SECONDS["ensemble"] * FOREIGN / 60)


def attack_minutes(records: int, models: int, attacks: int = 1, steps: int = 0) -> int:
    """Return the time limit of attacks in minutes: 10 ms for each pair of record and model, and for each step of each
    reconstructed image.
    """
    return 1 + ceil(attacks * (records + steps) * models * 0.01 / 60)


def drawing_minutes(cells: int) -> int:
    """Return the time limit, in minutes, of what is drawn or written about so many cells."""
    return 1 + ceil(cells / 200)


def memory_mb(records: int, models: int) -> int:
    """Return the memory in MB of a job that holds a data set of ``records`` and ``models`` trained side by side."""
    return ceil(BASE_MB + MB_PER_RECORD * records + MB_PER_MODEL * models)


def has_gpu() -> bool:
    """Return whether this machine has a CUDA device that PyTorch can use, without importing PyTorch.

    ``CUDA_VISIBLE_DEVICES`` hides all devices if it is empty or begins with -1.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() in ("", "-1"):
        return False
    return any(Path(device).exists() for device in DEVICES) and _built_for_cuda()


def _built_for_cuda() -> bool:
    """Return whether the installed PyTorch was built for CUDA, by its file ``version.py``."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return False
    version = Path(found.origin).with_name("version.py")
    return version.exists() and bool(re.search(r"^cuda\b.*= *['\"]", version.read_text(encoding="utf-8"), re.MULTILINE))
