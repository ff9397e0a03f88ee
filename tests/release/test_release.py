"""A release is there whole or not at all, says what it protects, and holds nothing that tells who was in it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import yaml
from releasing import NOT_MEASURED
from safetensors.numpy import load_file

from dp_leakage.common.errors import UserError
from dp_leakage.common.rounding import rounded_up
from dp_leakage.metrics.intervals import wilson
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training
from dp_leakage.release import folder as folders
from dp_leakage.release import statement
from dp_leakage.release.command import check, make
from dp_leakage.release.folder import (
    HASHES,
    LARGEST,
    MODEL,
    PRIVACY,
    SHEET,
    WEIGHTS,
    WHOLE,
    as_json,
    released_before,
    working_folder,
    write_release,
)
from dp_leakage.release.make import release
from dp_leakage.release.outside import follows_from
from dp_leakage.release.sheet import BANDS, page, sheet_of
from dp_leakage.release.statement import check_statement, recomputed, spent_in_words, statement_of, training_told
from dp_leakage.release.verify import verify
from dp_leakage.study.steps import prepare_settings, project_settings
from dp_leakage.training.released import Release
from dp_leakage.training.settings import TrainingSettings

REPO = Path(__file__).parents[2]
CELL = "mlp/gaussian-rdp-eps=1"


@pytest.fixture
def copy(made, tmp_path):
    """A release that may be damaged."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_a_release_is_verified_without_the_data(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert check([str(made)]) == 0
    said = capsys.readouterr().out
    assert "at δ = 1e-05, for one record added or removed" in said
    assert not any(tmp_path.iterdir())


def test_its_noise_is_solved_for_all_records_of_the_pool(plan, made):
    told = json.loads((made / PRIVACY).read_text())
    assert len(plan.rows) == told["mechanism"]["records"] == 1200
    assert told["mechanism"]["sampling_probability"] == 240 / 1200
    spent = {row["delta"]: row["epsilon"] for row in told["epsilon"]}
    assert 50 < spent[1e-5] <= told["epsilon_asked"] == 100
    assert spent[1e-5] < spent[1e-6] < spent[1e-8]


def test_the_noise_that_trains_is_the_noise_that_is_stated(plan, made):
    assert json.loads((made / PRIVACY).read_text())["mechanism"]["noise_multiplier"] == plan.training.mechanism.sigma


def test_the_card_says_how_often_it_is_right_if_records_are_independent_and_how_often_a_guess_is(plan, made):
    told = json.loads((made / PRIVACY).read_text())["model"]
    low, high = (100 * end for end in wilson(told["accuracy"], len(plan.judged))[1:])
    largest = np.unique(plan.data.y[plan.judged], return_counts=True)[1].max() / len(plan.judged)
    card = (made / "MODEL_CARD.md").read_text()
    assert f"(95 % interval, if records are independent: {low:.1f} to {high:.1f} %)" in card
    assert f"the share of the largest class, which a guess reaches: {100 * largest:.1f} % of these records." in card


def test_the_curve_lies_under_the_gaussian_of_its_mu_and_above_guessing(made):
    from dp_leakage.privacy.accounting.tradeoff import gaussian

    told = json.loads((made / PRIVACY).read_text())
    for row in told["trade_off"]:
        assert row["fpr"] <= row["tpr_at_most"] <= gaussian(told["mu"]).tpr(row["fpr"]) + 1e-9
    assert 0 <= told["regret_of_mu"] < 0.1


def test_the_sheet_says_how_often_a_record_can_be_reconstructed_and_dp_accounting_agrees(made):
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    sheet, told = (made / SHEET).read_text(), json.loads((made / PRIVACY).read_text())["mechanism"]
    found = re.search(r"if it is 1 % without the model</th><td>at most ([0-9.]+) %</td>", sheet)
    losses = from_gaussian_mechanism(told["noise_multiplier"], sampling_prob=told["sampling_probability"])
    epsilons = np.linspace(0, 150, 3001)
    deltas = losses.self_compose(told["steps"]).get_delta_for_epsilon(epsilons)
    reached = np.min(np.exp(epsilons) * 0.01 + deltas)  # of the hockey-stick divergence at every ε
    assert 0 <= float(found[1]) - 100 * min(reached, 1) < 0.3


