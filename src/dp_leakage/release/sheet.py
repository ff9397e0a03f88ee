"""One page for a privacy officer, as HTML and as PDF, from the statement alone: a verdict, a picture, plain words."""

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from dp_leakage.common.config import Json
from dp_leakage.common.rounding import decimals_up, rounded_down, rounded_up
from dp_leakage.release.statement import DIGITS, in_words
from dp_leakage.table import palette
from dp_leakage.table.guesses import MODERATE, SAYS_LITTLE, STRONG, bar, most_of_100, of_100

NOT_DECLARED = "not declared"
DRAWN = {  # sampler → how batches are drawn, with the rate in percent
    "poisson": "Poisson batches (a {unit} is in each with a chance of {rate:.4g} %, independently of all others)",
    "shuffle": "shuffled batches (a {unit} is in one of them in every epoch; each has {rate:.4g} % of all {unit}s)",
}
REBUILT = {"record": "a record", "person": "a person's records"}
GUESS = 0.01  # chance of reconstructing a record without the model; one of `statement.RATES`
ACCUSED = 0.001  # share of non-members that are wrongly accused; one of `statement.RATES`
BANDS = (  # up to which advantage protection is called so, the tone of the word, and how the model hides a unit
    (STRONG, "Strong protection", "good", "hides each training {unit} well"),
    (MODERATE, "Moderate protection", "open", "hides each training {unit} in part"),
    (SAYS_LITTLE, "Weak protection", "open", "hides each training {unit} only weakly"),
    (1.0, "No protection proven", "bad", "is not proven to hide any training {unit}"),
)
ODDS = {0.01: "1 in 100", 0.1: "1 in 10", 0.5: "half"}  # prior → in words
LARGEST, LEAST = 8.5, 3.0  # sizes of the PDF's letters, in points
A4 = 8.27, 11.69  # inches
MARGIN = 0.6  # inches
LINE = 1.32  # of the size of the letters
WIDE = 0.58  # mean width of a letter, of its size
TITLE = "Privacy sheet of a released model"
TEMPLATE = Path(__file__).with_name("template.html")


class Section(NamedTuple):
    """A heading with rows of words and a number, points and a note."""

    title: str
    rows: Sequence[tuple[str, str]] = ()
    points: Sequence[str] = ()
    note: str = ""


class Sheet(NamedTuple):
    """Content of the page.

    Attributes:
        of: the study and the day of the release.
        word, tone: the verdict, and its color.
        decides: the sentences that say it.
        bar: right guesses of 100, as SVG.
        caption: what the bar shows.
        sections: in the order of the page.
        small: last lines.
    """

    of: str
    word: str
    tone: str
    decides: str
    bar: Markup
    caption: str
    sections: list[Section]
    small: list[str]


def sheet_of(statement: Json) -> Sheet:
    """Return the sheet with the contents of a statement."""
    measured, proven = statement["measured"], statement["advantage_at_most"]
    unit = statement["unit"].removeprefix("one ")
    _, word, tone, hides = next(band for band in BANDS if proven <= band[0])
    most, found = most_of_100(proven), measured.get("advantage")
    right = None if found is None else of_100(found["value"])
    tried = "No attack was run" if right is None else f"The strongest attack that was run was right {right} times"
    return Sheet(
        f"{statement['study']} · {statement['released']}",
        word,
        tone,
        f"The model {hides.format(unit=unit)}: someone who guesses whether a {unit} was used could be right up to "
        f"{most} times in 100. {tried}; a coin is right 50 times.",
        bar(right, None, most),
        f"Right guesses in 100, if half of the {_plural(unit)} tested were used in training.",
        [
            Section("What this means", _meaning(statement, unit), note=AT_MOST),
            Section(
                "Can an accusation be trusted?",
                [(_odds(row["prior"]), _of_ten(row)) for row in statement["precision_at_fpr_0.001"]],
                note="Of ten people whom an attack accuses, at most so many were in the data, at 1 wrong accusation "
                f"per {1 / ACCUSED:,.0f} people who were not; for {in_words(statement)}.",
            ),
            Section("What the proof does not cover", points=[*statement["outside"], LIMITS.format(unit=unit)]),
            Section("How sure we are", points=[*_proven(statement, unit), _choice(statement), *_measured(measured)]),
            Section("Decision", _declared(statement)),
        ],
        [
            f"Protection is called strong if no attack can have an advantage (true less false positive rate) above "
            f"{STRONG:g}, moderate up to {MODERATE:g}, weak up to {SAYS_LITTLE:g}. Here: {_up(proven)}. All numbers, "
            "and the attacks by name: privacy.json. Check: dp-leakage verify FOLDER.",
            "SHA-256: " + "; ".join(f"{name} {digest}" for name, digest in statement["files"].items()) + ".",
        ],
    )


