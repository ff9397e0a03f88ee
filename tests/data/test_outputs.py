"""Arrays of outputs of every rank, length and type: a sentence, or outputs."""

import numpy as np
import pandas as pd
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.data import load
from dp_leakage.data.outputs import read_outputs

N, C = 60, 3
SOUND = {
    "label": np.arange(N) % C,
    "member": np.arange(N) % 2,
    "probability": np.full((N, C), 1 / C),
    "record": np.arange(N),
    "classes": np.arange(C),
}
KINDS = ["V8", "V0", "c16", "M8[s]", "m8[s]", "S3"]
LOSSES = {name: SOUND[name] for name in ("label", "member")}
BAD = {
    "void": SOUND | {"probability": np.zeros((N, C), "V8")},
    "zero classes": SOUND | {"probability": np.zeros((N, 0)), "classes": np.zeros(0)},
    "zero queries": LOSSES | {"loss": np.zeros((0, 1, N))},
    "zero models": LOSSES | {"margin": np.zeros((1, 0, N))},
    "zero models of probabilities": SOUND | {"probability": np.zeros((0, N, C))},
    "zero records": SOUND | {"label": np.zeros(0), "probability": np.zeros((0, C))},
    "a number": LOSSES | {"loss": np.array(0.5)},
    "a label": SOUND | {"label": np.array(1)},
    "five axes": LOSSES | {"loss": np.zeros((1, 1, 1, 1, N))},
    "a member for no model": SOUND | {"member": np.zeros((0, N))},
    "classes of two axes": SOUND | {"classes": np.zeros((C, 1))},
    **{f"{name} of {kind}": SOUND | {name: np.zeros(SOUND[name].shape, kind)} for name in SOUND for kind in KINDS},
}


def read(folder, arrays):
    path = folder / "o.npz"
    np.savez(path, **arrays)
    return read_outputs(path)


@pytest.mark.parametrize("what", BAD)
def test_arrays_that_hold_no_outputs_get_one_sentence(tmp_path, what):
    with pytest.raises(UserError) as caught:
        read(tmp_path, BAD[what])
    assert "o.npz" in str(caught.value)
    assert len(str(caught.value)) > 40


def test_sound_arrays_are_read(tmp_path):
    assert read(tmp_path, SOUND).margin.shape == (1, 1, N)
    assert read(tmp_path, LOSSES | {"loss": np.ones((2, 3, N), np.float16)}).margin.shape == (2, 3, N)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_records_keep_their_names_as_texts(tmp_path, suffix):
    names = [f"{i:03d}" for i in range(N)]
    frame = pd.DataFrame(LOSSES | {"loss": np.ones(N), "record": names})
    path = tmp_path / f"o.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    assert read_outputs(path).record.tolist() == names
    assert load({"source": "outputs", "path": str(path)}, tmp_path).names == tuple(names)


def test_a_record_without_a_name_in_a_csv_is_missing_one(tmp_path):
    frame = pd.DataFrame(LOSSES | {"loss": np.ones(N), "record": ["007"] + [""] * (N - 1)})
    frame.to_csv(tmp_path / "o.csv", index=False)
    with pytest.raises(UserError, match="has no record"):
        read_outputs(tmp_path / "o.csv")