def test_the_sheet_bounds_both_games_and_says_which_scale_it_is_of(plan, made):
    told = json.loads((made / PRIVACY).read_text())
    proven = told["advantage_at_most"]
    run = (told["mechanism"]["epochs"], told["mechanism"]["batch_size"], told["mechanism"]["records"])
    replaced = proven_curve(Training(plan.training.mechanism, *run), "replace_one").advantage
    assert proven < replaced <= 2 * proven
    found = re.findall(r"no attack has an advantage above (\d\.\d+)", (made / SHEET).read_text(), re.IGNORECASE)
    assert [float(limit) for limit in found] == pytest.approx([proven, min(2 * proven, 1)], abs=1e-3)
    assert any("scale 'smoke', which is smaller" in sentence for sentence in told["outside"])


@pytest.fixture
def between(made):
    """A statement whose limits lie between figures, nearer to the one below."""
    told = json.loads((made / PRIVACY).read_text())
    told["epsilon"] = [row | {"epsilon": 1.23441} for row in told["epsilon"]]
    told["precision_at_fpr_0.001"][0]["precision_at_most"] = 0.02049
    costs = {"epsilon_of_one_training": 0.43211, "epsilon_of_choosing": 0.80231}
    told["selection"] = {"runs": "geometric", "mean": 3, "score_noise": None, "settings": "two"} | costs
    told["measured"]["audits"] = [
        {"epsilon_at_least": 0.8768, "delta": 1e-5, "confidence": 0.95, "could_have_shown": 1.2}
    ]
    return told


def test_no_limit_of_the_sheet_is_rounded_to_the_better_side(between):
    sheet = page(sheet_of(between))
    assert sheet.count("ε = 1.235 at δ = ") == len(between["epsilon"])
    assert "1.234" not in sheet
    assert ">at most 0.3 of 10</td>" in sheet
    assert "One training spends ε = 0.4322; the choice adds 0.8024, which the ε above includes." in sheet
    assert "The study: ε ≥ 0.876 at δ" in sheet


def test_no_sentence_says_less_than_what_was_spent(between, monkeypatch):
    assert spent_in_words(between) == "ε = 1.235 at δ = 1e-05"
    monkeypatch.setattr(statement, "recomputed", lambda told, deltas: [1.23441] * len(deltas))
    monkeypatch.setattr(statement, "proven", lambda told: {})
    told = between | {"selection": None, "measured": {"attacks_run": []}}
    assert [said.split(" at ")[0] for said in check_statement(told, "x")] == ["ε = 1.235"] * len(told["epsilon"])


@pytest.mark.parametrize(
    ("proven", "word", "times"),
    [(0.1, "Strong", 55), (0.1001, "Moderate", 56), (0.5, "Moderate", 75), (0.615, "Weak", 81), (0.9001, "No", 96)],
)
def test_the_verdict_is_what_is_proven_on_a_fixed_scale(between, proven, word, times):
    sheet = sheet_of(between | {"advantage_at_most": proven})
    assert sheet.word.startswith(f"{word} protection")
    assert f"could be right up to {times} times in 100." in sheet.decides
    assert [limit for limit, *_ in BANDS] == sorted({limit for limit, *_ in BANDS})


def test_the_sheet_says_how_often_the_strongest_attack_was_right_and_draws_no_more(between):
    assert "No attack was run; a coin is right 50 times." in sheet_of(between).decides
    advantage = {"value": 0.12, "low": 0.1, "high": 0.14}
    measured = {"attacks_run": ["yeom"], "attacks_not_run": ["rmia"], "models": 8, "trained_on_half": True}
    sheet = sheet_of(between | {"measured": measured | {"advantage": advantage}})
    assert "The strongest attack that was run was right 56 times; a coin is right 50 times." in sheet.decides
    assert re.findall(r'class="count"[^>]*>(\d+)<', sheet.bar)[0] == "56"
    words = "The strongest has an advantage of 0.120 [0.100, 0.140]. 1 other attack was not run, so more may leak."
    assert any(point.endswith(words) for point in sheet.sections[3].points)


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        ("poisson", "Poisson batches (a record is in each with a chance of 20 %, independently of all others); "),
        ("shuffle", "shuffled batches (a record is in one of them in every epoch; each has 20 % of all records); "),
    ],
)
def test_the_sheet_says_in_words_how_batches_are_drawn(made, sampler, words):
    told = json.loads((made / PRIVACY).read_text())
    told["mechanism"]["sampler"] = sampler
    assert f"40 steps, {words}" in page(sheet_of(told))


