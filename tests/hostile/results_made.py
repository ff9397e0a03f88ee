"""A cell's files, written as the steps write them, and every way in which somebody may have changed them."""

import importlib
import os
import sys
import zipfile
from pathlib import Path

import given
import numpy as np

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.provenance import files
from dp_leakage.provenance.files import write_arrays, write_table, write_tensors
from dp_leakage.results import read_cell

N, R, C = 40, 2, 3
RNG = np.random.default_rng(0)
MADE = {
    "identity": "0123456789abcdef",
    "settings": {
        "engine": "ensemble",
        "architecture": {"name": "softmax_regression"},
        "dropout": 0.0,
        "mechanism": {"sampler": "poisson", "unit": "example", "bound": "clip", "clip_norm": 1.0, "noise": "gaussian"},
        "training": {"epochs": 1},
        "dataset": "d",
        "model": "m",
        "defense": "none",
        "seed": 77,
    },
    "training": Training(Mechanism("poisson", noise_multiplier=1.0), 1, 10, N // 2).settings,
}
INSIDE = np.arange(N) < N // 2
DATA = {
    "x": RNG.normal(size=(N, 4)).astype(np.float32),
    "y": np.arange(N) % C,
    "sensitive": np.array([], np.int64),
    "target_members": np.arange(N // 2),
    "target_nonmembers": np.arange(N // 2, N),
}
SIGNALS = {
    "record": np.arange(N),
    "y": DATA["y"],
    "role": np.where(INSIDE, "target_members", "target_nonmembers"),
    "trained_on": np.tile(INSIDE, (R, 1)),
    "margin": RNG.normal(size=(1, R, N)),
    "correct": np.ones((R, N), bool),
    "rank": np.ones((R, N), np.int32),
}
SCORED = {"record": np.arange(N), "probability": np.full((R, N, C), 1 / C, np.float32)}
WEIGHTS = {
    "0.weight": RNG.normal(size=(R, C, 4)).astype(np.float32),
    "0.bias": np.zeros((R, C), np.float32),
    "train_indices": np.tile(np.arange(N // 2), (R, 1)),
}
SCORES = {
    "repeat": np.repeat(np.arange(R), N),
    "record": np.tile(np.arange(N), R),
    "member": np.tile(INSIDE, R),
    "score": RNG.normal(size=R * N),
    "flagged": np.tile(INSIDE, R),
}
WRITERS = {
    "data": ("../../data.npz", DATA, write_arrays),
    "signals": ("signals.npz", SIGNALS, write_arrays),
    "class_scores": ("class_scores.npz", SCORED, write_arrays),
    "models": ("target.safetensors", WEIGHTS, write_tensors),
    "scores": ("attack/yeom.parquet", SCORES, write_table),
}


def changed(arrays: dict, changes: dict) -> dict:
    """A copy with other arrays; None takes one away."""
    return {name: array for name, array in (arrays | changes).items() if array is not None}


def without(tree: dict, *keys: str) -> dict:
    """A copy of nested mappings without the value at these keys."""
    first, *rest = keys
    return {k: without(v, *rest) if k == first else v for k, v in tree.items() if k != first or rest}


def cell(folder: Path, made: object = MADE, **changes: dict) -> Path:
    """A cell's folder; of each file, other arrays."""
    place = folder / "results" / "d" / "m" / "none"
    for name, (path, arrays, write) in WRITERS.items():
        write((place / path).resolve(), changed(arrays, changes.get(name, {})), made)
    return place


def everything(place: Path, factory=None) -> None:
    """Reads all that a cell has."""
    found = read_cell(place, factory)
    assert found.scored.size == found.signals.size == R
    found.models.logits(__import__("torch").from_numpy(found.data.x))
    assert set(found.scores) == {"yeom"}


def said(place: Path, factory=None) -> str | None:
    """What reading a cell complains of."""
    return given.said(lambda: everything(place, factory))


def of(name: str, **changes: object):
    """A cell one of whose files has other arrays."""
    return lambda folder: said(cell(folder, **{name: changes}))


def told(*path: str, value: object = None):
    """A cell whose files are said to be made otherwise: without this key, or with another value."""

    def tell(tree: dict, keys: tuple[str, ...]) -> dict:
        return tree | {keys[0]: value if len(keys) == 1 else tell(tree[keys[0]], keys[1:])}

    return lambda folder: said(cell(folder, without(MADE, *path) if value is None else tell(MADE, path)))


def instead(name: str, put):
    """A cell in which something else stands in place of one file."""

    def run(folder: Path) -> str | None:
        path = (cell(folder) / WRITERS[name][0]).resolve()
        path.unlink()
        put(path)
        return said(folder / "results" / "d" / "m" / "none")

    return run


def packed(path: Path) -> None:
    """Three gigabytes of zeros in a few megabytes, with a checksum."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in SIGNALS.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, array)
        with archive.open("zzz.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (3 * 2**28,)})
            for _ in range(3 * 2**8):
                file.write(bytes(2**20))
        archive.comment = files.BLANK_CHECKSUM.encode()
    files._write_checksum(path)


def declaring(descr: str, shape: tuple) -> object:
    """An array whose header declares a shape, without its bytes; with a checksum."""

    def put(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            with archive.open("margin.npy", "w") as file:
                np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
                file.write(bytes(64))
            archive.comment = files.BLANK_CHECKSUM.encode()
        files._write_checksum(path)

    return put


def many_rows(path: Path) -> None:
    """A table of a thousand million empty rows in a few kilobytes, with a checksum."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pa.table({"repeat": pa.nulls(2**20, pa.int64())})  # quick to write, unlike a thousand million zeros
    with pq.ParquetWriter(
        path, part.schema.with_metadata({"provenance": "{}", "digest": files.BLANK_CHECKSUM})
    ) as file:
        for _ in range(1000):
            file.write_table(part, row_group_size=2**20)
    files._write_checksum(path)


def pwn(folder: Path) -> str | None:
    """A file that names a class, and a module of that name in the working folder."""
    (folder / "pwn.py").write_text(
        f"open({str(folder / 'ran')!r}, 'w')\nimport torch\nclass Net(torch.nn.Linear):\n"
        "    def __init__(self):\n        super().__init__(4, 3)\n"
    )
    settings = MADE["settings"] | {"architecture": {"name": "pwn:Net"}}
    place, before = cell(folder, MADE | {"settings": settings}), os.getcwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))  # as `python` has it that is started there
    importlib.invalidate_caches()
    try:
        return said(place)
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        sys.modules.pop("pwn", None)
        assert not (folder / "ran").exists(), "the file's code was run"


LISTED = {
    "results/pwn": pwn,
    "results/missing_key": of("signals", margin=None),
    "results/extra_key": of("signals", zzz=np.arange(N)),
    "results/self": of("signals", self=np.arange(N)),
    "results/margin_2d": of("signals", margin=SIGNALS["margin"][0]),
    "results/margin_nan": of("signals", margin=np.full((1, R, N), np.nan)),
    "results/trained_int": of("signals", trained_on=np.full((R, N), 7)),
    "results/role_int": of("signals", role=np.arange(N)),
    "results/record_neg": of("signals", record=np.arange(N) - 5),
    "results/bomb_3GB": instead("signals", packed),
    "results/prov_list": lambda folder: said(cell(folder, [1, 2])),
    "results/st_no_settings": told("settings"),
    "results/st_tensors_missing": of("models", **{"0.weight": None}),
    "results/st_engine_missing_mech": told("settings", "mechanism"),
    "results/fifo": instead("signals", os.mkfifo),
}
MORE = {
    "signals": {
        "record_twice": {"record": np.zeros(N, np.int64)},
        "record_beyond": {"record": np.arange(N) + 10**9},
        "record_float": {"record": np.arange(N) / 1.0},
        "y_neg": {"y": DATA["y"] - 1},
        "y_other": {"y": (DATA["y"] + 1) % C},
        "role_unknown": {"role": np.full(N, "zzz")},
        "rank_0": {"rank": np.zeros((R, N), np.int32)},
        "rank_64": {"rank": np.ones((R, N), np.int64)},
        "correct_int": {"correct": np.ones((R, N), np.int64)},
        "margin_inf": {"margin": np.full((1, R, N), -np.inf)},
        "margin_complex": {"margin": np.zeros((1, R, N), complex)},
        "queries_0": {"margin": np.zeros((0, R, N))},
        "models_differ": {"margin": np.zeros((1, R + 1, N))},
        "records_differ": {"y": np.zeros(N - 1, np.int64)},
        "void": {"margin": np.zeros((1, R, N), "V8")},
        "bytes": {"role": np.full(N, b"pool")},
        "dates": {"y": np.zeros(N, "M8[s]")},
        "scalar": {"record": np.array(3)},
    },
    "class_scores": {
        "above_1": {"probability": SCORED["probability"] * 4},
        "sum": {"probability": SCORED["probability"] / 2},
        "nan": {"probability": np.full((R, N, C), np.nan, np.float32)},
        "few_classes": {"probability": np.ones((R, N, 1), np.float32)},
        "models_differ": {"probability": np.full((R + 1, N, C), 1 / C, np.float32)},
        "records_unknown": {"record": np.arange(N) + 1},
        "float64": {"probability": SCORED["probability"].astype(float)},
    },
    "data": {
        "x_nan": {"x": np.full((N, 4), np.nan, np.float32)},
        "x_1d": {"x": np.zeros(N, np.float32)},
        "x_empty": {"x": np.zeros((N, 0), np.float32)},
        "y_huge": {"y": DATA["y"] + 2**40},
        "y_scalar": {"y": np.array(3)},
        "no_y": {"y": None},
        "no_x": {"x": None},
        "role_beyond": {"target_members": np.arange(N // 2) + N},
        "roles_overlap": {"target_members": np.arange(N)},
        "role_missing": {"target_nonmembers": None},
        "role_unknown": {"zzz": np.arange(3)},
        "sensitive_beyond": {"sensitive": np.array([99])},
        "sensitive_missing": {"sensitive": None},
    },
    "models": {
        "nan": {"0.weight": np.full((R, C, 4), np.nan, np.float32)},
        "shape": {"0.weight": np.zeros((R, C, 5), np.float32)},
        "count": {"0.bias": np.zeros((R + 1, C), np.float32)},
        "extra": {"1.weight": np.zeros((R, 3), np.float32)},
        "no_members": {"train_indices": None},
        "members_beyond": {"train_indices": np.full((R, 3), N)},
        "members_float": {"train_indices": np.zeros((R, 3))},
        "integers": {"0.weight": np.zeros((R, C, 4), np.int64)},
        "doubles": {"0.weight": np.zeros((R, C, 4))},
    },
    "scores": {
        "nan": {"score": np.full(R * N, np.nan)},
        "text": {"score": np.full(R * N, "x")},
        "repeat_beyond": {"repeat": np.full(R * N, 9)},
        "record_unknown": {"record": np.full(R * N, -1)},
        "member_int": {"member": np.full(R * N, 7)},
        "no_repeat": {"repeat": None},
        "no_rows": {name: values[:0] for name, values in SCORES.items()},
    },
}
ALL = LISTED | {
    **{f"results/{name}_{key}": of(name, **changes) for name, each in MORE.items() for key, changes in each.items()},
    **{f"results/{name}_fifo": instead(name, os.mkfifo) for name in WRITERS},
    **{f"results/{name}_folder": instead(name, Path.mkdir) for name in WRITERS},
    **{f"results/{name}_device": instead(name, lambda path: path.symlink_to("/dev/zero")) for name in WRITERS},
    **{f"results/{name}_empty": instead(name, Path.touch) for name in WRITERS},
    "results/sparse": instead("models", lambda path: (path.touch(), os.truncate(path, 2**42))),
    "results/rows": instead("scores", many_rows),
    "results/declares_10TB": instead("signals", declaring("<f8", (10**12, 1))),
    "results/declares_nothing": instead("signals", declaring("<U0", (10**12,))),
    "results/declares_objects": instead("signals", declaring("|O", (8,))),
    "results/prov_text": lambda folder: said(cell(folder, "x")),
    "results/prov_settings_list": lambda folder: said(cell(folder, MADE | {"settings": []})),
    "results/engine_unknown": told("settings", "engine", value="pickle"),
    "results/engine_list": told("settings", "engine", value=["ensemble"]),
    "results/engine_answers": told("settings", "engine", value="onnx"),
    "results/architecture_text": told("settings", "architecture", value="os:system"),
    "results/architecture_unknown": told("settings", "architecture", value={"name": "pwn:Net"}),
    "results/architecture_other": told("settings", "architecture", value={"name": "mlp", "hidden": [10**12]}),
    "results/architecture_deep": told("settings", "architecture", value={"name": "mlp", "hidden": [3] * 10**5}),
    "results/activation": told("settings", "architecture", value={"name": "mlp", "activation": {"name": "pwn"}}),
    "results/dropout": told("settings", "dropout", value="x"),
    "results/mechanism_list": told("settings", "mechanism", value=[]),
    "results/noise_module": told("training", "mechanism", "noise", value="pwn"),
    "results/bound_module": told("training", "mechanism", "bound", value="os"),
    "results/sampler": told("training", "mechanism", "sampler", value="zzz"),
    "results/clip_norm": told("training", "mechanism", "clip_norm", value=float("nan")),
    "results/sigma": told("training", "mechanism", "noise_multiplier", value="x"),
}  # fmt: skip
