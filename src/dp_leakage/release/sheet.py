"""One page for a privacy officer, as HTML and as PDF, from the statement alone."""

import textwrap
import warnings
from io import BytesIO
from typing import NamedTuple

from dp_leakage.common.config import Json
from dp_leakage.common.rounding import decimals_up, rounded_down, rounded_up
from dp_leakage.release.statement import DIGITS, in_words

NOT_DECLARED = "not declared"
DRAWN = {  # sampler → how batches are drawn, with the rate in percent
    "poisson": "Poisson batches (a {unit} is in each with a chance of {rate:.4g} %, independently of all others)",
    "shuffle": "shuffled batches (a {unit} is in one of them in every epoch; each has {rate:.4g} % of all {unit}s)",
}
REBUILT = {"record": "record", "person": "person's records"}
GUESS = 0.01  # chance of reconstructing a record without the model; one of `statement.RATES`
LARGEST, LEAST = 8.5, 3.0  # sizes of the PDF's letters, in points
A4 = 8.27, 11.69  # inches
MARGIN = 0.6  # inches
LINE = 1.32  # of the size of the letters
WIDE = 0.58  # mean width of a letter, of its size
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Privacy sheet</title>
<style>
@page { size: A4; margin: 12mm }
body { font: 10pt/1.35 system-ui, sans-serif; max-width: 190mm; margin: 1em auto; padding: 0 1em }
h1 { font-size: 15pt; margin: 0 0 .3em } h2 { font-size: 10.5pt; margin: .7em 0 .1em } p { margin: .1em 0 }
@media print { body { font-size: 8.5pt; margin: 0; padding: 0 } }
</style>
<h1>Privacy sheet of a released model</h1>
{% for section in sections %}
<h2>{{ section.title }}</h2>
{% for line in section.lines %}
<p>{{ line }}</p>
{% endfor %}
{% endfor %}
</html>
"""


class Section(NamedTuple):
    """A heading and its sentences."""

    title: str
    lines: list[str]


def sections(statement: Json) -> list[Section]:
    """Return the sections of the sheet, in order."""
    declared, measured = statement["declared"], statement["measured"]
    sensitive = ", ".join(declared.get("sensitive_fields", [])) or NOT_DECLARED
    return [
        Section("Question", [declared.get("question") or NOT_DECLARED]),
        Section(
            "Whose data",
            [
                f"Data subjects: {declared.get('data_subjects', NOT_DECLARED)}. Sensitive fields: {sensitive}.",
                f"The model was trained on {records_in_words(statement['mechanism'])}.",
            ],
        ),
        Section("Proven, of any attack", _proven(statement)),
        Section("What the choice of the model cost", [_choice(statement)]),
        Section("Measured, on the study's models", _measured(measured)),
        Section("Audits: lower bounds on ε", _audits(measured)),
        Section("What an accusation is worth", _accusation(statement)),
        Section("Limits: what ε does not cover", [*statement["outside"], LIMITS.format(unit=statement["unit"])]),
        Section(
            "Decision",
            [
                f"Decision: {declared.get('decision', NOT_DECLARED)}. Owner: {declared.get('owner', NOT_DECLARED)}. "
                f"Released: {statement['released']}. Expires: {declared.get('expires', NOT_DECLARED)}.",
                "SHA-256: " + "; ".join(f"{name} {digest}" for name, digest in statement["files"].items()) + ".",
            ],
        ),
    ]


LIMITS = (
    "ε bounds what the model tells about {unit}. It does not bound what it tells about groups or about the "
    "population, and it says nothing about other releases of the same records: their ε add up."
)


def records_in_words(told: Json) -> str:
    """Describe a mechanism's training data, e.g. 653 records of 178 people."""
    of_people = f" of {told['persons']:,} people" if "persons" in told else ""
    return f"{told['records']:,} records{of_people}"


