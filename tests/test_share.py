"""What is given away holds no seed, no member list, and no hash that would confirm a guess at them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from safetensors import safe_open

from dp_leakage.figures.files import write_figure
from dp_leakage.provenance.files import write_arrays, write_table, write_tensors
from dp_leakage.share import main, share

SEED = 8412345976123
SECRET = "5eed5eed5eed5eed"
MADE = {
    "identity": SECRET,
    "settings": {"seed": SEED, "data": "abcdabcdabcdabcd", "model": "mlp", "mechanism": {"epsilon": 1.0}},
    "n_train": 40,
}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    cell = folder / "digits" / "mlp" / "none"
    members = np.arange(1000, 1040)[None]
    write_tensors(cell / "target.safetensors", {"0.weight": np.ones((1, 3)), "train_indices": members}, MADE)
    write_table(cell / "metrics.parquet", {"metric": ["membership_auc"], "value": [0.5]}, MADE)
    write_table(cell / "attack" / "yeom.parquet", {"record": members[0], "score": members[0] / 7}, MADE)
    write_arrays(folder / "digits" / "data.npz", {"target_members": members[0]}, MADE)
    (folder / "report.html").write_text(f"<html>{SEED}</html>\n")
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    paths = [folder / "figures" / f"fig.{kind}" for kind in ("pdf", "png", "csv")]
    write_figure(figure, pd.DataFrame({"x": [1, 2]}), *paths, SECRET)
    return folder


def test_the_copy_has_weights_metrics_and_figures_and_nothing_of_records_or_seeds(results, tmp_path):
    shared = tmp_path / "shared"
    names = {str(path.relative_to(shared)) for path in share(results, shared)}
    cell = "digits/mlp/none"
    assert names == {
        f"{cell}/target.safetensors", f"{cell}/metrics.parquet", "figures/fig.pdf", "figures/fig.png", "figures/fig.csv"
    }  # fmt: skip
    assert names == {str(path.relative_to(shared)) for path in shared.rglob("*") if path.is_file()}
    for name in names:
        content = (shared / name).read_bytes()
        for secret in (str(SEED), SECRET, "abcdabcdabcdabcd", "train_indices", "identity=5"):
            assert secret.encode() not in content, (name, secret)
    # Nor digests of files that hold a hash of them.
    original = (results / "figures" / "fig.png").read_bytes()
    said = dict(re.findall(rb"(csv|pdf|png)=([0-9a-f]{64})", original))
    assert said.keys() == {b"csv", b"pdf", b"png"}
    assert not [digest for digest in said.values() if digest in (shared / "figures" / "fig.png").read_bytes()]


def test_what_is_given_away_can_be_used(results, tmp_path):
    share(results, tmp_path / "shared")
    cell = tmp_path / "shared" / "digits" / "mlp" / "none"
    with safe_open(cell / "target.safetensors", framework="numpy") as file:
        assert list(file.keys()) == ["0.weight"]
        assert json.loads(file.metadata()["dp_leakage"]) == {"mechanism": {"epsilon": 1.0}, "model": "mlp"}
        np.testing.assert_array_equal(file.get_tensor("0.weight"), np.ones((1, 3)))
    assert pd.read_parquet(cell / "metrics.parquet")["value"].tolist() == [0.5]
    with Image.open(tmp_path / "shared" / "figures" / "fig.png") as picture:
        picture.verify()


def test_no_results_and_a_full_folder_are_refused_in_a_sentence(results, tmp_path, capsys):
    assert main([str(tmp_path / "none"), str(tmp_path / "shared")]) == 1
    assert "error: " in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    assert main([str(results), str(tmp_path / "full")]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main([str(results), str(tmp_path / "shared")]) == 0
    assert "5 files in" in capsys.readouterr().out