def test_weights_are_those_of_the_architecture(plan, made):
    tensors = load_file(made / WEIGHTS)
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        name: tuple(value.shape) for name, value in Release(*_short(plan)).parameters().items()
    }


def _short(plan):
    (settings,) = plan.grid
    return plan.layers(settings), *plan.records, TrainingSettings(**settings["training"]), plan.training.mechanism


def test_two_releases_are_two_models(plan, made, tmp_path):
    release(plan, tmp_path / "other", 60.0, NOT_MEASURED)
    ours, other = load_file(made / WEIGHTS), load_file(tmp_path / "other" / WEIGHTS)
    assert not any(np.array_equal(ours[name], other[name]) for name in ours)


# ------------------------------------------------------------------ what a folder must not hold
def words_of(folder):
    """Every file's bytes as text, in each of the ways in which a word may lie in them."""
    return {path.name: path.read_bytes().decode("latin-1") for path in folder.iterdir()}


def test_nothing_in_it_tells_who_was_in_the_training(plan, made):
    study = plan.study
    seeds = [plan.grid[0]["seed"], study.spec["seed"], prepare_settings(study, "digits")["seed"]]
    seeds += [project_settings(study, "digits")["seed"], plan.grid[0]["subset"]["coins"]]
    paths = [str(REPO), str(Path.home()) + "/", os.getcwd(), str(made.parent), "/tmp", sys.prefix]
    for name, text in words_of(made).items():
        for seed in seeds:
            assert not re.search(rf"(?<!\d){seed}(?!\d)", text), f"{name}: seed {seed}"
        for path in paths:
            assert path not in text, f"{name}: {path}"
        for word in ("seed", "train_indices", "identity", "coins", os.environ.get("USER", "no such name here")):
            assert word not in text, f"{name}: {word}"
    # No array is as long as the members' list, or holds whole numbers.
    for tensor in load_file(made / WEIGHTS).values():
        assert tensor.dtype == np.float32
        assert len(plan.rows) not in tensor.shape


def test_no_list_of_rows_is_in_its_json(plan, made):
    rows = set(plan.rows.tolist())

    def lists(value):
        if isinstance(value, dict):
            for each in value.values():
                yield from lists(each)
        elif isinstance(value, list):
            yield value
            for each in value:
                yield from lists(each)

    for path in made.glob("*.json"):
        for found in lists(json.loads(path.read_text())):
            whole = [each for each in found if isinstance(each, int) and each in rows]
            assert len(whole) < 10, path.name


# ------------------------------------------------------------------ verify
def test_hashes_that_were_cut_are_no_longer_those_of_a_release(copy):
    """A byte of white space at the end makes no difference to JSON."""
    (copy / HASHES).write_bytes((copy / HASHES).read_bytes()[:-1])
    with pytest.raises(UserError, match=r"hashes\.json is not as a release writes it: it was cut or edited"):
        verify(copy)


def test_a_large_file_is_never_in_memory_as_a_whole(copy, monkeypatch):
    """One that no model of ours has is refused by its size."""
    read = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path.name))
    verify(copy)
    assert read == []
    os.truncate(copy / WEIGHTS, LARGEST + 1)
    with pytest.raises(UserError, match=r"weights\.safetensors has 4,294,967,297 bytes; it must have at most"):
        verify(copy)


@pytest.mark.parametrize("name", [*WHOLE, HASHES])
def test_a_changed_byte_is_found(copy, name):
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(UserError, match="has changed" if name != HASHES else HASHES):
        verify(copy)


def test_a_missing_and_a_foreign_file_are_found(copy):
    (copy / "more.txt").write_text("more")
    with pytest.raises(UserError, match=r"more.txt is not in hashes.json"):
        verify(copy)
    (copy / "more.txt").unlink()
    (copy / WEIGHTS).unlink()
    with pytest.raises(UserError, match="is missing"):
        verify(copy)


