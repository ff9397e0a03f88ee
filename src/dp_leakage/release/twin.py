"""Audit of the released training by twins: the same code on the same records, with or without a canary.

A twin differs from the release in one record, or one person with all records, replaced by a canary, and is deleted
afterwards. The operating system decides at random whether the canary is included. A lower bound on ε follows from how
well the models' outputs reveal this, for the claim of exactly this mechanism (`dp_leakage.audits`).
"""

from collections.abc import Callable

import numpy as np
import torch

from dp_leakage.attacks.queries import margins
from dp_leakage.audits import CONFIDENCE, Claim
from dp_leakage.audits.designs import bound, reach
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.data.canaries import Canaries, place
from dp_leakage.data.roles import OUTSIDERS, POOL
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.release.plan import Plan
from dp_leakage.release.statement import relation
from dp_leakage.steps._claims import own_claim
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.released import Release, uniforms
from dp_leakage.training.settings import TrainingSettings

CANARIES = ("optimized", "mislabeled", "blank")
DESIGN, SHARE = "many_runs", 1.0
Show = Callable[[int, int], None]


def most_shown(plan: Plan, models: int) -> float:
    """Return the largest ε that an audit of this many twins could show."""
    return reach(DESIGN, models, _claim(plan), CONFIDENCE, SHARE)


def audited(plan: Plan, models: int, canary: str, state: Checkpoint, show: Show) -> Json:
    """Train the twins one after the other, and return the result: see `measured.measured_of` for the keys.

    Args:
        plan: of the release.
        models: number of twins, ≥ 2.
        canary: one of `CANARIES`.
        state: scores and coins so far; a killed audit goes on from it.
        show: called after each twin with the number of finished ones and of all.

    Raises:
        UserError: a twin diverged, or the state belongs to another audit.
    """
    roles = {POOL: plan.rows, OUTSIDERS: plan.judged if len(plan.judged) else plan.rows}
    placed = place(plan.data._replace(roles=roles), canary, 1, False, 0)
    known: Json = {"scores": [], "held": []} if (saved := state.load()) is None else saved[1]
    while len(known["scores"]) < models:
        held = bool(uniforms(1)[0] <= 0.5)
        known["scores"].append(_score(plan, placed, held))
        known["held"].append(held)
        if state.due():
            state.save({}, known)
        show(len(known["scores"]), models)
    state.save({}, known)
    scores, coins = np.array(known["scores"]), np.array(known["held"])
    found = bound(DESIGN, scores, coins, _claim(plan), CONFIDENCE, SHARE, 0)
    return {
        "of": f"{models} twins of the training, canary {canary}",
        "epsilon_at_least": found.epsilon,
        "could_have_shown": most_shown(plan, models),
        "delta": _delta(plan),
        "confidence": CONFIDENCE,
        "neighbors": relation(plan.told["sampler"]),
    }


def _score(plan: Plan, placed: Canaries, held: bool) -> float:
    """Return the increase of the margin of the canary's class in one twin's training.

    Each twin has new initial parameters, which the mechanism does not keep secret, so their margin is subtracted.
    """
    settings = plan.grid[0]
    rows = np.concatenate([placed.fixed, placed.held])
    there = torch.ones(len(rows), dtype=torch.bool)
    there[len(placed.fixed) :] = held
    x, y = torch.from_numpy(placed.x[rows]), torch.from_numpy(placed.y[rows])
    person = None if placed.person is None else torch.from_numpy(placed.person[rows])
    layers, training = plan.layers(settings), TrainingSettings(**settings["training"])
    one = Release(layers, x, y, training, plan.training.mechanism, there, person)

    def margin() -> float:
        parameters = {name: tensor[None] for name, tensor in one.parameters().items()}
        model = Ensemble(layers, parameters, torch.arange(len(rows))[None])
        return float(margins(model, placed.x[placed.held], placed.y[placed.held]).mean())

    start = margin()
    while one.epoch < training.epochs:
        if not one.run_epoch():
            raise UserError("audit: a twin of the training diverged; try a tenth of the learning rate")
    return margin() - start


def _claim(plan: Plan) -> Claim:
    """Return the claim of exactly this mechanism, for one training."""
    return own_claim(plan.training, plan.grid[0]["defense"], _delta(plan), relation(plan.told["sampler"]))


def _delta(plan: Plan) -> float:
    return float(plan.cell.columns["delta"])
