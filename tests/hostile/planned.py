# ruff: noqa: E501, B023 (a table of inputs, each on its line)
"""Hostile studies of people, releases, plugins, models and trainings: each input by its name, as in `listed`.

``MUST`` end in one sentence, before anything is trained; ``MAY`` be taken as well, but end no other way.
"""

import gzip
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import given
import numpy as np
import pandas as pd
import torch
import yaml
from data_files import image_bytes, write_files
from foreign import doing, graph, spread
from invented import GAUSSIAN, Input, inside, onnx, study_at, trained
from listed import NET, SCORE, npz, parquet

from dp_leakage.common.config import merged
from dp_leakage.models.user_module import module_factory, module_layers
from dp_leakage.study.file import load_studies
from dp_leakage.training.module_probe import check_foreign


# ---------------------------------------------------------------------- people
def people(n: int = 300, each: int = 3) -> pd.DataFrame:
    return given.sound(n).assign(who=[f"p{row // each:03d}" for row in range(n)])


def person(values: object, *arguments: str) -> Input:
    """`new_study` of a table whose column ``who`` says whose each record is."""
    return lambda f: given.table(f, people().assign(who=values), "--person=who", *arguments)


def pattern(text: str, names: Callable[[int], str] = lambda i: f"{'ab'[i % 2]}/{'x' * 30}{i // 3}_{i}.png") -> Input:
    """`new_study` of images with this pattern of a person's name."""

    def run(folder: Path) -> str | None:
        rng = np.random.default_rng(0)
        files = {names(i): image_bytes(rng.integers(0, 255, (4, 4)).astype(np.uint8)) for i in range(240)}
        write_files(folder / "imgs", files)
        return given.data(folder, "imgs", f"--person={text}")

    return run


VISITS = {
    "study": "tiny", "title": "People", "seed": 1, "design": "coins", "repeats": 3, "delta": 1e-4, "epsilon": [5],
    "datasets": {"visits": {"source": {"path": "d.csv", "label": "y", "person": "who"}, "roles": {"pool": 60, "target_nonmembers": 40}}},
    "models": {"mlp": {"architecture": {"name": "mlp", "hidden": [8]}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 10},
    "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp"}],
    "attacks": {"yeom": {}}, "figures": {"fig_pareto": {"kind": "pareto"}},
}  # fmt: skip


def visits(changes: dict, frame: Callable[[], pd.DataFrame] = people) -> Input:
    """A study of people with these changes, planned as `snakemake -n` does it."""
    return lambda folder: planned_visits(folder, merged(VISITS, changes), frame())


def planned_visits(folder: Path, spec: object, frame: pd.DataFrame | None = None) -> str | None:
    """A study file of this content, with a table of people beside it."""
    (people() if frame is None else frame).to_csv(folder / "d.csv", index=False)
    (folder / "tiny.yaml").write_text(yaml.safe_dump(spec, allow_unicode=True), errors="surrogatepass")
    files = [Path("tiny.yaml")]
    return inside(folder, lambda: given.planned(load_studies(given.CONFIG, files)))


def sized(**roles: int) -> Input:
    return visits({"datasets": {"visits": {"roles": roles}}})


def protected(**entry: object) -> Input:
    return visits({"defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp"} | entry]})


# ---------------------------------------------------------------------- releases
def released(**release: object) -> Input:
    """`TINY` with a release that chooses."""
    tiny = given.TINY | {
        "defenses": [{"defense": "none"}, GAUSSIAN],
        "release": {"cell": "mlp/gaussian-rdp-eps=1"} | release,
    }
    return lambda f: given.study(f, yaml.safe_dump(tiny))


def choosing(mean: object = 2, **choose: object) -> Input:
    return released(choose=choose, mean=mean)


# ---------------------------------------------------------------------- files of the user's
def linked(name: str, target: str) -> Input:
    """A study of data behind a link."""
    return lambda f: (
        (f / name).symlink_to(target),
        given.study(f, {"datasets": {"digits": {"source": {"path": str(f / name), "label": "y"}}}}),
    )[-1]


def records(frame: pd.DataFrame, **roles: int) -> Input:
    """A study of a table with roles that it may not fill."""

    def run(folder: Path) -> str | None:
        frame.to_csv(folder / "d.csv", index=False)
        own = {"source": {"path": str(folder / "d.csv"), "label": "y"}, "roles": roles, "projection": None}
        return given.study(folder, {"datasets": {"digits": own}})

    return run