def restated(folder, change):
    """Changes the statement, and its hash as a forger would."""
    told = json.loads((folder / PRIVACY).read_text())
    change(told)
    content = json.dumps(told).encode()
    (folder / PRIVACY).write_bytes(content)
    hashes = json.loads((folder / HASHES).read_text())
    (folder / HASHES).write_bytes(as_json(hashes | {PRIVACY: sha256(content).hexdigest()}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda told: told["epsilon"][0].update(epsilon=1.0), "epsilon must be"),
        (lambda told: told["mechanism"].update(noise_multiplier=9.0), "epsilon must be"),
        (lambda told: told["mechanism"].update(steps=1), "steps and sampling_probability must be 40 and 0.2"),
        (
            lambda told: told.update(epsilon_asked="much"),
            "key 'epsilon_asked' is 'much'; expected null, or a number above 0",
        ),
        (lambda told: told.update(delta=0.5), "key 'delta' must be that of a row of epsilon"),
        (lambda told: told.update(files={}), "key 'files' must be the SHA-256"),
        (lambda told: told["mechanism"].update(noise_multiplier=1e-300), "a number of at least 0.001"),
        (lambda told: told["mechanism"].update(records=10**30), "a whole number from 1 to"),
        (lambda told: told["mechanism"].update(steps=None), "key 'mechanism.steps' is None; expected a whole number"),
        (
            lambda told: told.update(epsilon=[{"delta": 1e-5, "epsilon": float("nan")}]),
            "key 'epsilon.0.epsilon' is nan; expected a number",
        ),
        (lambda told: told.update(selection={"mean": 10}), "key 'selection' lacks the key 'runs'"),
        (lambda told: told.update(epsilon_asked=1.0), "above the 1 requested"),
        (lambda told: told.update(epsilon=[]), "a row for each delta"),
        (
            lambda told: told["mechanism"].update(sampler="cyclic"),
            "key 'mechanism.sampler' is 'cyclic'; valid: poisson, shuffle",
        ),
        (lambda told: told.update(neighbors="zero_out"), "neighbors must be 'add_remove'"),
        (lambda told: told.update(format="other"), "privacy statement"),
        (
            lambda told: told.update(unit="one house"),
            "key 'unit' must be 'one record' or 'one person'; got 'one house'",
        ),
        (lambda told: told.update(unit="one person"), "key 'mechanism' lacks the key 'persons'"),
        (lambda told: told.pop("mechanism"), "key 'mechanism' is None; expected a mapping"),
        (
            lambda told: told["mechanism"].update(bound="none"),
            "key 'mechanism.bound' is 'none'; valid: clip, normalize",
        ),
        (lambda told: told["mechanism"].update(clip_norm=1e9), "key 'mechanism.clip_norm' is 1000000000.0; expected"),
        (lambda told: told.update(advantage_at_most=0.01), "advantage_at_most must be 0.9"),
        (lambda told: told.update(advantage_at_most=True), "advantage_at_most must be 0.9"),
        (lambda told: told.update(advantage_at_most=10**400), "advantage_at_most must be 0.9"),
        (lambda told: told.update(trade_off=[]), r"trade_off must be \[.*; got \[\]"),
        (lambda told: told["trade_off"][4].update(tpr_at_most=0.02), "trade_off must be"),
        (lambda told: told.update(mu=0.1), "mu must be"),
        (lambda told: told.update(mu=None), "mu must be"),
        (lambda told: told.update(regret_of_mu=0.0), "regret_of_mu must be"),
        (lambda told: told.pop("precision_at_fpr_0.001"), "precision_at_fpr_0.001 must be"),
        (
            lambda told: told.update(outside=[]),
            "key 'outside' must hold the sentence .Whoever is in the data as more than one",
        ),
        (lambda told: told.update(outside=told["outside"][:-1]), "key 'outside' must hold"),
        (lambda told: told.update(outside=None), "key 'outside' must hold"),
        (lambda told: told.pop("model"), "keys 'model' and 'measured' must be as a release writes them"),
        (lambda told: told.update(measured=7), "keys 'model' and 'measured' must be as a release writes them"),
        (lambda told: told.pop("selection"), "key 'selection' is missing"),
        (lambda told: told["epsilon"].append(told["epsilon"][0]), "one row for each delta"),
        (lambda told: told["declared"].update(question="Is it safe?"), "must agree with privacy.json"),
        (lambda told: told.update(declared=7), "must be as a release writes it"),
    ],
)
def test_a_statement_that_does_not_hold_is_refused_even_if_its_hash_is_right(copy, change, sentence):
    restated(copy, change)
    with pytest.raises(UserError, match=sentence):
        verify(copy)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"expires": f"{date.today() - timedelta(days=2)}"}, "It has expired: its last day was "),
        ({"expires": "end of 2027"}, "Whether it has expired is not known: its last day is 'end of 2027'"),
        ({"expires": [2027]}, "Whether it has expired is not known: its last day is '[2027]'"),
        ({"expires": f"{date.today() + timedelta(days=2)}"}, None),
        ({}, None),
        ("nothing", None),
    ],
)
def test_a_release_that_has_expired_is_whole_and_verify_says_that_it_has(copy, made, declared, sentence):
    restated(copy, lambda told: told.update(declared=declared, made_by="dp-leakage 0.2.0.dev"))
    whole = verify(made)
    said = [line for line in verify(copy) if line not in whole]
    assert said.pop(0).startswith("MODEL_CARD.md and sheet.html were not compared with privacy.json")
    assert (said == []) if sentence is None else (len(said) == 1 and said[0].startswith(sentence))


