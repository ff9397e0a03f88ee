"""Lower bounds on ε. Each holds with the stated confidence for any mechanism of the kind that it names.

All of them test a claim ("this training is (ε, δ)-DP", "it is μ-GDP", "it is this mechanism") and return the largest ε
at which the evidence refutes it; 0 refutes nothing. The neighboring relation is that of the game: a canary that is
present or absent means add/remove, and a canary in place of another record means replace-one. Scores and coins go in, a
bound comes out:

* `many_runs_bound`: trainings that are independent of each other, each with one coin and one score;
* `one_run_bound`: one training, or several, of many canaries, each with a coin of its own: Steinke, Nasr & Jagielski
  2023 for (ε, δ), Mahloujifar, Melis & Chaudhuri 2024 for every other claim;
* `trials_bound`: independent trainings with a threshold that half of them choose and the other half is counted at.

`many_runs_reach`, `one_run_reach` and `trials_reach` say what each could show at best, before training.
`presence_bound` turns a replace-one bound into one on an add/remove or zero-out ε. Where several bounds are stated
together, `corrected` keeps the chance of a single false alarm.
"""

from dp_leakage.audits.claims import Claim, approximate_dp, gaussian_dp, own_curves
from dp_leakage.audits.found import CONFIDENCE, Audit, corrected
from dp_leakage.audits.many_runs import many_runs_bound, many_runs_reach
from dp_leakage.audits.one_run import one_run_bound, one_run_reach
from dp_leakage.audits.presence import presence_bound
from dp_leakage.audits.trials import trials_bound, trials_reach

__all__ = [
    "CONFIDENCE",
    "Audit",
    "Claim",
    "approximate_dp",
    "corrected",
    "gaussian_dp",
    "many_runs_bound",
    "many_runs_reach",
    "one_run_bound",
    "one_run_reach",
    "own_curves",
    "presence_bound",
    "trials_bound",
    "trials_reach",
]
