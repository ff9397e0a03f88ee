"""Other tools' public code for LiRA and RMIA, called on the signals that ours gets, where it can be imported.

    python benchmarks/membership.py --rivals FOLDER    # FOLDER:FOLDER… holds checkouts of the tools' repositories

But for ART, none of the tools is in the package registry with these attacks, so a folder with the repositories must be
given. What cannot be imported is left out, with the reason. Each function here makes the tool's own input from signals,
which is not timed, and returns the call that is, whose result are scores, higher for members.
"""

import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.signals import Signals

A = 0.3  # of offline RMIA: P_in = a·P_out + 1 − a, the value that three of the tools come with
Call = Callable[[], np.ndarray]


class Rival(NamedTuple):
    """One way to call another tool.

    Attributes:
        tool: whose code.
        attack: ours that does the same.
        how: what is called.
        prepared: of the target's and the references' signals makes the call to time.
    """

    tool: str
    attack: str
    how: str
    prepared: Callable[[Signals, Signals], Call]


def add_folders(folders: str) -> None:
    """Puts checkouts at the front of Python's path, where their modules are found by their own names."""
    for folder in reversed([part for part in folders.split(os.pathsep) if part]):
        sys.path.insert(0, str(Path(folder).expanduser().resolve()))


def probability(margin: np.ndarray) -> np.ndarray:
    """Of the record's own class."""
    return 1 / (1 + np.exp(-margin))


