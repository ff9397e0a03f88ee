import re
import subprocess
import sys

import pytest
from asked import epsilon_spent, kappa_for, noise_multiplier, selection_epsilon
from scipy.stats import norm

from dp_leakage.options import privacy as options
from dp_leakage.privacy.accounting import ACCOUNTANTS
from dp_leakage.privacy.accounting.tradeoff import gaussian
from dp_leakage.privacy.command import main

TRAINING = ["--epochs", "100", "--batch-size", "200", "--dataset-size", "10000"]
RUN = {"delta": 1e-5, "epochs": 100, "batch_size": 200, "dataset_size": 10_000}


def table(capsys, *arguments):
    assert main([*arguments, "--all", *TRAINING]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "accountant"
    return [line.split() for line in lines]


EPSILON, SIGMA = ["epsilon", "--noise-multiplier", "1.1"], ["sigma", "--epsilon", "2"]


@pytest.mark.parametrize(
    ("question", "asked", "row"),
    [
        (EPSILON, [], ["pld", "poisson", "add_remove"]),
        (EPSILON, ["--neighbors", "replace_one"], ["pld", "poisson", "replace_one"]),
        (EPSILON, ["--accountant", "rdp"], ["rdp", "poisson", "add_remove"]),
        (EPSILON, ["--accountant", "rdp", "--sampler", "wor"], ["rdp", "wor", "replace_one"]),
        (EPSILON, ["--sampler", "shuffle"], ["gdp", "shuffle", "zero_out"]),  # naive's smaller ε would be no bound
        (SIGMA, [], ["pld", "poisson", "add_remove"]),
        (SIGMA, ["--sampler", "shuffle"], ["gdp", "shuffle", "zero_out"]),
    ],
)
def test_without_all_the_row_is_printed_that_the_options_ask_for(capsys, question, asked, row):
    assert main([*question, *asked, *TRAINING]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    name, _, sampler, neighbors, *_ = line.split()
    assert [name, sampler, neighbors] == row
    assert line.split() in table(capsys, *question, *asked[2 if "--accountant" in asked else 0 :])


def test_a_risk_has_no_accountant(capsys):
    assert main(["risk", "--noise-multiplier", "1.1", "--accountant", "rdp", *TRAINING]) == 2
    assert "error: --accountant is for ε" in capsys.readouterr().err


def test_the_names_of_the_options_are_those_of_the_accountants():
    assert sorted(options.ACCOUNTANTS) == sorted(ACCOUNTANTS)
    assert {*options.SAMPLERS} >= {sampler for rules in ACCOUNTANTS.values() for sampler in rules.relations}


def test_sigma_lists_every_accountant_of_gaussian_noise(capsys):
    rows = table(capsys, "sigma", "--epsilon", "5")
    assert {row[0] for row in rows} == {name for name, rules in ACCOUNTANTS.items() if rules.noise != "vmf"}
    sigma = {row[0]: row[1] for row in rows if row[2] in ("shuffle", "poisson")}
    assert float(sigma["rdp"]) == pytest.approx(noise_multiplier("rdp", epsilon=5, **RUN), rel=1e-5)


def test_blocks_add_the_directional_accountants(capsys):
    rows = table(capsys, "sigma", "--epsilon", "5", "--sampler", "wor", "--blocks", "3x20,100")
    assert ["vmf_pure", "κ", "=", "0.00610174"] in [row[:4] for row in rows]


def test_epsilon_of_a_noise_multiplier_under_one_sampler(capsys):
    rows = table(capsys, "epsilon", "--noise-multiplier", "1.1", "--sampler", "poisson", "--neighbors", "add_remove")
    assert [row[0] for row in rows] == ["rdp", "pld"]
    assert float(rows[0][1]) == pytest.approx(epsilon_spent("rdp", noise_multiplier=1.1, **RUN), rel=1e-5)


def test_printed_formulas_say_where_they_are_no_bound(capsys):
    assert main(["epsilon", "--noise-multiplier", "0.5", "--sampler", "shuffle", "--all", *TRAINING]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not a bound here" in next(line for line in lines if line.startswith("naive"))
    assert next(line for line in lines if line.startswith("gdp")).endswith("bound")


@pytest.mark.parametrize(("sampler", "says"), [("cyclic", "exact"), ("shuffle", "bound"), ("balls_in_bins", "bound")])
def test_only_batches_that_are_known_in_advance_make_a_composition_exact(capsys, sampler, says):
    rows = table(capsys, "epsilon", "--noise-multiplier", "1", "--sampler", sampler, "--neighbors", "zero_out")
    assert next(row for row in rows if row[0] == "gdp")[-1] == says


@pytest.mark.parametrize("other", ["--sampler", "--neighbors", "--conversion", "--bands"])
def test_select_takes_no_options_that_it_would_ignore(capsys, other):
    with pytest.raises(SystemExit):
        main(["select", "--noise-multiplier", "7", "--mean", "10", other, "1", *TRAINING])
    assert f"unrecognized arguments: {other}" in capsys.readouterr().err


def test_epsilon_of_a_concentration(capsys):
    rows = table(capsys, "epsilon", "--kappa", "0.1", "--blocks", "61706", "--sampler", "shuffle")
    assert rows[0][0] == "vmf_pure"
    assert float(rows[0][1]) == 20.0


def test_sigma_for_a_risk_lists_every_sampler_and_gives_the_risk_back(capsys):
    assert main(["sigma", "--advantage", "0.1", "--all", *TRAINING]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    sigma = {line[4]: line[3] for line in lines}
    assert set(sigma) == {"poisson", "shuffle", "wor", "balls_in_bins", "class_poisson"}
    assert float(sigma["shuffle"]) == pytest.approx(2 * 10 / (2 * norm.ppf(0.55)), rel=1e-4)
    assert float(sigma["poisson"]) < float(sigma["shuffle"])
    assert main(["risk", "--noise-multiplier", sigma["poisson"], "--sampler", "poisson", *TRAINING]) == 0
    (_, replaced, present) = capsys.readouterr().out.splitlines()
    assert 0.0995 < float(replaced.split()[3]) <= 0.1
    assert float(present.split()[3]) < 0.06
    assert "add_remove" in present


@pytest.mark.parametrize("epsilon", ["1", "2", "3", "5", "8"])
def test_a_solved_noise_is_printed_no_weaker_than_it_is(capsys, epsilon):
    """To nearest, every other σ is too small."""
    blocks = ("--blocks", "3x20,100")
    rows = table(capsys, "sigma", "--epsilon", epsilon, "--sampler", "shuffle", *blocks)
    assert {"naive", "vmf_pure"} <= {row[0] for row in rows}
    for name, *answer in rows:
        given = {"epsilon": float(epsilon), "sampler": "shuffle"} | RUN
        if answer[0] == "κ":
            blocks_given = {"blocks": (20, 20, 20, 100), "neighbors": answer[4]}
            assert float(answer[2]) <= kappa_for(name, **blocks_given, **given)
        else:
            assert float(answer[0]) >= noise_multiplier(name, neighbors=answer[2], **given)


@pytest.mark.parametrize("noise", ["0.9", "1.1", "1.3", "1.7"])
def test_an_epsilon_is_printed_no_smaller_than_it_is(capsys, noise):
    rows = table(capsys, "epsilon", "--noise-multiplier", noise, "--sampler", "poisson", "--neighbors", "add_remove")
    for name, answer, *_ in rows:
        assert float(answer) >= epsilon_spent(name, noise_multiplier=float(noise), **RUN) * (1 - 1e-7)


@pytest.mark.parametrize("noise", ["20", "31", "47", "83"])
def test_what_a_noise_proves_is_printed_no_smaller_than_it_is(capsys, noise):
    run = ["--sampler", "shuffle", "--neighbors", "zero_out", "--guess", "0.02"]
    assert main(["risk", "--noise-multiplier", noise, *run, *TRAINING]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    curve = gaussian(10 / float(noise))  # 100 epochs, each a step for each record
    proven = (curve.advantage, curve.tpr(0.01), curve.tpr(0.001), curve.mu, curve.mu_bound, curve.regret)
    shown = [float(word) for word in line.split()[3:10]]
    for stated, true in zip(shown, (*proven, curve.reconstruction(0.02)), strict=True):
        assert true * (1 - 1e-6) <= stated <= true * (1 + 2e-3)


def test_what_a_choice_spends_is_printed_no_smaller_than_it_is(capsys):
    for noise in (6, 7, 8, 9):
        assert main(["select", "--noise-multiplier", str(noise), "--mean", "10", *TRAINING]) == 0
        once, best = re.findall(r"ε = ([0-9.]+)", capsys.readouterr().out)
        assert float(once) >= epsilon_spent("rdp", noise_multiplier=noise, **RUN) * (1 - 1e-6)
        assert float(best) >= selection_epsilon(noise, mean=10, runs="geometric", **RUN) * (1 - 1e-6)


def test_select_says_what_the_choice_costs_and_what_to_train(capsys):
    assert main(["select", "--noise-multiplier", "7", "--mean", "10", "--grid", "6", "--seed", "3", *TRAINING]) == 0
    cost, _, runs = capsys.readouterr().out.splitlines()
    assert cost.startswith("one run: ε = 0.8")
    assert "the best of 10 on average (geometric): ε = 1.7" in cost
    assert {int(word) for word in runs.partition(":")[2].split(",")} <= set(range(6))


def test_select_says_nothing_of_orders_that_the_library_leaves_out(capsys):
    noisy = ["--epochs", "100", "--batch-size", "256", "--dataset-size", "600"]
    command = [sys.executable, "-m", "dp_leakage", "select", "--noise-multiplier", "0.3", "--mean", "9", *noisy]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


def test_the_help_begins_with_a_whole_sentence(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "the ε or the risk of a noise.\n" in capsys.readouterr().out


def test_risk_of_a_concentration_needs_its_blocks(capsys):
    assert main(["risk", "--kappa", "0.5", "--blocks", "100", "--sampler", "shuffle", *TRAINING]) == 0
    assert "κ = 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["sigma", "--epsilon", "1", "--fpr", "0.1"],
            "error: --fpr belongs to another limit; use it with --tpr",
        ),
        (
            ["sigma", "--advantage", "0.1", "--prior", "0.1"],
            "error: --prior belongs to another limit",
        ),
        (["sigma", "--tpr", "0.1"], "error: --tpr needs --fpr"),
        (["sigma", "--precision", "0.4", "--prior", "0.5"], "error: target.precision is 0.4"),
        (["risk", "--kappa", "0.1"], "error: --kappa needs --blocks"),
        (["epsilon", "--kappa", "0.1"], "error: blocks: []"),
        (["epsilon", "--kappa", "1", "--blocks", "9", "--sampler", "class_poisson"], "error: no accountant supports"),
    ],
)
def test_questions_without_an_answer_get_one_sentence(capsys, arguments, sentence):
    assert main([*arguments, *TRAINING]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(sentence)
    assert output.err.count("\n") == 1


def test_a_terminal_is_told_what_is_computed_and_keeps_only_the_table(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    main(["sigma", "--epsilon", "5", "--sampler", "shuffle", *TRAINING])
    output = capsys.readouterr()
    assert "naive under shuffle …" in output.err
    assert output.err.endswith("\r\033[K")
    assert "…" not in output.out


def test_it_runs_as_a_module():
    command = [
        sys.executable,
        "-m",
        "dp_leakage",
        "sigma",
        "--epsilon",
        "1",
        "--sampler",
        "shuffle",
        "--all",
        *TRAINING,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "571.686" in result.stdout


@pytest.mark.parametrize("wrong", [["sigma", "--epsilon", "-1"], ["risk", "--noise-multiplier", "-1"]])
def test_amounts_out_of_range_are_refused_by_name_with_what_is_valid(capsys, wrong):
    with pytest.raises(SystemExit) as ended:
        main([*wrong, *TRAINING])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert f"{wrong[1]}: '-1' is not valid; it must be a number from" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("delta", ["-1", "0", "1", "2", "nan"])
def test_a_delta_is_above_0_and_below_1(capsys, delta):
    with pytest.raises(SystemExit):
        main(["sigma", "--epsilon", "1", f"--delta={delta}", *TRAINING])
    assert f"--delta: '{delta}' is not valid; it must be a number above 0 and below 1" in capsys.readouterr().err


@pytest.mark.parametrize(("delta", "noted"), [("1e-5", False), ("1e-4", True)])
def test_a_delta_of_one_in_the_number_of_records_is_noted(capsys, delta, noted):
    words = ["epsilon", "--noise-multiplier", "2", "--sampler", "shuffle", "--dataset-size", "10000", "--delta", delta]
    assert main([*words, "--batch-size", "100", "--epochs", "1"]) == 0
    assert ("is not below one in 10,000 records" in capsys.readouterr().err) == noted