def test_a_number_that_is_proven_is_refused_if_it_is_a_thousandth_less_however_small_it_is():
    """With much noise, limits at small rates are smaller than any fixed tolerance."""
    training = Training(Mechanism("shuffle", noise_multiplier=30.0), 3, 100, 1000)
    told = statement_of(training_told(training, 1000), accountant="gdp", epsilon=None, delta=1e-6, selection=None) | {
        "model": {"columns": [], "accuracy_on": 0},
        "measured": {"attacks_run": []},
    }
    told["outside"] = follows_from(told)
    check_statement(told, "it")
    proven = ("epsilon", "trade_off", "advantage_at_most", "precision_at_fpr_0.001", "mu")
    for path in [path for path in leaves(told) if path and path[0] in proven]:
        changed = json.loads(json.dumps(told))
        place = changed
        for key in path[:-1]:
            place = place[key]
        if not isinstance(place[path[-1]], float):
            continue
        place[path[-1]] *= 0.999
        with pytest.raises(UserError):
            check_statement(changed, "it")


@pytest.mark.parametrize("sampler", ["poisson", "shuffle"])
def test_epsilon_is_that_of_opacus_and_of_the_exact_formula(sampler):
    from dp_accounting import get_epsilon_gaussian
    from opacus.accountants import PRVAccountant

    told = {"noise_multiplier": 1.5, "sampler": sampler, "sampling_probability": 0.05, "steps": 400, "epochs": 20}
    (found,) = recomputed({"mechanism": told}, [1e-5])
    if sampler == "shuffle":
        assert found == pytest.approx(get_epsilon_gaussian(1.5 / np.sqrt(20), 1e-5), rel=1e-3)
        return
    accountant = PRVAccountant()
    accountant.history = [(1.5, 0.05, 400)]
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=0.02)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b'{"privacy.json": 1}', b"null"]
)
@pytest.mark.parametrize("name", [HASHES, PRIVACY])
def test_a_damaged_statement_or_list_is_refused_in_one_sentence(copy, name, content, capsys):
    (copy / name).write_bytes(content)
    if name == PRIVACY:
        hashes = json.loads((copy / HASHES).read_text())
        (copy / HASHES).write_bytes(as_json(hashes | {PRIVACY: sha256(content).hexdigest()}))
    assert check([str(copy)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert "Traceback" not in said


ODD = [None, True, -1, 0, 1.5, 10**400, float("nan"), float("inf"), -float("inf"), "", "poisson", [], {}, [[]], "1e-5"]


def leaves(value, path=()):
    """The way to each place of a statement."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from leaves(below, (*path, key))


def test_whatever_stands_in_a_statement_it_holds_or_is_refused_in_one_sentence(copy, monkeypatch):
    known = {}

    def once(told, deltas):
        key = json.dumps([told["mechanism"], told["selection"], deltas])
        return known[key] if key in known else known.setdefault(key, recomputed(told, deltas))

    monkeypatch.setattr(statement, "recomputed", once)
    told = json.loads((copy / PRIVACY).read_text())
    read = ("mechanism", "selection", "epsilon", "epsilon_asked", "delta", "neighbors", "format", "unit")
    told["mechanism"] = {key: value for key, value in told["mechanism"].items() if key in statement.MECHANISM}
    ours = [path for path in leaves(told) if path and path[0] in read]
    for path in ours:
        for value in ODD:
            changed = json.loads(json.dumps(told))
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            try:
                check_statement(changed, "privacy.json")
            except UserError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert path[0] not in ("epsilon", "format", "neighbors", "unit") or changed == told, (path, value)


def test_a_foreign_folder_a_file_and_a_link_are_refused(tmp_path, copy):
    with pytest.raises(UserError, match=r"is not a release: hashes.json is missing"):
        verify(tmp_path)
    with pytest.raises(UserError, match="must be the folder of a release"):
        verify(copy / MODEL)
    (copy / MODEL).rename(tmp_path / "elsewhere")
    (copy / MODEL).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="must be a file"):
        verify(copy)


def test_a_file_that_is_listed_nowhere_and_is_not_there_is_missed(copy):
    hashes = json.loads((copy / HASHES).read_text())
    del hashes[MODEL]
    (copy / MODEL).unlink()
    (copy / HASHES).write_bytes(as_json(hashes))
    with pytest.raises(UserError, match=r"model.onnx is missing; a release holds"):
        verify(copy)


# ------------------------------------------------------------------ whole or nothing
class Killed(BaseException):
    """In place of a kill, at a chosen moment."""


def test_a_kill_at_any_moment_of_writing_leaves_nothing_or_the_whole(made, tmp_path, monkeypatch):
    files = {path.name: path.read_bytes() for path in made.iterdir() if path.name != HASHES}
    moments = 0
    for calls in range(100):
        folder, left = tmp_path / f"model{calls}", calls

        def killing(real):
            def call(*arguments, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    raise Killed
                return real(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(folders.os, "fsync", killing(os.fsync))
            patch.setattr(Path, "rename", killing(Path.rename))
            patch.setattr(Path, "mkdir", killing(Path.mkdir))
            patch.setattr(folders.shutil, "rmtree", killing(shutil.rmtree))
            try:
                write_release(folder, files)
            except Killed:
                moments += 1
        if folder.exists():
            verify(folder)
        else:
            write_release(folder, files)
            verify(folder)
            assert not working_folder(folder).exists()
        if left >= 0:
            break
    # Two removals; the folder, that above it, the folder again; each file and the hashes; the name, and two folders'.
    assert moments == len(files) + 9


def test_a_killed_training_goes_on_and_no_epoch_is_taken_twice(plan, tmp_path, monkeypatch):
    taken, real = [], Release.run_epoch

    def counted(self):
        taken.append(self.epoch)
        return real(self)

    monkeypatch.setattr(Release, "run_epoch", counted)

    def stop(epoch, epochs):
        if epoch == 3:
            raise Killed

    folder = tmp_path / "model"
    with pytest.raises(Killed):
        release(plan, folder, 0.0, NOT_MEASURED, stop)
    assert not folder.exists()
    release(plan, folder, 0.0, NOT_MEASURED)
    assert taken == list(range(plan.grid[0]["training"]["epochs"]))
    verify(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]  # the checkpoint is erased


def test_a_second_release_is_refused_and_what_a_kill_left_beside_the_first_is_erased(plan, copy):
    working_folder(copy).mkdir()
    with pytest.raises(UserError, match="spends its ε again"):
        release(plan, copy, 60.0, NOT_MEASURED)
    assert not working_folder(copy).exists()


def test_earlier_releases_of_the_study_are_named_with_what_they_spent_whatever_their_folder_is_called(made, tmp_path):
    for name in ("released", "other-mlp-a", "damaged", "hollow"):
        shutil.copytree(made, tmp_path / name)
    (tmp_path / "damaged" / PRIVACY).write_text('{"study": "quickstart", "epsilon": [3], "delta": 1}')
    (tmp_path / "hollow" / PRIVACY).unlink()
    said = json.loads((made / PRIVACY).read_text())
    spent = {row["delta"]: row["epsilon"] for row in said["epsilon"]}[said["delta"]]
    sentences = released_before(tmp_path / "released-again", "quickstart")
    for name, sentence in zip(("other-mlp-a", "released"), sentences, strict=True):
        words = f"is of study quickstart too, with ε = {rounded_up(spent, 4)} at δ = {said['delta']:g}. "
        assert sentence.startswith(f"{tmp_path / name} {words}")
    assert released_before(tmp_path / "released-again", "other") == []
    assert released_before(tmp_path / "none" / "released-again", "quickstart") == []


def test_the_command_names_earlier_releases_before_it_reads_the_records(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(REPO)

    def stop(*_):
        raise UserError("no further")

    monkeypatch.setattr("dp_leakage.release.plan.plan_of", stop)
    shutil.copytree(made, tmp_path / "released")
    for scale in ("smoke", "paper"):
        assert make(["quickstart", CELL, "--scale", scale, "--to", str(tmp_path / "second")]) == 1
        said = capsys.readouterr()
        assert said.err == "error: no further\n"
        assert said.out.startswith(f"{tmp_path / 'released'} is of study quickstart too, with ε = ")
        assert re.search(
            "^The (study has no report|report (recommends|does not recommend) this setting)", said.out, re.M
        )


def test_a_folder_of_the_users_beside_a_release_is_not_taken_for_an_unfinished_one(copy, tmp_path):
    for folder in (copy, tmp_path / "new"):
        working_folder(folder).mkdir()
        (working_folder(folder) / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="exists already"):
        folders.check_new(copy)
    with (
        pytest.raises(UserError, match=r"\.new\.unfinished is not a release's; rename it"),
        folders.alone(tmp_path / "new"),
    ):
        pass
    for folder in (copy, tmp_path / "new"):
        assert (working_folder(folder) / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("name", [".", "..", "/", "", "copy/.."])
def test_a_folder_that_is_there_is_refused_however_it_is_called(copy, monkeypatch, name):
    monkeypatch.chdir(copy.parent)
    with pytest.raises(UserError, match="exists already"):
        folders.check_new(Path(name))


def test_two_processes_do_not_make_one_release(plan, tmp_path):
    with folders.alone(tmp_path / "model"), pytest.raises(UserError, match="is being made by another process"):
        release(plan, tmp_path / "model", 60.0, NOT_MEASURED)
    assert not (tmp_path / "model").exists()


@pytest.mark.faults
def test_a_killed_process_leaves_nothing_or_the_whole(tmp_path):
    folder = tmp_path / "model"
    command = [sys.executable, "-m", "dp_leakage", "release", "quickstart", CELL]
    command += ["--scale", "smoke", "--to", str(folder)]
    for seconds in (3, 5, 6, 7, 8):
        process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if folder.exists():
            break
    if not folder.exists():
        subprocess.run(command, cwd=REPO, check=True, timeout=300)
    verify(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


# ------------------------------------------------------------------ complaints
@pytest.mark.parametrize("expires", ["2025-12-31", "today", "not a date", "20991231", "2099-02-29"])
def test_a_release_that_would_have_expired_or_expires_on_no_day_is_not_made(tmp_path, monkeypatch, capsys, expires):
    (tmp_path / "workflow").symlink_to(REPO / "workflow")
    given = f"{datetime.now(UTC).date()}" if expires == "today" else expires
    overrides = {"quickstart": {"release": {"expires": given, "cell": CELL}}}
    config = yaml.safe_load((REPO / "config.yaml").read_text()) | {"scale": "smoke", "overrides": overrides}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(tmp_path)
    assert make(["quickstart"]) == 1
    said = capsys.readouterr().err
    assert f"release.expires' is '{given}'; expected a day" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "releases").exists()


@pytest.mark.parametrize(
    ("run", "words", "sentence"),
    [
        (make, ["nothing", "mlp/none"], "no study is called 'nothing'"),
        (make, ["quickstart", "mlp/none"], "has no privacy budget"),
        (make, ["quickstart", "mlp/gaussian-rdp-eps=11"], "did you mean 'mlp/gaussian-rdp-eps=1'"),
        (make, ["atlas", "mlp/vmf"], "has no cell 'mlp/vmf'"),
        (make, ["atlas", "mlp/vmf-sum-vmf_rdp-eps=100"], "must have Gaussian noise; got 'vmf'"),
        (
            make,
            ["quickstart"],
            "CELL is missing: study quickstart names none in release.cell; valid: mlp/",
        ),
        (check, ["nowhere"], "must be the folder of a release"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_sentence(run, words, sentence, monkeypatch, capsys):
    monkeypatch.chdir(REPO)
    assert run([*words, *(["--to", "/nonexistent/model"] if run is make else [])]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
