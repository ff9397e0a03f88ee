"""Result of a watch as one HTML page that loads nothing, and as JSON."""

import json
from dataclasses import asdict, is_dataclass
from math import isfinite, log10
from typing import Any

import numpy as np

from dp_leakage import __version__
from dp_leakage.common.rounding import decimals_up, rounded_up
from dp_leakage.opacus.findings import Level
from dp_leakage.opacus.judge import FPR, Budget, Judgement
from dp_leakage.opacus.told import ANSWERS, NOT_VERIFIED, RELATIONS, checks, limits, proven_in_words, stated_in_words
from dp_leakage.table import palette

HEADINGS = {
    Level.REFUTED: "Refuted: a stated ε is false, or nothing proves it",
    Level.UNKNOWN: "Cannot tell",
    Level.NOTE: "Notes: true of many correct scripts",
}
LEAST = -4.0  # log₁₀ of the smallest FPR of the picture
WIDE, HIGH = 420.0, 260.0  # of the picture
PAGE = """\
{% extends "page.html" %}
{% block title %}Watched: {{ command }}{% endblock %}
{% block style %}
* { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, "Segoe UI", Roboto, Arial, sans-serif; color: var(--ink); background: var(--paper); }
body { max-width: 62rem; margin: 0 auto; padding: 1rem 1.2rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .6rem 0 .2rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; padding-top: .6rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 46rem; }
.sub, .note { color: var(--gray); font-size: .9rem; }
code { font-family: ui-monospace, Consolas, monospace; font-size: .9em; overflow-wrap: anywhere; }
.answer { background: var(--wash); border-left: 4px solid var(--accent); padding: .7rem 1rem; margin: 1rem 0; }
.answer.refuted { border-color: var(--alarm); } .answer.unknown { border-color: var(--mark); }
.answer p { margin: .3rem 0; max-width: none; }
.answer .decides { font-weight: 600; font-size: 1.25rem; line-height: 1.35; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .7rem; margin: .7rem 0; }
.tile { background: var(--paper); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .8rem; }
.tile h3 { font-size: .85rem; color: var(--gray); margin: 0; }
.tile p { font-size: .85rem; margin: .1rem 0; color: var(--gray); }
.tile .figure { font-size: 1.6rem; font-weight: 700; color: var(--ink); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--gray); border-bottom: 1.5px solid var(--ink); }
th, td { padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top; }
td:first-child { min-width: 9rem; }
tbody tr:last-child td { border-bottom: 1.5px solid var(--ink); }
svg { width: 100%; max-width: 30rem; height: auto; font-size: 11px; fill: var(--gray); }
svg .axis { stroke: var(--line); } svg .guess { stroke: var(--gray); stroke-dasharray: 3 3; fill: none; }
svg .limit { stroke: var(--accent); stroke-width: 2; fill: none; }
{% endblock %}
{% block body %}
<h1>Is this training as private as it says?</h1>
<p class="sub"><code>{{ command }}</code>{% if status %} ended with status {{ status }}{% endif %}</p>
<div class="answer {{ kind }}">
<p class="decides">{{ answer }}</p>
{% for finding in weighty %}
<p>{{ finding.sentence }}</p>
{% endfor %}
<div class="tiles">
{% for tile in tiles %}
<div class="tile"><h3>{{ tile.label }}</h3><p class="figure">{{ tile.figure }}</p><p>{{ tile.words }}</p></div>
{% endfor %}
</div>
</div>
{% for heading, findings in levels %}
<h2>{{ heading }}</h2>
<ul>
{% for finding in findings %}
<li>{{ finding.sentence }} <code>{{ finding.code }}</code></li>
{% endfor %}
</ul>
{% endfor %}
{% for budget in budgets %}
<h2>ε of what ran{% if budget.of %}, {{ budget.of }}{% endif %}</h2>
<p>{{ budget.stated }}.</p>
<div class="wide"><table>
<thead><tr><th scope="col">neighbors</th><th scope="col">ε of what ran, by dp-leakage</th></tr></thead>
<tbody>
{% for neighbors, limit in budget.limits %}
<tr><td>{{ neighbors }}</td><td>{{ limit }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if budget.proven %}
<p>{{ budget.proven }}.</p>
<svg viewBox="-46 -12 {{ wide + 70 }} {{ high + 56 }}" role="img" aria-label="Largest true positive rate of any attack">
{% for y, text in budget.rows %}
<line class="axis" x1="0" x2="{{ wide }}" y1="{{ y }}" y2="{{ y }}"/>
<text x="-6" y="{{ y + 4 }}" text-anchor="end">{{ text }}</text>
{% endfor %}
{% for x, text in budget.columns %}
<line class="axis" x1="{{ x }}" x2="{{ x }}" y1="0" y2="{{ high }}"/>
<text x="{{ x }}" y="{{ high + 16 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
<polyline class="guess" points="{{ budget.guess }}"/>
<polyline class="limit" points="{{ budget.curve }}"/>
<text x="{{ wide / 2 }}" y="{{ high + 36 }}" text-anchor="middle">false positive rate (%)</text>
<text transform="translate(-36,{{ high / 2 }}) rotate(-90)" text-anchor="middle">true positive rate (%)</text>
</svg>
<p class="note">The largest true positive rate of any attack, between a training with a record and one in which its
gradients are zeroed. Dashed: guessing.</p>
{% endif %}
{% endfor %}
<h2>What was verified</h2>
{% for training in trainings %}
{% if trainings | length > 1 %}<h3>Training {{ training.number }}</h3>{% endif %}
<p class="sub">{{ training.mode }}</p>
<div class="wide"><table>
<thead><tr><th scope="col">what</th><th scope="col">how much</th><th scope="col">result</th></tr></thead>
<tbody>
{% for check in training.checks %}
<tr><td>{{ check.what }}</td><td>{{ check.extent }}</td><td>{{ check.result }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if training.tensors %}
<details><summary>Noise on each tensor</summary>
<div class="wide"><table>
<thead><tr><th scope="col">tensor</th><th scope="col">numbers</th><th scope="col">noise / counted</th></tr></thead>
<tbody>
{% for name, size, ratio in training.tensors %}
<tr><td><code>{{ name }}</code></td><td>{{ size }}</td><td>{{ ratio }}</td></tr>
{% endfor %}
</tbody></table></div>
</details>
{% endif %}
{% endfor %}
<p class="note">Each test has a false-alarm rate of one in a million. Intervals are 95 %.</p>
<h2>What a watch cannot verify</h2>
<ul>
{% for sentence in not_verified %}
<li>{{ sentence }}</li>
{% endfor %}
</ul>
<p class="note">dp-leakage {{ version }}</p>
{% endblock %}
"""


