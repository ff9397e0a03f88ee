# ruff: noqa: E501 (tables of input)
"""Five hundred generated inputs about people, releases, modules and verify: each is taken or ends in one sentence, and soon.

The seeds are fixed. Each surface has a hundred inputs of its own.
"""

import json
import random
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

HOSTILE = Path(__file__).parent
sys.path[:0] = [str(HOSTILE), str(HOSTILE.parent / "data"), str(HOSTILE.parent / "release")]
import given  # noqa: E402
import planned  # noqa: E402
from data_files import image_bytes, write_files  # noqa: E402
from releasing import DP, NOT_MEASURED, released_plan  # noqa: E402
from test_generated import TEXTS, VALUES, judged, paths, replaced  # noqa: E402
from test_generated_foreign import folders  # noqa: E402

from dp_leakage.commands.verify import main as verify  # noqa: E402
from dp_leakage.common.config import merged  # noqa: E402
from dp_leakage.models.user_module import module_factory, module_layers  # noqa: E402
from dp_leakage.release.folder import HASHES, PRIVACY, as_json  # noqa: E402
from dp_leakage.release.make import release as made  # noqa: E402
from dp_leakage.training.module_probe import check_foreign  # noqa: E402

pytestmark = pytest.mark.fuzz
PEOPLE, RELEASES, STUDIES, MODULES, VERIFIED = 100, 100, 100, 100, 100
PATTERNS = ["(", ")", "[", "]", "+", "*", "?", "{9}", "{,}", "|", "\\", ".", "^", "$", "(?:", "(?P<a>", "(?P=a)", "(?=", "a", "x", "[^/]", "_", "[0-9]", "(x+)", "\\1", "😀", "\n", "{99999999}"]  # fmt: skip
# What a forward pass does with the features h of a batch x, and what it keeps.
PASSES = [
    "h", "h.mean(0, keepdim=True) + h", "h - h.mean(0)", "h[:1]", "h.T", "h.double()", "h.half()", "h.detach()", "h * float('nan')", "h / 0", "torch.randn_like(h)", "h + torch.rand(1)", "h.sort(0)[0]",
    "torch.cat([h, h])", "h[torch.randperm(len(h))]", "None", "5", "[h]", "h.numpy()", "1 / 0", "exit(0)", "h * len(h)", "h.cumsum(0)", "self.out(x).relu()", "h * 1e30", "h.to(torch.complex64)", "h.sum()",
    "torch.dropout(h, 0.5, self.training)", "h if len(h) < 3 else h - h.mean(0)", "h if (x.abs() < 1e30).all() else h - h.mean(0)", "h.to_sparse()", "h.clone().requires_grad_(False)", "next(iter([]))",
]  # fmt: skip
KEPT = [
    "", "self.seen = x", "self.count = getattr(self, 'count', 0) + 1", "self.__dict__.setdefault('all', []).append(x.sum())", "self.out.weight.data.mul_(0.5)", "self.register_buffer('b', x[:1])", "torch.manual_seed(0)",
    "torch.use_deterministic_algorithms(False)", "globals()['SEEN'] = globals().get('SEEN', 0) + 1", "import os; os.chdir('/')", "self.out = torch.nn.Linear(8, 10)", "del self.out", "self.train()", "torch.set_grad_enabled(True)",
]  # fmt: skip
MADE = ["", "self.p = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))", "self.p = torch.nn.Parameter(torch.zeros(0))", "self.p = torch.nn.Parameter(torch.zeros(2), requires_grad=False)", "self.n = torch.nn.BatchNorm1d(8)", "self.out.weight.requires_grad = False", "self.p = 5", "self.half()", "raise KeyError", "self.register_forward_hook(lambda m, i, o: o - o.mean(0))"]  # fmt: skip


def test_columns_and_patterns_of_people(tmp_path):
    rng = random.Random(21)
    pictures = {f"{'ab'[i % 2]}/x{i // 3}_{i}.png": image_bytes(np.full((4, 4), i % 250, np.uint8)) for i in range(120)}
    write_files(tmp_path / "imgs", pictures)
    odd = [*TEXTS, None, float("nan"), 1e300, -1, True, "NA", "?", "n/a", "P1", "p1", " p1", "2020-01-01", "x" * 5000]
    for case, folder in enumerate(folders(tmp_path, PEOPLE)):
        if case % 2:
            pattern = "".join(rng.choice(PATTERNS) for _ in range(rng.randint(1, 8)))
            (folder / "imgs").symlink_to(tmp_path / "imgs")
            judged(lambda f=folder, p=pattern: given.data(f, "imgs", f"--person={p}"), pattern)
            continue
        frame = given.sound(120)
        who = [f"p{row // 3}" for row in range(120)]
        for _ in range(rng.choice([0, 1, 3, 120])):
            who[rng.randrange(120)] = rng.choice(odd)
        name = rng.choice(["who", "y", "a", *TEXTS[:20]])
        content = frame.assign(who=pd.Series(who, dtype=object)).to_csv(index=False).encode("utf-8", "replace")
        (folder / "d.csv").write_bytes(content)
        more = [] if rng.random() < 0.7 else ["--missing=impute"]
        judged(lambda f=folder, n=name, m=more: given.data(f, "d.csv", "--label=y", f"--person={n}", *m), (name, who))