def found(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


# ---------------------------------------------------------------------- PrivacyGuard
def privacyguard_lira(online: bool, aggregate: bool) -> Callable[[Signals, Signals], Call]:
    """Means and deviations are columns that its user brings: ``aggregate`` them by NumPy within the time, or before."""

    def prepared(target: Signals, others: Signals) -> Call:
        import pandas as pd

        attack = found("privacy_guard.attacks.lira_attack", "LiraAttack")
        kind = found("privacy_guard.analysis.mia.aggregate_analysis_input", "AggregationType").NONE
        asked, of = target.asked, others.asked
        margin, inside, member = of.margin[0], of.trained_on, asked.trained_on[0]

        def columns() -> dict[str, np.ndarray]:
            without = np.where(inside, np.nan, margin)
            if not online:
                return {"score_mean": np.nanmean(without, axis=0), "score_std": np.nanstd(without, axis=0)}
            within = np.where(inside, margin, np.nan)
            return {
                f"score_{what}_{side}": reduce(values, axis=0)
                for side, values in (("in", within), ("out", without))
                for what, reduce in (("mean", np.nanmean), ("std", np.nanstd))
            }

        known = None if aggregate else columns()
        how = {"std_dev_type": "mix", "use_fixed_variance": True} if online else {"std_dev_type": "shadows_out"}

        def run() -> np.ndarray:
            frame = pd.DataFrame({"user_id": asked.record, "score_orig": asked.margin[0, 0], **(known or columns())})
            parts = frame[member].copy(), frame[~member].copy()
            said = attack(*parts, kind, online_attack=online, **how).run_attack()
            return joined(member, said.df_train_merge["score"], said.df_test_merge["score"])

        return run

    return prepared


def privacyguard_rmia(online: bool, tuned: bool = False) -> Callable[[Signals, Signals], Call]:
    def prepared(target: Signals, others: Signals) -> Call:
        import pandas as pd

        attack = found("privacy_guard.attacks.rmia_attack", "RmiaAttack")
        kind = found("privacy_guard.analysis.mia.aggregate_analysis_input", "AggregationType").NONE

        def frame(of_target: Signals, of_others: Signals) -> pd.DataFrame:
            scores = {f"score_ref_{k}": row for k, row in enumerate(probability(of_others.margin[0]))}
            members = {f"member_ref_{k}": row for k, row in enumerate(of_others.trained_on)}
            own = {"user_id": of_target.record, "score_orig": probability(of_target.margin[0, 0])}
            return pd.DataFrame(own | scores | members)

        asked = frame(target.asked, others.asked)
        z = frame(population(target, "rmia"), population(others, "rmia"))
        member = target.asked.trained_on[0]
        models = len(others.trained_on) if online else len(others.trained_on) // 2

        def run() -> np.ndarray:
            parts = asked[member], asked[~member]
            given: dict[str, Any] = {"online": True} if online else {}  # later versions alone have it
            with contextlib.redirect_stdout(io.StringIO()):
                said = attack(*parts, z, kind, models, A, enable_auto_tuning=tuned, **given).run_attack()
            return joined(member, said.df_train_merge["score"], said.df_test_merge["score"])

        return run

    return prepared


# ---------------------------------------------------------------------- LeakPro
def leakpro(module: str, name: str, online: bool, **settings: object) -> Callable[[Signals, Signals], Call]:
    """An attack of LeakPro without its handlers of models and data: their places hold the signals.

    It reads logits of all classes. These are the logarithms of the probabilities, which it normalizes itself; where
    signals have none, there are two classes, with logits 0 and the margin, the least that it can be asked for.
    """

    def prepared(target: Signals, others: Signals) -> Call:
        kind = found(f"leakpro.attacks.mia_attacks.{module}", name)
        asked, of = target.asked, others.asked
        member, n = asked.trained_on[0], len(asked.record)
        label, (own,), others_logits = labels(asked), logits(asked), logits(of)
        attack = object.__new__(kind)
        attack.__dict__.update(
            online=online, num_shadow_models=len(of.trained_on), out_indices=~of.trained_on, fix_var_threshold=32,
            configs=SimpleNamespace(model_dump=dict, vectorized=False), epsilon=1e-6, load_for_optuna=True,
            audit_dataset={
                "data": np.arange(n), "in_members": np.flatnonzero(member), "out_members": np.flatnonzero(~member)
            },
            attack_data_indices=np.arange(n), z_data_sample_fraction=0.5, ground_truth_indices=label,
            handler=SimpleNamespace(
                train_indices=np.flatnonzero(member), test_indices=np.flatnonzero(~member), target_model=None,
                population=np.arange(n), get_labels=label.__getitem__,
            ),
            target_logits=asked.margin[0, 0], shadow_models_logits=of.margin[0], shadow_models=[None] * len(of.rank),
            shadow_model_indices=range(len(of.rank)), logits_theta=own, logits_shadow_models=others_logits,
            **settings,
        )  # fmt: skip
        store = SimpleNamespace(
            load_logits=lambda name="", **at: own if name else others_logits[next(iter(at.values()))]
        )
        source = importlib.import_module(f"leakpro.attacks.mia_attacks.{module}")

        def run() -> np.ndarray:
            np.random.seed(0)
            source.ShadowModelHandler = lambda: store
            if module == "rmia":
                attack.prepare_attack()
            attack.run_attack()
            return joined(member, attack.in_member_signals[:, 0], attack.out_member_signals[:, 0])

        return run

    return prepared


def logits(said: Signals) -> list[np.ndarray]:
    """Of each model, float64 (n, C)."""
    if said.probability is None:
        return [np.column_stack([np.zeros_like(margin), margin]) for margin in said.margin[0]]
    return list(np.log(np.maximum(said.probability.astype(np.float64), 1e-38)))


def labels(said: Signals) -> np.ndarray:
    """The columns of `logits` that are of the records' classes."""
    return np.ones(len(said.y), dtype=int) if said.probability is None else said.y


# ---------------------------------------------------------------------- ML Privacy Meter
def privacy_meter(tuned: bool) -> Callable[[Signals, Signals], Call]:
    """``run_rmia``; its a is given, or chosen by ``tune_offline_a``, which attacks one reference with the others."""

    def prepared(target: Signals, others: Signals) -> Call:
        attack = importlib.import_module("modules.mia.attacks.rmia")
        own, z = target.asked, population(target, "rmia")
        signals, of_z = (probability(part.margin[0].T) for part in (others.asked, population(others, "rmia")))
        inside = others.asked.trained_on.T
        mine, its_z = probability(own.margin[0, 0]), probability(z.margin[0, 0])
        everybody = np.column_stack([mine, signals])
        members = np.column_stack([own.trained_on[0], inside])

        def run() -> np.ndarray:
            a = A
            if tuned:
                rest = signals[:, 1:], inside[:, 1:], of_z[:, 0], of_z[:, 1:]
                a, *_ = attack.tune_offline_a(0, everybody, members, *rest, logging.getLogger("quiet"))
            return attack.run_rmia(mine, signals, inside, its_z, of_z, a)

        return run

    return prepared


# ---------------------------------------------------------------------- TensorFlow Privacy
def tensorflow_privacy(option: str) -> Callable[[Signals, Signals], Call]:
    """``compute_score_lira`` with one variance; a list of arrays, one for each record, is what it takes."""

    def prepared(target: Signals, others: Signals) -> Call:
        package = "tensorflow_privacy.privacy.privacy_tests.membership_inference_attack"
        attack = found(f"{package}.advanced_mia", "compute_score_lira")
        margin, inside = others.asked.margin[0].T, others.asked.trained_on.T
        within, without = (
            [row[held][:, None] for row, held in zip(margin, chosen, strict=True)] for chosen in (inside, ~inside)
        )
        own = target.asked.margin[0, 0][:, None]

        def run() -> np.ndarray:
            return -attack(own, within, without, option=option, fix_variance=True, median_or_mean="mean")

        return run

    return prepared


# ---------------------------------------------------------------------- Adversarial Robustness Toolbox
def art_black_box(kind: str) -> Callable[[Signals, Signals], Call]:
    """Its black-box attack on predictions. It is told who of half of the records is a member, and judges the others;
    then the other way around."""

    def prepared(target: Signals, others: Signals) -> Call:
        attack = found("art.attacks.inference.membership_inference", "MembershipInferenceBlackBox")
        classifier = found("art.estimators.classification", "BlackBoxClassifier")
        asked = target.asked
        assert asked.probability is not None
        said, classes = asked.probability[0], asked.probability.shape[2]
        label, member = np.eye(classes)[asked.y], asked.trained_on[0]
        told = np.random.default_rng(0).random(len(member)) < 0.5

        def run() -> np.ndarray:
            score = np.zeros(len(member))
            for known, asked_about in ((told, ~told), (~told, told)):
                within, without = known & member, known & ~member
                np.random.seed(0)
                model = classifier(lambda x: x, (classes,), classes)
                made = attack(model, input_type="prediction", attack_model_type=kind)
                given = {"pred": said[within], "test_pred": said[without]}
                made.fit(x=None, y=label[within], test_x=None, test_y=label[without], **given)
                found = made.infer(None, label[asked_about], pred=said[asked_about], probabilities=True)
                score[asked_about] = np.asarray(found)[:, -1].ravel()
            return score

        return run

    return prepared


def joined(member: np.ndarray, inside: Iterable[float], outside: Iterable[float]) -> np.ndarray:
    """Scores of members and of the others in the order of the records."""
    score = np.empty(len(member))
    score[member], score[~member] = np.asarray(inside), np.asarray(outside)
    return score


# Defaults of LeakPro are temperature 2 and gamma 2; with 1 and 1 it is the same attack as the others'.
LEAKPRO_LIRA = {"var_calculation": "carlini"}
LEAKPRO_RMIA = {"temperature": 1.0, "gamma": 1.0, "offline_a": A}
RIVALS = (
    Rival("PrivacyGuard", "lira", "LiraAttack, means given", privacyguard_lira(False, aggregate=False)),
    Rival("PrivacyGuard", "lira", "LiraAttack, means by NumPy", privacyguard_lira(False, aggregate=True)),
    Rival("LeakPro", "lira", "AttackLiRA", leakpro("lira", "AttackLiRA", False, **LEAKPRO_LIRA)),
    Rival("TensorFlow Privacy", "lira", "compute_score_lira, out", tensorflow_privacy("out")),
    Rival("PrivacyGuard", "lira_online", "LiraAttack, means given", privacyguard_lira(True, aggregate=False)),
    Rival("PrivacyGuard", "lira_online", "LiraAttack, means by NumPy", privacyguard_lira(True, aggregate=True)),
    Rival("LeakPro", "lira_online", "AttackLiRA", leakpro("lira", "AttackLiRA", True, **LEAKPRO_LIRA)),
    Rival("TensorFlow Privacy", "lira_online", "compute_score_lira, both", tensorflow_privacy("both")),
    Rival("PrivacyGuard", "rmia, a given", "RmiaAttack", privacyguard_rmia(False)),
    Rival("LeakPro", "rmia, a given", "AttackRMIA", leakpro("rmia", "AttackRMIA", False, **LEAKPRO_RMIA)),
    Rival("ML Privacy Meter", "rmia, a given", "run_rmia", privacy_meter(tuned=False)),
    Rival("PrivacyGuard", "rmia", "RmiaAttack, auto-tuning", privacyguard_rmia(False, tuned=True)),
    Rival("ML Privacy Meter", "rmia", "tune_offline_a, run_rmia", privacy_meter(tuned=True)),
    Rival("PrivacyGuard", "rmia_online, a given", "RmiaAttack, online", privacyguard_rmia(True)),
    Rival("LeakPro", "rmia_online, a given", "AttackRMIA", leakpro("rmia", "AttackRMIA", True, **LEAKPRO_RMIA)),
)

# What docs/results/ranking.md shows beside ours: with the tools' own defaults, and the versions that were run.
LEAKPRO_DEFAULTS = {"temperature": 2.0, "gamma": 2.0, "offline_a": 0.33}
RANKED = (
    Rival("LeakPro", "base", "AttackBASE, online", leakpro("base", "AttackBASE", True, **LEAKPRO_DEFAULTS)),
    Rival("LeakPro", "rmia_online", "AttackRMIA, online", leakpro("rmia", "AttackRMIA", True, **LEAKPRO_DEFAULTS)),
    Rival(
        "LeakPro", "rmia_online", "AttackRMIA, online, gamma 1",
        leakpro("rmia", "AttackRMIA", True, **LEAKPRO_DEFAULTS | {"gamma": 1.0}),
    ),
    Rival("PrivacyGuard", "lira_online", "LiraAttack, online", privacyguard_lira(True, aggregate=True)),
    Rival("PrivacyGuard", "rmia", "RmiaAttack, auto-tuning", privacyguard_rmia(False, tuned=True)),
    Rival("ML Privacy Meter", "rmia", "tune_offline_a, run_rmia", privacy_meter(tuned=True)),
    Rival("ART", "", "black box, forest", art_black_box("rf")),
    Rival("ART", "", "black box, boosting", art_black_box("gb")),
)  # fmt: skip
VERSIONS = {
    "LeakPro": "`704a104` (BASE) and `3c0b5d4` (RMIA)",
    "PrivacyGuard": "`3b4b846` (LiRA) and `6e9ad6e` (RMIA)",
    "ML Privacy Meter": "`0b8cb7a`",
    "ART": "1.20.1 from the package registry",
}
