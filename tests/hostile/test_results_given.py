"""Results that somebody hands over: whatever the files hold, one sentence or a sound cell, soon, and no code runs."""

import contextlib
import json
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402
import results_made as made  # noqa: E402

from dp_leakage import share  # noqa: E402

SOON = 10  # seconds of processor time
READ, SHARED = 120, 120  # generated cells, and studies


def test_a_sound_cell_is_read(tmp_path):
    assert made.said(made.cell(tmp_path)) is None


@pytest.mark.parametrize("case", made.ALL)
def test_files_that_no_step_can_have_written_end_in_one_sentence(tmp_path, case):
    begun = time.process_time()
    text = made.ALL[case](tmp_path)
    assert text is not None, "it was taken"
    assert given.is_sentence(text), text
    assert time.process_time() - begun < SOON


def test_a_module_is_made_by_the_function_that_is_given_and_by_no_other(tmp_path):
    class Net(torch.nn.Linear):
        pass

    settings = made.MADE["settings"] | {"architecture": {"name": "pwn:Net"}}
    place = made.cell(tmp_path, made.MADE | {"settings": settings})
    assert "factory=" in made.said(place)
    models = made.read_cell(place, lambda: Net(4, 3)).models
    torch.testing.assert_close(models.module(1)[0].weight.data, torch.from_numpy(made.WEIGHTS["0.weight"][1]))
    assert "must have the shape" in made.said(place, lambda: Net(4, 5))


@pytest.mark.fuzz
def test_any_arrays_in_any_file(tmp_path):
    rng = random.Random(6)
    sizes = [0, 1, 2, made.R, made.C, made.N, made.N + 1]
    kinds = ["f8", "f4", "i8", "i4", "u8", "?", "U3", "S3", "c16", "M8[s]", "V8", "f2"]
    for number in range(READ):
        name = rng.choice(list(made.WRITERS))
        arrays = made.WRITERS[name][1]
        changes = {}
        for _ in range(rng.choice([1, 1, 2])):
            key = rng.choice([*arrays, "zzz"])
            shape = [rng.choice(sizes) for _ in range(rng.choice([0, 1, 2, 3, 4]))]
            if key in arrays and rng.random() < 0.5:  # the same axes, other values
                values = np.array(rng.choices([0, 1, -1, 2**40, 0.5, np.nan, np.inf, -1e300], k=arrays[key].size))
                array = values.reshape(arrays[key].shape)
                with np.errstate(all="ignore"):
                    kind = arrays[key].dtype if rng.random() < 0.7 else "f8"
                    array = np.nan_to_num(array).astype(kind) if np.dtype(kind).kind not in "fU" else array.astype(kind)
            else:
                array = np.zeros(shape).astype(rng.choice(kinds))
            changes[key] = rng.choice([array, array, array, None])
        if name == "models" and any(a is not None and a.dtype.kind not in "fiub" for a in changes.values()):
            continue  # not a type of that format
        if name == "scores":
            changes = {key: None if a is None else np.resize(a, made.R * made.N) for key, a in changes.items()}
            if any(a is not None and a.dtype.kind in "cV" for a in changes.values()):
                continue
        folder = tmp_path / str(number)
        text = made.said(made.cell(folder, **{name: changes}))
        assert text is None or given.is_sentence(text), (name, changes, text)


@pytest.mark.fuzz
def test_any_words_on_how_they_were_made(tmp_path):
    rng = random.Random(7)
    from test_generated import VALUES, paths, replaced

    values = [value for value in VALUES if "\ud800" not in str(value)]
    places = [at for at in paths(made.MADE) if at]
    for number in range(READ):
        at = rng.choice(places)
        told = json.loads(json.dumps(replaced(made.MADE, at, rng.choice(values), rng)))
        text = made.said(made.cell(tmp_path / str(number), told))
        assert text is None or given.is_sentence(text), (told, text)


@pytest.mark.fuzz
def test_any_damage(tmp_path):
    rng = random.Random(8)
    place = made.cell(tmp_path)
    for _ in range(READ):
        path = (place / made.WRITERS[rng.choice(list(made.WRITERS))][0]).resolve()
        content = path.read_bytes()
        bad = bytearray(content)
        for _ in range(rng.choice([1, 3, 30])):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        path.write_bytes(bytes(bad[: rng.choice([len(bad), len(bad), rng.randrange(len(bad))])]))
        if rng.random() < 0.7:  # by somebody who can compute a digest
            with contextlib.suppress(ValueError):
                made.files._write_checksum(path)
        text = made.said(place)
        assert text is None or given.is_sentence(text), (path, text)
        path.write_bytes(content)


@pytest.mark.fuzz
def test_sharing_of_anything(tmp_path):
    """Studies with damaged, foreign, linked or made-up files: a sentence and no copy, or a copy without a secret."""
    rng = random.Random(9)
    study = tmp_path / "study"
    (study / "figures").mkdir(parents=True)
    (study / "report.html").write_text("<html></html>")
    made.cell(study, made.MADE | {"parameters": ["0.weight"], "secret": "5eed5eed"})
    names = [
        "figures/a.png",
        "figures/b.csv",
        "metrics.parquet",
        "d/metrics.parquet",
        "x/target.safetensors",
        "é/\n.npz",
    ]
    contents = [b"", b"\x00" * 99, b"\x89PNG\r\n\x1a\n" + bytes(99), b"PAR1" * 20, b"%PDF-1.4", b"{}", b"5eed5eed"]
    kinds = {
        "file": lambda path: path.write_bytes(rng.choice(contents)),
        "link": lambda path: path.symlink_to(rng.choice(["/etc/passwd", "/", "nothing", ".", path])),
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "copy": lambda path: path.write_bytes(rng.choice(own).read_bytes()),
        "told": lambda path: made.write_tensors(path, made.WEIGHTS, rng.choice(told)),
    }
    own = [path for path in study.rglob("*") if path.is_file()]
    odd = {"mechanism": {"noise": []}, "architecture": {"a\x00": ["/x", "5eed/5eed", 1e999]}}
    bad = {"settings": {"mechanism": 3}, "parameters": ["0.weight"]}
    told = [[], "x", {"settings": 3}, bad, {"parameters": [{}]}, {"settings": odd, "parameters": ["0.weight"]}]
    for number in range(SHARED):
        path = study / rng.choice(names)
        path.parent.mkdir(exist_ok=True)
        kinds[rng.choice(list(kinds))](path)
        copy = tmp_path / f"copy{number}"
        text = given.said(lambda copy=copy: share.main([str(study), "--to", str(copy), "--undefended"]))
        assert text is None or (given.is_sentence(text) and not copy.exists()), text
        assert not [file for file in copy.rglob("*.*") if file.is_file() and b"5eed" in file.read_bytes()]
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