def test_releases_that_choose_anything(tmp_path):
    rng = random.Random(22)
    keys = ["learning_rate", "momentum", "optimizer", "l2", "initialization", "hidden", "batch_size", "epochs", "activation", "dropout", "other", ""]  # fmt: skip
    values = [[0.1, 0.01], [0.1, 0.1], [-0.1], [1e30], [[8], [16]], [[0]], ["adam", "sgd"], [], 0.1, *([value] for value in VALUES)]  # fmt: skip
    for folder in folders(tmp_path, RELEASES):
        choose = {rng.choice(keys): rng.choice(values) for _ in range(rng.randint(1, 2))}
        wanted = {"cell": rng.choice(["mlp/gaussian-rdp-eps=1", "mlp/none", "digits/mlp/gaussian-rdp-eps=1", *VALUES])}
        wanted |= {"choose": choose} if rng.random() < 0.9 else {}
        for key, sound in (("mean", 2), ("runs", "geometric"), ("score_noise", 5.0), ("expires", "2099-01-01")):
            if rng.random() < 0.4:
                wanted[key] = rng.choice([sound, sound, *VALUES])
        spec = given.TINY | {"release": wanted}
        judged(lambda f=folder, s=spec: given.study(f, yaml.safe_dump(s)), wanted)


def test_studies_of_people_with_any_value_or_key_anywhere(tmp_path):
    rng = random.Random(23)
    more = {"defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp", "most": 2, "chosen": "first"}]}
    base = merged(planned.VISITS, more)
    places = [at for at in paths(base) if at]
    words = ["person", "gaussian", "naive", "wor", "shuffle", "poisson", "learned", "split", "coins", 1, 3, 90, 10**9]
    for folder in folders(tmp_path, STUDIES):
        spec = base
        for _ in range(rng.choice([1, 1, 2])):
            try:
                spec = replaced(spec, rng.choice(places), rng.choice([*words, *VALUES]), rng)
            except (KeyError, IndexError, TypeError):
                continue  # an earlier change took the place away
        judged(lambda f=folder, s=spec: planned.planned_visits(f, s), spec)


def test_modules_that_are_and_keep_anything(tmp_path, monkeypatch):
    rng = random.Random(24)
    monkeypatch.chdir(tmp_path)
    for case in range(MODULES):
        name = f"net{case}"
        lines = ["import torch", "class Net(torch.nn.Module):", "    def __init__(self, **_):", "        super().__init__()", "        self.out = torch.nn.Linear(8, 10)",
                 f"        {rng.choice([*MADE, '', '', '']) or 'pass'}", "    def forward(self, x):", f"        {rng.choice([*KEPT, '', '']) or 'pass'}", "        h = self.out(x)", f"        return {rng.choice(PASSES)}"]  # fmt: skip
        text = "\n".join([*lines, ""])
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        judged(lambda name=name: given.said(lambda: probed(name)), text)


def probed(name: str) -> None:
    """All that is tried of a module before it is trained privately."""
    check_foreign(module_layers(module_factory(f"{name}:Net", (8,), 10), (8,), 10), 4, torch.float32)


def test_verify_of_anything(tmp_path):
    rng = random.Random(25)
    whole = tmp_path / "whole"
    made(released_plan("quickstart", f"mlp/{DP}", {}), whole, 60.0, NOT_MEASURED)
    told = json.loads((whole / PRIVACY).read_text())
    places = [at for at in paths(told) if at]
    values = [value for value in VALUES if "\ud800" not in str(value)]
    for folder in folders(tmp_path, VERIFIED):
        copy = folder / "released"
        shutil.copytree(whole, copy)
        file = copy / rng.choice(sorted(path.name for path in whole.iterdir()))
        kind = rng.choice(["cut", "flip", "link", "folder", "none", "json", "json", "hashes", "more"])
        content = file.read_bytes()
        if kind == "json":
            at, new = rng.choice(places), rng.choice(values)
            text = json.dumps(replaced(told, at, new, rng)).encode()
            (copy / PRIVACY).write_bytes(text)
            if rng.random() < 0.8:  # by somebody who can compute a digest
                hashes = json.loads((copy / HASHES).read_text())
                (copy / HASHES).write_bytes(as_json(hashes | {PRIVACY: sha256(text).hexdigest()}))
        elif kind == "hashes":
            (copy / HASHES).write_bytes(json.dumps(rng.choice([rng.choice(values), {str(rng.choice(values)): rng.choice(values)}])).encode())  # fmt: skip
        elif kind == "more":
            (copy / rng.choice(["x", "é", "a\nb", ".hidden"])).write_bytes(b"x")
        else:
            file.unlink()
            if kind == "link":
                file.symlink_to(rng.choice(["/etc/passwd", "/dev/zero", file.name, whole / file.name]))
            elif kind == "folder":
                file.mkdir()
            elif kind != "none":
                changed = bytearray(content[: len(content) // 2] if kind == "cut" else content)
                changed[rng.randrange(len(changed))] ^= 1
                file.write_bytes(changed)
        judged(lambda copy=copy: verified(copy), (kind, file.name))


def verified(folder: Path) -> str | None:
    """What verify complains of; it must be something where a byte of the release changed."""
    return given.said(lambda: verify([str(folder)]))


def test_five_hundred_are_generated():
    assert PEOPLE + RELEASES + STUDIES + MODULES + VERIFIED == 500
