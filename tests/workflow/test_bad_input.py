"""Wrong words on the command line and edits of the user's own file, on the real Snakefile."""

import os
from collections import Counter

import pytest
from sklearn.datasets import load_wine

DATA = "results/quickstart-smoke/digits/data.npz"
PREPARED = Counter(prepare_dataset=1, project_pca=1)


@pytest.fixture
def own(unrun):
    """A study on a table of the user's own, prepared and projected."""
    load_wine(as_frame=True).frame.to_csv(unrun.folder / "wine.csv", index=False)
    roles = {"target_members": 60, "target_nonmembers": 60, "shadow_pool": 58, "reference_pool": None}
    source = {"path": "wine.csv", "label": "target"}
    unrun.configure(
        datasets={"digits": {"source": source, "roles": roles, "projection": {"components": 5}}},
        shadow={"count": 2, "size": 20},
    )
    unrun.snakemake(DATA, "--cores", "1")
    return unrun


def test_an_edit_of_the_users_own_file_prepares_it_anew_and_a_touch_does_not(own):
    table = own.folder / "wine.csv"
    assert own.planned(DATA) == Counter()
    os.utime(table)
    assert own.planned(DATA) == Counter()
    times = table.stat()
    table.write_text(table.read_text().replace("14.23", "14.32"))
    os.utime(table, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a copy tool may leave it
    assert own.planned(DATA) == PREPARED
    table.unlink()
    text = own.snakemake(DATA, "-n", check=False)
    assert "error: study quickstart: key 'datasets.digits.source.path': wine.csv: no such file or folder" in text
    assert "Traceback" not in text


def test_data_prepared_from_another_content_are_refused_where_snakemakes_records_are_lost(own):
    own.edit("wine.csv", "14.23", "14.32")
    target = "results/quickstart-smoke/digits/mlp/none/target.safetensors"
    text = own.snakemake(target, "--cores", "1", "--rerun-triggers", "mtime", check=False)
    assert "digits/data.npz was made by other settings or other code" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "overrides=quickstart",
            "error: command line: key 'overrides' is 'quickstart'; on the command line write it in q",
        ),
        (
            "overrides={quickstart: {repeats: x}}",
            "error: command line: key 'overrides.quickstart.repeats' is 'x'; expected a whole number from 1 to 1000",
        ),
        (
            "overrides={quickstart: {repeats:3}}",
            "key 'overrides.quickstart' has 'repeats:3'; write a space after the col",
        ),
        (
            "only_datasets=[digit]",
            "key 'only_datasets' has 'digit', but no study has this data set; did you mean 'digits'",
        ),
        ("only_datasets=[mnist]", "key 'only_datasets' is [mnist], none of study quickstart; valid: digits"),
        ("device=gpu", "error: command line: key 'device' is 'gpu'"),
    ],
)
def test_a_wrong_word_on_the_command_line_is_one_sentence(unrun, given, sentence):
    text = unrun.snakemake("quickstart", "-n", "--config", given, check=False)
    assert sentence in text
    assert "Traceback" not in text
    assert "Building DAG" not in text


def test_numbers_truth_values_and_nulls_on_the_command_line_are_what_they_look_like(unrun):
    changes = (
        "{quickstart: {epsilon: [1, 10.5], delta: 1.0e-6, attacks: {shokri: null, yeom_attribute: {features: 3}}}}"
    )
    only = ["quickstart_fig_accuracy_loss", "--config", f"overrides={changes}", "only_datasets=[digits]"]
    text = unrun.snakemake("-n", *only, check=False)
    assert "figures.fig_leakage_shokri" in text  # the figure of the attack that is gone is named
    text = unrun.snakemake("-n", *only[:2], only[2].replace("shokri: null, ", ""), only[3])
    assert "gaussian-rdp-eps=10.5" in text
