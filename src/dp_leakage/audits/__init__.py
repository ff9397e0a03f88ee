"""Lower bounds on ε, each with a stated confidence for any mechanism of the named type.

All of them test a claim ("this training is (ε, δ)-DP", "it is μ-GDP", "it is this mechanism") and return the largest ε
at which the evidence refutes it; 0 refutes nothing. The neighboring relation is that of the game: a canary that is
present or absent means add/remove, and a canary in place of another record means replace-one. Inputs are scores and
random inclusions, the output is a bound:

* `many_runs_bound`: independent trainings, each with one randomly included canary and one score;
* `one_run_bound`: one training, or several, with many independently included canaries: Steinke, Nasr & Jagielski 2023
  for (ε, δ), Mahloujifar, Melis & Chaudhuri 2024 for every other claim;
* `trials_bound`: independent trainings; one half chooses a threshold and the other half is counted at it.

`many_runs_reach`, `one_run_reach` and `trials_reach` return the best possible bound of each, before training.
`presence_bound` turns a replace-one bound into one on an add/remove or zero-out ε. If several bounds are stated
together, `corrected` limits the probability of any false alarm.
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