def page(told: list[Section]) -> str:
    """Return the sheet as one HTML file that loads nothing."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(PAGE).render(sections=told) + "\n"


def pdf(told: list[Section]) -> bytes:
    """Return the sheet as one page of A4, with a font size that fits. Its bytes hold no date and no name."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    high = (A4[1] - 2 * MARGIN) * 72
    size = LARGEST
    while len(lines := _lines(told, size)) * LINE * size > high and size > LEAST:
        size -= 0.25
    buffer = BytesIO()
    with rc_context({"pdf.fonttype": 42, "font.family": "sans-serif"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for each letter that the font lacks, which is drawn as a box
        figure = Figure(figsize=A4)
        FigureCanvasPdf(figure)
        for number, (text, bold) in enumerate(lines):
            figure.text(
                MARGIN / A4[0],
                1 - (MARGIN * 72 + LINE * size * number) / (72 * A4[1]),
                text,
                size=size,
                weight="bold" if bold else "normal",
                va="top",
                parse_math=False,
            )
        figure.savefig(buffer, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return buffer.getvalue()


def _lines(told: list[Section], size: float) -> list[tuple[str, bool]]:
    """Return the lines of the PDF at a size of letters, and whether each is a heading."""
    width = int((A4[0] - 2 * MARGIN) * 72 / (WIDE * size))
    found = [("Privacy sheet of a released model", True)]
    for section in told:
        found += [("", False), (section.title, True)]
        found += [(part, False) for line in section.lines for part in textwrap.wrap(line, width)]
    return found


def _proven(statement: Json) -> list[str]:
    rows = statement["epsilon"]
    spent = "; ".join(f"ε = {rounded_up(row['epsilon'], DIGITS)} at δ = {row['delta']:g}" for row in rows)
    told, unit = statement["mechanism"], statement["unit"].removeprefix("one ")
    drawn = DRAWN[told["sampler"]].format(unit=unit, rate=100 * told["sampling_probability"])
    said = [
        f"{spent}, for {in_words(statement)}; computed by dp-accounting.",
        f"Mechanism: Gaussian noise of {told['noise_multiplier']:.4g} times the bound on a {unit}'s gradient, "
        f"{told['steps']:,} steps, {drawn}; batches and noise are random numbers of the operating system, which nobody "
        "can draw again.",
        f"For {in_words(statement)}, no attack has an advantage (true less false positive rate) above "
        f"{_up(statement['advantage_at_most'])}.",
    ]
    if statement["mu"] is not None:
        said[-1] += (
            f" All of it lies within Gaussian noise of μ = {_up(statement['mu'])}, with a regret of "
            f"{_up(statement['regret_of_mu'])}."
        )
    twice = min(2 * statement["advantage_at_most"], 1.0)
    said.append(f"For one {unit} in another's place, no attack has an advantage above {_up(twice)}.")
    rebuilt = next(row["tpr_at_most"] for row in statement["trade_off"] if row["fpr"] == GUESS)
    said.append(
        f"Someone who would reconstruct a {REBUILT[unit]} with a chance of {100 * GUESS:g} % without the model does so "
        f"with at most {decimals_up(100 * rebuilt, 1)} % with it, even if they know all other {unit}s."
    )
    return said


def _choice(statement: Json) -> str:
    if (chosen := statement["selection"]) is None:
        return "No ε was spent on a choice: there was one training, with the settings of its cell."
    by = "a score without noise on other records" if chosen["score_noise"] is None else "a noisy score"
    once, choosing = (rounded_up(chosen[f"epsilon_of_{part}"], DIGITS) for part in ("one_training", "choosing"))
    return (
        f"The best of a random number of trainings ({chosen['runs']}, {chosen['mean']:g} on average), with settings "
        f"drawn from {chosen['settings']}, by {by}. One training spends ε = {once}; "
        f"the choice adds {choosing}, which the ε above includes."
    )


def _measured(measured: Json) -> list[str]:
    not_run = ", ".join(measured["attacks_not_run"]) or "none"
    if not measured["attacks_run"]:
        return [f"No membership attack was run. There are: {not_run}."]
    said = [f"Membership attacks that were run: {', '.join(measured['attacks_run'])}. Not run: {not_run}."]
    if "advantage" in measured:
        found = measured["advantage"]
        rates = "".join(
            f" At {100 * row['fpr']:g} % false positives it names {100 * row['value']:.1f} % "
            f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}] of the members."
            for row in measured["tpr"]
        )
        rates += "".join(
            f" At {100 * row['fpr']:g} % that cannot be measured: it takes {row['needed']:,} independent non-members; "
            f"the study's are worth {row['independent_nonmembers']:,}."
            for row in measured["tpr_not_measured"]
        )
        half = ", each about half of them," if measured["trained_on_half"] else ""
        said.append(
            f"The strongest ({measured['strongest_attack']}) has an advantage of {found['value']:.3f} "
            f"[{found['low']:.3f}, {found['high']:.3f}] on {measured['models']} models of the study, which saw other "
            f"subsets of the records{half} under the same ε.{rates} (95 % intervals.)"
        )
    return said


def _audits(measured: Json) -> list[str]:
    said = [
        f"{audit.get('of', 'The study')}: ε ≥ {rounded_down(audit['epsilon_at_least'], 3)} at δ = {audit['delta']:g} "
        f"with {100 * audit['confidence']:.4g} % confidence{_could_have_shown(audit)}."
        for audit in measured.get("audits", [])
    ]
    return said or ["None was run."]


def _could_have_shown(audit: Json) -> str:
    most = audit["could_have_shown"]
    return "" if most is None else f"; the largest that it could have shown is {most:.3g}"


def _accusation(statement: Json) -> list[str]:
    rows = statement["precision_at_fpr_0.001"]
    limits = "; ".join(
        f"prior {100 * row['prior']:g} %: at most {decimals_up(100 * row['precision_at_most'], 1)} %" for row in rows
    )
    return [
        "Of those whom an attack accuses at a false positive rate of 0.1 %, the share that are members, by the share "
        f"of members among those asked about, for {in_words(statement)}: {limits}."
    ]


def _up(value: float) -> str:
    """Three digits behind the point, rounded up: a proven limit is never stated too small."""
    return decimals_up(value, 3)