def page(judgement: Judgement, command: str, status: int = 0) -> str:
    """Return the HTML page.

    Args:
        judgement: of the watch.
        command: the script with its arguments.
        status: the script's own exit status.
    """

    by_level = {level: [f for f in judgement.findings if f.level is level] for level in reversed(Level)}
    weighty = by_level[Level.REFUTED] or by_level[Level.UNKNOWN]
    kinds = {Level.REFUTED.value: "refuted", Level.UNKNOWN.value: "unknown"}
    return (
        palette.environment()
        .from_string(PAGE)
        .render(
            command=command,
            status=status,
            kind=kinds.get(judgement.verdict, "holds"),
            answer=ANSWERS[judgement.verdict],
            weighty=weighty[:1],
            tiles=_tiles(judgement),
            levels=[(HEADINGS[level], found) for level, found in by_level.items() if found],
            budgets=[_shown(budget, judgement) for budget in judgement.budgets]
            + ([_shown(judgement.together, judgement)] if judgement.together else []),
            trainings=[
                {
                    "number": seen.number,
                    "mode": seen.mode,
                    "checks": checks(seen),
                    "tensors": []
                    if seen.noise is None
                    else [
                        (name, f"{size:,}", f"{ratio:.4f}")
                        for name, size, ratio in zip(seen.names, seen.sizes, seen.noise.by_tensor, strict=True)
                    ],
                }
                for seen in judgement.trainings
            ],
            not_verified=[f"{sentence[0].upper()}{sentence[1:]}." for sentence in NOT_VERIFIED],
            wide=WIDE,
            high=HIGH,
            version=__version__,
        )
    )


def _tiles(judgement: Judgement) -> list[dict[str, str]]:
    """Return the tiles of the first screen."""
    tiles = []
    for budget in judgement.budgets[:1]:
        spent = budget.epsilon["zero_out"]
        words = f"proven for what ran, at δ = {budget.delta:g}; zero-out neighbors"
        tiles.append(
            {"label": "ε of what ran", "figure": "none" if spent is None else rounded_up(spent, 3), "words": words}
            if spent is not None
            else {"label": "ε of what ran", "figure": "none", "words": "nothing bounds the effect of a record"}
        )
        if budget.accounted is not None:
            words = f"by Opacus' accountant '{budget.accountant}'"
            tiles.append({"label": "accounted ε", "figure": f"{budget.accounted:.3g}", "words": words})
        if budget.proven is not None:
            words = f"proven limit for any attack at {100 * FPR:g} % FPR"
            tiles.append({"label": "TPR", "figure": f"{decimals_up(100 * budget.proven.tpr, 2)} %", "words": words})
    for seen in judgement.trainings[:1]:
        if seen.noise is not None:
            low, high = seen.noise.interval
            words = f"times what is counted [{low:.3f}, {high:.3f}]"
            tiles.append({"label": "measured noise", "figure": f"{seen.noise.ratio:.3f}", "words": words})
        tiles.append({"label": "steps", "figure": f"{seen.steps:,}", "words": f"{seen.counted:,} counted"})
    return tiles


def _shown(budget: Budget, judgement: Judgement) -> dict[str, Any]:
    """Return one block of ε with its picture."""
    together = budget is judgement.together
    several = len(judgement.budgets) > 1
    numbers = ", ".join(map(str, budget.trainings))
    curve = budget.proven.curve if budget.proven else []
    return {
        "of": f"trainings {numbers} together" if together else f"training {numbers}" if several else "",
        "stated": f"All trainings on the same data, at δ = {budget.delta:g}" if together else stated_in_words(budget),
        "limits": [(RELATIONS[relation], limit) for relation, limit in limits(budget).items()],
        "proven": proven_in_words(budget)[0].upper() + proven_in_words(budget)[1:] if budget.proven else "",
        "rows": [(round(HIGH * (1 - share), 1), f"{100 * share:g}") for share in (0, 0.25, 0.5, 0.75, 1)],
        "columns": [(round(_x(10.0**power), 1), f"{100 * 10.0**power:g}") for power in range(int(LEAST), 1)],
        "curve": " ".join(f"{_x(fpr):.1f},{HIGH * (1 - tpr):.1f}" for fpr, tpr in curve),
        "guess": " ".join(f"{_x(fpr):.1f},{HIGH * (1 - fpr):.1f}" for fpr, _ in curve),
    }


def _x(fpr: float) -> float:
    return WIDE * (1 - log10(fpr) / LEAST)


def as_json(judgement: Judgement, command: str, status: int = 0) -> str:
    """Return all observations as JSON; infinite numbers are ``"inf"``."""
    value = {"command": command, "script_status": status, "version": __version__, **_plain(judgement)}
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not isfinite(value):
        return "inf" if value > 0 else None
    return value