def drawn(kind: str, select: dict | None = None, **changes: object) -> Input:
    """`TINY` with one figure of a kind."""
    figure = {"kind": kind} | ({"select": select} if select else {})
    return lambda f: given.whole_study(f, figures={"fig": figure}, **changes)


def counted(source: dict, write: Callable[[Path], object] = lambda folder: None, **roles: int) -> Input:
    """A study of a source, planned in the folder where ``write`` puts its files."""
    own = {"source": source, "roles": {"target_members": 100, "target_nonmembers": 100, "shadow_pool": 150} | roles}
    spec = {**given.TINY, "datasets": {"digits": own}}

    def run(folder: Path) -> str | None:
        write(folder)
        (folder / "tiny.yaml").write_text(yaml.safe_dump(spec))
        files = [Path("tiny.yaml")]
        return inside(folder, lambda: given.planned(load_studies(given.CONFIG, files)))

    return run


def written(name: str, content: bytes | None = None, **arrays: np.ndarray) -> Callable[[Path], object]:
    """Writes a file of these bytes, or of these arrays."""
    return lambda f: np.savez(f / name, **arrays) if content is None else (f / name).write_bytes(content)


def many_images(folder: Path) -> None:
    write_files(
        folder / "imgs",
        {f"{'ab'[i % 2]}/p{i // 4}_{i}.png": image_bytes(np.full((4, 4), i, np.uint8)) for i in range(200)},
    )


def taken(make: Callable[[Path], object]) -> Input:
    """`new_study` where something lies at the path of the study that it writes; that stays as it is."""

    def run(folder: Path) -> str | None:
        (folder / "studies").mkdir()
        file = folder / "studies" / "mine.yaml"
        make(file)
        return given.table(folder, given.sound())

    return run


def verdict(make: Callable[[Path], object], name: str = "v") -> Input:
    return lambda f: (make(f / "v"), trained(f, f"--verdict={name}"))[-1]


def probe(forward: str, init: str = "pass", before: str = "") -> Input:
    """A module of this forward pass, tried as before a private training."""

    def run(folder: Path) -> str | None:
        (folder / "brk5.py").write_text(
            f"import torch\n{before}\n{NET[13:]}        self.out = torch.nn.Linear(8, 10)\n        {init}\n    def forward(self, x):\n        h = self.out(x)\n        {forward}\n"
        )
        path = list(sys.path)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        try:
            return given.said(
                lambda: check_foreign(module_layers(module_factory("brk5:Net", (8,), 10), (8,), 10), 4, torch.float32)
            )
        finally:
            sys.path[:] = path
            sys.modules.pop("brk5", None)

    return run