AT_MOST = "“At most” is proven for any attack, within what the proof covers. Brackets are 95 % intervals."
LIMITS = "Groups and the population, and other releases of the same records: their ε add up. ε is about one {unit}."


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"


def _odds(prior: float) -> str:
    return f"If {ODDS.get(prior, f'{100 * prior:g} %')} of those tested {'were' if prior == 0.5 else 'was'} in the data"


def _of_ten(row: Json) -> str:
    return f"at most {decimals_up(10 * row['precision_at_most'], 1)} of 10"


def _meaning(statement: Json, unit: str) -> list[tuple[str, str]]:
    """Return what the numbers mean for one unit: proven limits, what attacks found, and use."""
    limits = {row["fpr"]: 100 * row["tpr_at_most"] for row in statement["trade_off"]}
    named = f"{_plural(unit)} identified by an attack that wrongly accuses 1 in"
    rows = [
        (
            f"Chance of reconstructing {REBUILT[unit]}, even by someone who knows all others, if it is "
            f"{100 * GUESS:g} % without the model",
            f"at most {decimals_up(limits[GUESS], 1)} %",
        ),
        (f"Share of the {named} {1 / ACCUSED:,.0f} others", f"at most {decimals_up(limits[ACCUSED], 1)} %"),
    ]
    measured = statement["measured"]
    rows += [
        (f"… by the strongest attack that was run, at 1 in {1 / row['fpr']:,.0f}", _interval(row, 100, 1, " %"))
        for row in measured.get("tpr", [])
    ]
    rows += [
        (
            f"… at 1 in {1 / row['fpr']:,.0f}",
            f"not measured: takes {row['needed']:,} non-members, there are {row['independent_nonmembers']:,}",
        )
        for row in measured.get("tpr_not_measured", [])
    ]
    model = statement["model"]
    if model["accuracy"] is not None:
        low, high = model["accuracy_interval"]
        found = {"value": model["accuracy"], "low": low, "high": high}
        rows.append((f"Accuracy on {model['accuracy_on']:,} new records", _interval(found, 100, 1, " %")))
        rows.append(("… of naming the most frequent class", f"{100 * model['largest_class']:.1f} %"))
    if (use := model.get("utility")) is not None:
        found = {"value": use["value"], "low": use["interval"][0], "high": use["interval"][1]}
        rows.append((f"{use['label']} on these (a guess has {use['guessing']:.3f})", _interval(found, 1, 3, "")))
    return rows


def _interval(found: Json, times: float, places: int, unit: str) -> str:
    value, low, high = (f"{times * found[key]:.{places}f}" for key in ("value", "low", "high"))
    return f"{value}{unit} [{low}, {high}]"


def _declared(statement: Json) -> list[tuple[str, str]]:
    declared = statement["declared"]
    keys = {"question": "Question", "data_subjects": "Data subjects", "decision": "Decision", "owner": "Owner"}
    told = {words: declared.get(key) or NOT_DECLARED for key, words in (keys | {"expires": "Expires"}).items()}
    sensitive = ", ".join(declared.get("sensitive_fields", [])) or NOT_DECLARED
    return [*told.items(), ("Sensitive fields", sensitive)]


def records_in_words(told: Json) -> str:
    """Describe a mechanism's training data, e.g. 653 records of 178 people."""
    of_people = f" of {told['persons']:,} people" if "persons" in told else ""
    return f"{told['records']:,} records{of_people}"


