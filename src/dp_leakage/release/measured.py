"""A study's measurements on its own models of the released cell."""

import json

import numpy as np
import pandas as pd

from dp_leakage.attacks import ATTACKS
from dp_leakage.audits import approximate_dp
from dp_leakage.audits.designs import reach
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.metrics.coin_audit import SHARE
from dp_leakage.metrics.rates import fewest
from dp_leakage.metrics.runs import ALL
from dp_leakage.provenance.files import REBUILD
from dp_leakage.report.claims import verdict_on
from dp_leakage.report.leak import leaks
from dp_leakage.steps._metrics import read_metrics
from dp_leakage.study import Study
from dp_leakage.study.cells import MEMBERSHIP, Cell
from dp_leakage.study.paths import CLAIMS, METRICS
from dp_leakage.study.protocol import COINS, design_of
from dp_leakage.study.steps import delta_of, measure_settings

OWN_CURVE = "The study, if only the strength of this mechanism's noise is in doubt"


def measured_of(study: Study, cell: Cell, coins: int) -> Json:
    """Return results of attacks and audits on the study's models; only names if the study was not run.

    Args:
        study, cell: source of the release.
        coins: number of records or people with random inclusion in a model, for the largest bound that an audit could
            show.

    Raises:
        UserError: the study's metrics are damaged, or of other settings.
    """
    path = study.path(METRICS, cell)
    known = [name for name, attack in ATTACKS.items() if attack.family == MEMBERSHIP]
    if not path.exists():
        return {"attacks_run": [], "attacks_not_run": known}
    try:
        frame = read_metrics([path], [identity(measure_settings(study, cell))])
    except UserError as error:
        words = f"run `dp-leakage run {study.target}` first, or delete it: the release then says nothing of attacks"
        raise UserError(f"{str(error).removesuffix(REBUILD)}{words}") from None
    frame = frame[frame["repeat"] == ALL]
    told: Json = {
        "attacks_run": cell.membership,
        "attacks_not_run": [name for name in known if name not in cell.membership],
        "models": study.spec["repeats"],
        "trained_on_half": design_of(study.spec) == COINS,
        "audits": _audits(frame, delta_of(study, cell), coins),
    }
    if (leak := leaks(frame).get((cell.dataset, cell.model, cell.defense))) is not None:
        told["strongest_attack"] = leak.attack
        told["advantage"] = leak.advantage._asdict()
        told["tpr"] = [{"fpr": fpr, **found._asdict()} for fpr, found in sorted(leak.tprs.items())]
        told["tpr_not_measured"] = [
            {"fpr": fpr, "independent_nonmembers": int(worth), "needed": fewest(fpr)}
            for fpr, worth in sorted(leak.too_few.items())
        ]
    return told


def advice_of(study: Study, cell: Cell) -> list[str]:
    """Return the statements of the study's report about a cell that is to be released. Raises UserError if its claims
    cannot be read.
    """
    path = study.path(CLAIMS)
    if not path.exists():
        return [f"The study has no report: {path} would say whether this setting is useful and protects."]
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return verdict_on(content, (cell.dataset, cell.model, cell.defense))
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} cannot be read; run `dp-leakage run {study.target}` again, which writes it") from None


def _audits(frame: pd.DataFrame, delta: float, coins: int) -> list[Json]:
    """Return each lower bound on ε, with the audit's reach if known."""
    found = []
    bounds = frame[frame["metric"] == "epsilon_lower_bound"]
    for row in bounds.itertuples():
        most: float | None = row.reach
        own = row.claim == "own"
        if np.isnan(row.reach):  # guesses of the study's own coins
            claim = approximate_dp(delta)
            most = None if own else reach("one_run", int(row.runs) * coins, claim, row.confidence, SHARE)
        audit = {"epsilon_at_least": float(row.value), "could_have_shown": most, "delta": delta}
        named = {"of": OWN_CURVE} if own else {}
        found.append(audit | named | {"confidence": float(row.confidence), "neighbors": row.neighbors})
    return found