CSV = given.sound().to_csv(index=False).encode()
TABLE = {"path": "d.csv", "label": "y"}
AUDIT = {
    "designs": {"a": {"design": "one_run", "models": 1, "canaries": 50, "canary": "mislabeled", "beyond_reach": "mark"}}
}
# Writes into the pipe by which its results come back.
SHOUTS = """exec("import sys\nf = sys._getframe()\nwhile 'pipe' not in f.f_locals: f = f.f_back\nos.write(f.f_locals['pipe'], b'X' * 100)")"""
MUST: dict[str, Input] = {
    # ------------------------------------------------------------------ who is a person
    "PERSON=/images catast 30 a's": pattern("((x+)+)+$"),
    "PERSON=/images deep nest": pattern("(" * 3000 + "a" + ")" * 3000),
    "PERSON=/images repeat huge": pattern("(x{99999999999999999999})"),
    **{f"PERSON=/missing {text}": person([text, *people().who[1:]]) for text in ("NA", "?", "null", "None", "n/a", "", "NaN", " NA ")},
    "PERSON=/missing nan impute": person([None, *people().who[1:]], "--missing=impute"),
    "PERSON=/parquet map": lambda f: parquet(f, "--person=who", who=[{"a": 1}] * 300),
    "PERSON=/parquet dates": lambda f: parquet(f, "--person=who", who=pd.date_range("2020-01-01", periods=300)),
    "PERSON=/parquet lists": lambda f: parquet(f, "--person=who", who=[[1, 2]] * 300),
    "PERSON=/one of all": person("p"),
    "PERSON=/nowhere": lambda f: given.table(f, people(), "--person=whom"),
    "PERSON=/infinite": person([float("inf"), *people().who[1:]][:1] + [None] * 299),
    "PERSON=/blanks": person(["   ", *people().who[1:]]),
    "PERSON=/a pattern of a table": lambda f: given.table(f, people(), "--person=(who)"),
    "PERSON=/a column of images": pattern("who"),
    "PERSON=/two groups": pattern("([^/]+)/([^_]+)_"),
    "PERSON=/no image": pattern("(zzz)"),
    "PERSON=/open": pattern("([^/]+"),
    "PERSON=/backtracking": pattern("^(([a-z/])+.)+[A-Z]([a-z])+$"),
    "PERSON=/all one": pattern("(x)"),
    "PERSON=/the label": lambda f: given.table(f, people(), "--person=y"),
    # ------------------------------------------------------------------ studies of people
    "persons study/a pool larger than its persons": sized(pool=90, target_nonmembers=40),
    "persons study/others than there are": sized(pool=60, target_nonmembers=41),
    "persons study/chosen without most": protected(chosen="first"),
    "persons study/person accountant=naive": protected(accountant="naive"),
    "persons study/person sampler=wor": protected(sampler="wor"),
    "persons study/persons_table, no persons": drawn("persons_table"),
    "persons study/no such column": visits({"datasets": {"visits": {"source": {"person": "whom"}}}}),
    "persons study/unknown people": visits({}, lambda: people().assign(who=["NA", *people().who[1:]])),
    # ------------------------------------------------------------------ figures of nothing
    "figure/bounds of no audit": drawn("claimed_measured"),
    "figure/bounds of audits that are not drawn": drawn("proved", {"defense": ["none"]}, audit=AUDIT),
    "figure/spent epsilon of none": drawn("spent_epsilon", {"defense": ["none"]}),
    # ------------------------------------------------------------------ sizes of roles
    "roles/more records than there are": records(given.sound(), target_members=200, target_nonmembers=200, shadow_pool=200),
    "roles/one record too many": records(given.sound(), target_members=100, target_nonmembers=100, shadow_pool=101),
    # ------------------------------------------------------------------ releases
    "release YAML/choose: choose batch": choosing(batch_size=[10, 20]),
    "release YAML/choose: choose hidden int": choosing(hidden=[8, 16]),
    "release YAML/choose: choose lr neg": choosing(learning_rate=[-0.1, 0.1]),
    "release YAML/choose: choose momentum adam": choosing(momentum=[0.5, 0.9]),
    "release YAML/choose: dup values": choosing(learning_rate=[0.1, 0.1]),
    "release YAML/choose: mean alone": released(mean=3),
    "release YAML/choose: 1e30": choosing(learning_rate=[1e30]),
    "release YAML/choose: a text": choosing(learning_rate=["a"]),
    "release YAML/choose: mean 1e6": choosing(mean=1e6, learning_rate=[0.1, 0.01]),
    "release YAML/choose: no such key": choosing(colour=[1]),
    "release YAML/choose: epochs": choosing(epochs=[1, 2]),
    "release YAML/a day of no month": released(expires="2030-02-31"),
    "release YAML/score_noise alone": released(score_noise=5.0),
    "release YAML/runs alone": released(runs="geometric"),
    "release YAML/mean of half": choosing(mean=0.5, learning_rate=[0.1, 0.01]),
    "release YAML/choose: a mapping": choosing(learning_rate={"a": 1}),
    "release YAML/choose: not a number": choosing(learning_rate=[float("nan")]),
    "release YAML/choose: momentum 1": released(choose={"optimizer": ["sgd"], "momentum": [1.0]}, mean=2),
    "release YAML/choose: hidden 1e9": choosing(hidden=[[10**9]]),
    "release YAML/choose: name": choosing(name=["cnn"]),
    "release YAML/choose: empty": choosing(learning_rate=[]),
    "release YAML/choose: hidden [[0]]": choosing(hidden=[[0]]),
    **{f"YAML/figure name {name}": (lambda name: lambda f: given.whole_study(f, figures={name: {"kind": "accuracy_loss"}}))(name)
       for name in ("release", "report", "verify", "audit")},
    "YAML/study dev zero link": study_at(lambda file: file.symlink_to("/dev/zero")),
    "YAML/data dev zero link": linked("d.csv", "/dev/zero"),
    "YAML/data random link": linked("d.npz", "/dev/urandom"),
    "YAML/data of images zero link": linked("imgs", "/dev/zero"),
    # ------------------------------------------------------------------ models
    "audit-model/expand 40 GB": lambda f: onnx(f, graph=lambda: spread(100_000, 100_000)),
    "audit-model/graph batch mean": graph(lambda h: [h.make_node("ReduceMean", ["x"], ["m"], axes=[0]), h.make_node("Sub", ["x", "m"], ["z"])]),
    # ------------------------------------------------------------------ training functions
    "audit-training/ARG --verdict .": lambda f: trained(f, "--verdict=."),
    "audit-training/ARG --verdict ..": lambda f: trained(f, "--verdict=.."),
    "audit-training/ARG --verdict /": lambda f: trained(f, "--verdict=/"),
    "audit-training/CUDA env": doing("import torch; torch.zeros(1, device='cuda')"),
    "audit-training/StopIteration": doing("raise StopIteration"),
    "audit-training/deletes own file": doing("os.remove(__file__); raise ValueError('q')"),
    "audit-training/writes junk to all fds": doing(SHOUTS),
    # ------------------------------------------------------------------ plugins
    "plugin attack/os._exit 0": lambda f: given.plugin(f, "import os\n" + SCORE % ("", "os._exit(0)"), use=given.scored),
    # ------------------------------------------------------------------ modules
    "plugin torch module/complex params": lambda f: given.module(f, NET + "        self.out = torch.nn.Linear(8, 10)\n        self.c = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))\n    def forward(self, x):\n        return self.out(x) + self.c.real.sum()\n"),
    **{f"probe/{name}": probe(*how) for name, how in {
        "sorted over the batch": ("return h.sort(0)[0]",),
        "summed along the batch": ("return h.cumsum(0)",),
        "the largest of the batch": ("return h - h.max(0).values",),
        "a product of all": ("return h * h.prod()",),
        "in train mode alone": ("return h - h.mean(0) if self.training else h",),
        "of four or more": ("return h - h.mean(0) if len(h) > 3 else h",),
        "of large numbers": ("return h - h.mean(0) if x.abs().max() > 3.3e38 else h",),
        "where zeros are": ("return h - h.mean(0) if (x == 0).any() else h",),
        "a list": ("self.seen.append(float(x.sum())); return h", "self.seen = []"),
        "a dict": ("self.seen[len(self.seen)] = 1; return h", "self.seen = {}"),
        "a deque": ("self.seen.append(float(x.sum())); return h", "from collections import deque; self.seen = deque(maxlen=3)"),
        "an object": ("self.box.value = float(x.sum()); return h", "self.box = type('Box', (), {})()"),
        "a counter": ("self.count += 1; return h", "self.count = 0"),
        "a global counter": ("CALLS.append(1); return h - h.mean(0) if len(CALLS) > 9 else h", "pass", "CALLS = []"),
        "a buffer": ("self.b.add_(1); return h", "self.register_buffer('b', torch.zeros(1))"),
        "a weight": ("self.out.weight.data.mul_(0.9); return h",),
        "draws of NumPy": ("return h + float(numpy.random.rand())", "pass", "import numpy"),
        "draws of Python": ("return h + random.random()", "pass", "import random"),
        "the time": ("return h + time.perf_counter()", "pass", "import time"),
        "fewer rows": ("return h[:1]",),
        "other columns": ("return h[:, :3]",),
        "no tensor": ("return h.tolist()",),
    }.items()},
    # ------------------------------------------------------------------ records and people that a plan counts
    "counted/digits": counted({"source": "digits"}, target_members=1600),
    "counted/tumors": counted({"source": "breast_cancer"}, target_members=400),
    "counted/tsv.gz": counted({"path": "d.tsv.gz", "label": "y"}, written("d.tsv.gz", gzip.compress(CSV.replace(b",", b"\t")))),
    "counted/parquet": counted({"path": "d.parquet", "label": "y"}, lambda f: given.sound().to_parquet(f / "d.parquet")),
    "counted/npz": counted({"path": "d.npz"}, written("d.npz", x=np.zeros((300, 2)), y=np.arange(300) % 2)),
    "counted/npz in two parts": counted({"path": "d.npz"}, written("d.npz", x_train=np.zeros((200, 2)), y_train=np.arange(200) % 2, x_test=np.zeros((100, 2)), y_test=np.arange(100) % 2)),
    "counted/npz without labels": counted({"path": "d.npz"}, written("d.npz", x=np.zeros((300, 2)))),
    "counted/npz of a number": counted({"path": "d.npz"}, written("d.npz", x=np.zeros((300, 2)), y=np.array(1))),
    "counted/npz of objects": counted({"path": "d.npz"}, written("d.npz", x=np.zeros((300, 2)), y=np.array([{}] * 300, object))),
    "counted/npz cut": counted({"path": "d.npz"}, written("d.npz", b"PK\x03\x04" + b"\0" * 50)),
    "counted/images": counted({"path": "imgs"}, many_images),
    "counted/people by their names": counted({"path": "imgs", "person": "([^/_]+)_"}, many_images, shadow_pool=1),
    "counted/csv empty": counted(TABLE, written("d.csv", b"")),
    "counted/csv without records": counted(TABLE, written("d.csv", b"a,b,y\n")),
    "counted/csv in UTF-16": counted(TABLE, written("d.csv", CSV.decode().encode("utf-16"))),
    "counted/csv with another label": counted(TABLE | {"label": "z"}, written("d.csv", CSV)),
    "counted/csv with a surplus": counted(TABLE, written("d.csv", CSV + b"1,2,3,4,5\n")),
    "counted/csv that is a folder": counted(TABLE, lambda f: (f / "d.csv").mkdir()),
    "counted/csv that is a pipe": counted(TABLE, lambda f: os.mkfifo(f / "d.csv")),
    "counted/no file": counted(TABLE),
    "counted/no list of members": counted(TABLE | {"members": "nowhere.txt"}, written("d.csv", CSV)),
    # ------------------------------------------------------------------ paths that something else has
    "path/study that is there": taken(lambda file: file.write_text("mine: 1\n")),
    "path/study that is a folder": taken(Path.mkdir),
    "path/study that is a link": taken(lambda file: file.symlink_to("/etc/hostname")),
    "path/study that is a dangling link": taken(lambda file: file.symlink_to("nowhere")),
    "path/study that is a pipe": taken(os.mkfifo),
    "path/verdict that is a link": verdict(lambda file: file.symlink_to("/etc/hostname")),
    "path/verdict that is a dangling link": verdict(lambda file: file.symlink_to("nowhere")),
    "path/verdict that is a pipe": verdict(os.mkfifo),
    "path/verdict that is a device": verdict(lambda file: None, "/dev/full"),
    "path/verdict in no folder": verdict(lambda file: None, "no/v"),
    "path/verdict of a null": verdict(lambda file: None, "a\0b"),
    "path/verdict of 5,000 letters": verdict(lambda file: None, "v" * 5000),
    # ------------------------------------------------------------------ arrays
    "npz/0-d y": lambda f: npz(f, x=np.random.rand(300, 2), y=np.array(1)),
    "npz/0-d x": lambda f: npz(f, x=np.array(1.0), y=np.arange(300) % 2),
}  # fmt: skip
MAY: dict[str, Input] = {
    "PERSON=/whole numbers": person([row // 3 for row in range(300)]),
    "PERSON=/in upper case": person([("P" if row % 2 else "p") + str(row // 6) for row in range(300)]),
    "persons study/as it is": visits({}),
    "persons study/all of them": sized(pool=60, target_nonmembers=40),
    "persons study/three records each": protected(most=3, chosen="first"),
    "roles/all records": records(given.sound(), target_members=75, target_nonmembers=75, shadow_pool=150),
    "figure/bounds of audits": drawn(
        "proved", audit=AUDIT, defenses=[{"defense": "none"}, GAUSSIAN | {"audits": ["a"]}]
    ),
    "figure/spent epsilon": drawn("spent_epsilon"),
    "release YAML/choose: sound": choosing(learning_rate=[0.1, 0.01]),
}
