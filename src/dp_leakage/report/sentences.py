"""All claims of the page's answers, in the order of the page."""

from collections.abc import Callable, Mapping, Sequence

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.report.answer import Answer
from dp_leakage.report.caveats import write_caveat
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.deciding import DECIDING
from dp_leakage.report.folded import cell_claims, choice_claims, unproven_claims
from dp_leakage.report.phrases import cell_fields, describe_strongest, write_guessing, write_use
from dp_leakage.report.sources import source_claims
from dp_leakage.report.tiles import make_tiles
from dp_leakage.report.trade import trade_claims
from dp_leakage.table.words import name

UNAWARE = (
    "No attack here uses reference models trained under the same defense. A weak result is no evidence of protection."
)
CALLED = {"adaptive": "The adaptive attack", "access": "The attack"}  # by kind of statement


def claims_of(
    answers: Sequence[Answer],
    outside: Mapping[str, Sequence[str]],
    aware: bool = True,
    elsewhere: Callable[[Answer], list[Claim]] | None = None,
    persons: Mapping[str, int] | None = None,
    of_attacks: Mapping[str, Mapping[str, Mapping[str, str]]] | None = None,
    by_coins: bool = True,
    study: str = "",
) -> list[Claim]:
    """Return all claims on the answers, in the order of the page.

    Args:
        answers: of `answer.answers`.
        outside: data set → preparation that no ε of the study covers, e.g. "the PCA, fitted on 800 records".
        aware: whether a defense-aware attack was run.
        elsewhere: writes the unfolded claims of an answer on external models; needed if there is such an answer.
        persons: data set → number of people in training, for data sets with user-level records.
        of_attacks: data set → ``adaptive`` or ``access`` → attack → how it adapts to the defense
            (`attacks.Attack.adapts`), or which access it needs beside outputs (`attacks.Attack.access`).
        by_coins: whether people are included at random; otherwise each training has all of them.
        study: its name, for the command that would decide; "" for no command.
    """
    external = all(answer.kind == "elsewhere" for answer in answers)
    found = [] if aware or external else [Claim("unaware", "unaware", "", UNAWARE, screen=1)]
    found += [_describe_persons(dataset, count, by_coins) for dataset, count in (persons or {}).items()]
    for answer in answers:
        uncovered = outside.get(answer.dataset, ())
        if answer.kind == "elsewhere":
            assert elsewhere is not None  # the caller that makes such answers passes it
            found += elsewhere(answer)
        else:
            prefix = f"{name(answer.dataset)}: " if len(answers) > 1 else ""
            units = "people" if answer.dataset in (persons or {}) else "records"
            found += [*trade_claims(answer, prefix), *_decision_claims(answer, uncovered, prefix, study, units)]
            found += [*_source_claims(answer), *_baseline_claims(answer)]
            for place, setting in enumerate(answer.told):
                found += make_tiles(answer, setting, place, uncovered)
        found += _attack_claims(answer.dataset, (of_attacks or {}).get(answer.dataset, {}))
        for place, setting in enumerate(answer.told):
            found += cell_claims(answer, setting, place, uncovered)
        found += choice_claims(answer) + unproven_claims(answer)
    return found


def _describe_persons(dataset: str, count: int, by_coins: bool) -> Claim:
    """Say that people with several records are included, attacked and counted as a whole."""
    writer = ClaimWriter({"dataset": dataset})
    some = writer.count(count)
    tossed, fixed = f"a coin puts each of {some} in or out of a training", f"the same {some} are in each training"
    chosen = tossed if by_coins else fixed
    words = (
        f"On {name(dataset)}, people are attacked, each with all records: {chosen}. Members and attacks' rates count "
        "people. An ε counts what its noise hides, a record or a person."
    )
    return writer.claim(f"{dataset}.persons", "persons", "", words, screen=1)


def _source_claims(answer: Answer) -> list[Claim]:
    """Return the claim that members and non-members differ, or may, if that can explain an attack's success."""
    found = {}
    for one in (*answer.told, *([answer.best] if answer.best else [])):
        leak = one.leak
        if leak is None or leak.sources is None or not leak.explained:
            continue
        if leak.advantage.low > 0 or leak.shifted:
            found[one.model, one.defense] = leak.sources
    return source_claims(answer.dataset, found)


def _decision_claims(answer: Answer, outside: Sequence[str], prefix: str, study: str, units: str) -> list[Claim]:
    """Return the bold sentences, and the caveat below them if there is one."""
    cells, dataset = tuple((one.model, one.defense) for one in answer.told), answer.dataset
    writer, below = ClaimWriter({"dataset": dataset}), ClaimWriter({"dataset": dataset})
    words = f"{prefix}{DECIDING[answer.kind](answer, writer)}"
    found = [writer.claim(f"{dataset}.answer", "answer", dataset, words, verdict=answer.kind, cells=cells, screen=1)]
    caveat = write_caveat(answer, below, outside, study, units)
    if caveat:
        found.append(below.claim(f"{dataset}.caveat", "caveat", dataset, caveat, cells=cells, screen=1))
    return found


def _baseline_claims(answer: Answer) -> list[Claim]:
    """Return the claim on the undefended model that losses are relative to."""
    best = answer.best
    if best is None or answer.kind in ("guessing", "untried"):
        return []
    writer = ClaimWriter(cell_fields(best))
    if best.measure == ACCURACY:
        words = (
            f"Losses are relative to the undefended model that was right most often, {name(best.model)}: on "
            f"{write_use(best, writer)} of new records."
        )
    else:
        words = (
            f"Losses are relative to the undefended model with the largest {best.use_label} on new records, "
            f"{name(best.model)}: {write_use(best, writer)}. Guessing has {write_guessing(answer, writer)}."
        )
    if best.leak is not None:
        words += f" On it {describe_strongest(best.leak, writer)}."
    dataset, cells = answer.dataset, ((best.model, best.defense),)
    return [writer.claim(f"{dataset}.baseline", "baseline", dataset, words, cells=cells, screen=2)]


def _attack_claims(dataset: str, statements: Mapping[str, Mapping[str, str]]) -> list[Claim]:
    """Return claims on the attacks that adapt to a defense, and on those that need more than outputs."""
    sentences = {
        kind: " ".join(f"{CALLED[kind]} {name(attack)} {words}." for attack, words in attacks.items())
        for kind, attacks in statements.items()
    }
    return [Claim(f"{dataset}.{kind}", kind, dataset, words, screen=2) for kind, words in sentences.items() if words]
