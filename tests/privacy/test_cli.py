import subprocess
import sys

import pytest

from dp_leakage.privacy.__main__ import main
from dp_leakage.privacy.accounting import ACCOUNTANTS, epsilon_spent, noise_multiplier

TRAINING = ["--epochs", "100", "--batch-size", "200", "--dataset-size", "10000"]
RUN = {"delta": 1e-5, "epochs": 100, "batch_size": 200, "dataset_size": 10_000}


def table(capsys, *arguments):
    assert main([*arguments, *TRAINING]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "accountant"
    return [line.split() for line in lines]


def test_sigma_lists_every_accountant_of_gaussian_noise(capsys):
    rows = table(capsys, "sigma", "--epsilon", "5")
    assert {row[0] for row in rows} == {name for name, rules in ACCOUNTANTS.items() if rules.noise != "vmf"}
    sigma = {row[0]: row[1] for row in rows if row[2] in ("shuffle", "poisson")}
    assert float(sigma["rdp"]) == pytest.approx(noise_multiplier("rdp", epsilon=5, **RUN), rel=1e-5)


def test_blocks_add_the_directional_accountants(capsys):
    rows = table(capsys, "sigma", "--epsilon", "5", "--sampler", "wor", "--blocks", "3x20,100")
    assert ["vmf_pure", "κ", "=", "0.00610174"] in [row[:4] for row in rows]


def test_epsilon_of_a_noise_multiplier_under_one_sampler(capsys):
    rows = table(capsys, "epsilon", "--noise-multiplier", "1.1", "--sampler", "poisson", "--neighbours", "add_remove")
    assert [row[0] for row in rows] == ["rdp", "pld"]
    assert float(rows[0][1]) == pytest.approx(epsilon_spent("rdp", noise_multiplier=1.1, **RUN), rel=1e-5)


def test_printed_formulas_say_where_they_are_no_bound(capsys):
    assert main(["epsilon", "--noise-multiplier", "0.5", "--sampler", "shuffle", *TRAINING]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not a bound here" in next(line for line in lines if line.startswith("naive"))
    assert next(line for line in lines if line.startswith("gdp")).endswith("exact")


def test_epsilon_of_a_concentration(capsys):
    rows = table(capsys, "epsilon", "--kappa", "0.1", "--blocks", "61706", "--sampler", "shuffle")
    assert rows[0][0] == "vmf_pure"
    assert float(rows[0][1]) == 20.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["epsilon", "--kappa", "0.1"], "error: blocks: []"),
        (["sigma", "--epsilon", "-1"], "error: epsilon: -1 is no budget"),
        (["epsilon", "--kappa", "1", "--blocks", "9", "--sampler", "class_poisson"], "error: no accountant speaks"),
    ],
)
def test_questions_without_an_answer_get_one_sentence(capsys, arguments, sentence):
    assert main([*arguments, *TRAINING]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(sentence)
    assert output.err.count("\n") == 1


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "dp_leakage.privacy", "sigma", "--epsilon", "1", "--sampler", "shuffle", *TRAINING]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "571.686" in result.stdout