def page(sheet: Sheet) -> str:
    """Return the sheet as one HTML file that loads nothing."""
    template = palette.environment().from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(sheet=sheet, title=TITLE) + "\n"


def pdf(sheet: Sheet) -> bytes:
    """Return the sheet as one page of A4, with a font size that fits. Its bytes hold no date and no name."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    high = (A4[1] - 2 * MARGIN) * 72
    size = LARGEST
    while len(lines := _lines(sheet, size)) * LINE * size > high and size > LEAST:
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


def _lines(sheet: Sheet, size: float) -> list[tuple[str, bool]]:
    """Return the lines of the PDF at a font size, each with whether it is bold."""
    width = int((A4[0] - 2 * MARGIN) * 72 / (WIDE * size))
    return [(part, bold) for text, bold in _texts(sheet) for part in textwrap.wrap(text, width) or [""]]


def _texts(sheet: Sheet) -> Iterator[tuple[str, bool]]:
    """Yield the sheet's sentences for a page without a picture, and whether each is bold."""
    yield from [(f"{TITLE} · {sheet.of}", True), ("", False), (f"{sheet.word}. {sheet.decides}", True)]
    for section in sheet.sections:
        yield from [("", False), (section.title, True)]
        yield from ((f"{words}: {number}", False) for words, number in section.rows)
        yield from ((text, False) for text in [*section.points, section.note] if text)
    yield from [("", False), *((line, False) for line in sheet.small)]


def _proven(statement: Json, unit: str) -> list[str]:
    spent = "; ".join(
        f"ε = {rounded_up(row['epsilon'], DIGITS)} at δ = {row['delta']:g}" for row in statement["epsilon"]
    )
    told = statement["mechanism"]
    drawn = DRAWN[told["sampler"]].format(unit=unit, rate=100 * told["sampling_probability"])
    twice = min(2 * statement["advantage_at_most"], 1.0)
    useless = "" if twice < SAYS_LITTLE else ", which excludes little"
    return [
        f"Proven for {in_words(statement)}: {spent}; computed by dp-accounting. No attack has an advantage above "
        f"{_up(statement['advantage_at_most'])}.",
        f"For one {unit} in another's place, no attack has an advantage above {_up(twice)}{useless}.",
        f"Trained once on {records_in_words(told)}, with Gaussian noise of {told['noise_multiplier']:.4g} times the "
        f"bound on a {unit}'s gradient, {told['steps']:,} steps, {drawn}; batches and noise are random numbers of the "
        "operating system, which nobody can draw again.",
    ]


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
    run, missing = len(measured["attacks_run"]), len(measured["attacks_not_run"])
    others = (
        f"{missing} other attack{' was' if missing == 1 else 's were'} not run, so more may leak." if missing else ""
    )
    if not run:
        said = "Not measured: no membership attack was run."
    elif "advantage" not in measured:
        said = f"{run} membership attack{'s were' if run > 1 else ' was'} run, of which no strongest is known."
    else:
        half = ", each about half of them," if measured["trained_on_half"] else ""
        said = (
            f"Measured by {run} membership attack{'s' if run > 1 else ''} on {measured['models']} models of the study, "
            f"which saw other subsets of the records{half} under the same ε. The strongest has an advantage of "
            f"{_interval(measured['advantage'], 1, 3, '')}."
        )
    return [f"{said} {others}".rstrip(), *_audits(measured)]


def _audits(measured: Json) -> list[str]:
    said = [
        f"Audited. {audit.get('of', 'The study')}: ε ≥ {rounded_down(audit['epsilon_at_least'], 3)} at δ = "
        f"{audit['delta']:g} with {100 * audit['confidence']:.4g} % confidence{_could_have_shown(audit)}."
        for audit in measured.get("audits", [])
    ]
    return said or ["Not audited: no lower bound on ε was sought."]


def _could_have_shown(audit: Json) -> str:
    most = audit["could_have_shown"]
    return "" if most is None else f"; the largest that it could have shown is {most:.3g}"


def _up(value: float) -> str:
    """Format with three decimals, rounded up, so that a proven limit is never stated too small."""
    return decimals_up(value, 3)
