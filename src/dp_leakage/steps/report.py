"""Write the study's page: one self-contained HTML file."""

from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.signals import Signals
from dp_leakage.common.identity import portable
from dp_leakage.common.paths import use_copies
from dp_leakage.data import OUTPUTS, files_of, load
from dp_leakage.data.near_copies import Copies
from dp_leakage.data.outside import uncovered
from dp_leakage.data.profile import is_harmless
from dp_leakage.data.raw import Raw
from dp_leakage.data.roles import ROLES, trained_role
from dp_leakage.engines import GIVEN
from dp_leakage.figures.files import further_notes, read_figure, read_tables
from dp_leakage.metrics.majority import constant_answers, guessing
from dp_leakage.metrics.paired import READ, right_answers
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.resemblance import resemblance
from dp_leakage.metrics.utility import Use, use_in
from dp_leakage.provenance.files import read_arrays, read_table, write_json, write_page
from dp_leakage.provenance.versions import of_page_and_trainings, versions
from dp_leakage.report import Acceptable, answers_of, as_json, render, singled_out, told
from dp_leakage.report.answer import Tested
from dp_leakage.report.context import DataFacts, ReportContext, ReportFigure
from dp_leakage.report.decision import look_of
from dp_leakage.report.elsewhere import Elsewhere, Others
from dp_leakage.report.exposed import MostExposed, described, most_exposed
from dp_leakage.steps import Json, run
from dp_leakage.steps._metrics import read_metrics
from dp_leakage.table.origin import beware

CEILING = 20  # of the ε of models that `share` copies unasked: e²⁰ is the odds at which a guess is as good as certain
Cell: TypeAlias = tuple[str, str, str, str]


def main(
    settings: Json,
    metrics: list[Path],
    histories: list[Path],
    data: list[Path],
    scores: list[Path],
    compared: list[Path],
    figures: list[Path],
    report: Path,
    claims: Path,
    own: list[Path] | None = None,
) -> None:
    """Read all inputs of the page; write the page and its claims.

    The inputs are every cell's metrics and right answers, the figures, the scores of the named records, the outputs of
    external models and their references, and the user's ``own`` data.
    """
    spec = portable(settings["spec"])
    sources = [spec["datasets"][name]["source"] for name, _ in settings["data"]]
    use_copies([file for source in sources if isinstance(source, dict) for file in files_of(source)], own)
    measured = read_metrics(metrics, [identity for _, identity in settings["cells"]])
    facts = tuple(
        _facts(name, spec, path, identity) for (name, identity), path in zip(settings["data"], data, strict=True)
    )
    tested, trained_by, judged = _trainings(histories, settings["histories"])
    facts = tuple(fact if fact.name not in judged else _judged(fact, judged[fact.name]) for fact in facts)
    context = ReportContext(
        study=settings["study"],
        title=spec["title"],
        metrics=measured,
        figures=tuple(
            _figure(
                name, figure["kind"], settings["captions"][name], _files_of(name, figures), settings["figures"][name]
            )
            for name, figure in spec["figures"].items()
        ),
        data=facts,
        models={name: _words(model["architecture"]) for name, model in spec["models"].items()},
        attacks={name: _words(attack) for name, attack in spec["attacks"].items()},
        training=_training(spec),
        repeats=spec["repeats"],
        seed=spec["seed"],
        question=spec.get("question", ""),
        paper=spec.get("paper", ""),
        reduced=beware(settings["scale"], settings["sources"], settings["made_up"]),
        choices=tuple(spec.get("choices", ())),
        versions=of_page_and_trainings(versions(), trained_by),
        aware=settings["aware"],
        acceptable=Acceptable(**spec.get("acceptable", {})),
        look=look_of(spec["repeats"], spec.get("looks", ())),
        elsewhere=_elsewhere(spec, compared, settings["compared"]),
        tested=tested,
    )
    shown = singled_out(answers_of(context))
    context = replace(context, exposed=_exposed(scores, settings["scores"], settings["spec"], shown))
    write_page(report, render(context))
    shared = {"cells": [name for name, _ in settings["cells"]], "figures": list(spec["figures"])}
    share = shared | {"epsilon": spec.get("share", {}).get("epsilon", CEILING)}
    write_json(claims, as_json(context.study, context.title, context.reduced, told(context)) | {"share": share})


def _trainings(
    histories: list[Path], made: list[list[str]]
) -> tuple[dict[tuple[str, str, str], Tested], list[dict[str, str]], dict[str, Json]]:
    """Return each cell's results on new records, the software versions of its training, and data set → the measure of
    use if that is not accuracy.
    """
    found, trained_by, judged = dict[tuple[str, str, str], Tested](), [], {}
    for (dataset, model, defense, identity), path in zip(made, histories, strict=True):
        table, stamp = read_table(path, identity, READ)
        trained_by.append(stamp["versions"])
        if (use := use_in(table)) is not None:
            found[dataset, model, defense] = use
            judged[dataset] = stamp["utility"] | {"units": use.units}
        elif (tested := right_answers(table)) is not None:
            found[dataset, model, defense] = tested
    return found, trained_by, judged


def _judged(fact: DataFacts, judged: Json) -> DataFacts:
    """Return the facts on a data set that is judged by another measure of use than accuracy."""
    guess = Use(np.array([judged["guessing"]]), np.array([judged["influences"]]), judged["units"])
    return replace(fact, guessing=guess.value, constant=guess)


def _elsewhere(spec: Json, compared: list[Path], made: list[list[str]]) -> Elsewhere:
    """Return the external models, the references of attacks on them, and their similarity.

    Args:
        spec: the study.
        compared: the outputs of an external model, followed by those of its references, then the next model's.
        made: for each model its data set, its name and the identities of these two files.
    """
    like = {}
    for (dataset, model, *identities), files in zip(made, zip(compared[::2], compared[1::2], strict=True), strict=True):
        own, theirs = (
            Signals.held_by(read_arrays(file, identity)[0], file).asked
            for file, identity in zip(files, identities, strict=True)
        )
        like[dataset, model] = resemblance(own.correct, own.trained_on, theirs.correct, theirs.trained_on)
    return Elsewhere(
        models=tuple(name for name, model in spec["models"].items() if model.get("engine") in GIVEN),
        references=_others(spec.get("reference")),
        shadows=_others(spec.get("shadow")),
        draws={
            name: n
            for name, model in spec["models"].items()
            if (n := model.get("architecture", {}).get("draws", 1)) > 1
        },
        online=any({**ATTACKS[name].settings, **own}.get("online") for name, own in spec["attacks"].items()),
        resemblance=like,
    )


def _others(spec: Json | None) -> Others | None:
    return Others(spec["count"], spec.get("engine") == "outputs") if spec else None


def _training(spec: Json) -> dict[str, str]:
    """Describe the settings shared by all trainings here."""
    own = all(model.get("engine") in GIVEN for model in spec["models"].values())
    whose = " (reference and shadow models)" if own else ""
    rates = ", ".join(f"{rate:g}" for rate in spec.get("tune", {}).get("learning_rate", []))
    tuned = {"learning_rate": f"tuned for each model: one of {rates}"} if rates else {}
    return {f"{key}{whose}": str(value) for key, value in (spec.get("training", {}) | tuned).items()}


def _figure(name: str, kind: str, caption: str, files: dict[str, Path], identity: str) -> ReportFigure:
    if "html" in files:
        return ReportFigure(name, kind, read_tables(**files, identity=identity), caption)
    picture = read_figure(**files, identity=identity)
    return ReportFigure(name, kind, picture, " ".join(filter(None, (caption, further_notes(picture)))))


def _files_of(figure: str, files: list[Path]) -> dict[str, Path]:
    return {path.suffix[1:]: path for path in files if path.stem == figure}


def _facts(name: str, spec: Json, path: Path, identity: str) -> DataFacts:
    arrays, made = read_arrays(path, identity)
    source = spec["datasets"][name]["source"]
    members, rows = arrays["y"][arrays[trained_role(arrays)]], arrays["target_nonmembers"]
    named = constant_answers(members, arrays["y"][rows])
    owners = arrays["person"][rows] if "person" in arrays else None
    return DataFacts(
        name=name,
        source=source if isinstance(source, str) else _words(source),
        sha256="; ".join(f"{file} {digest}" for file, digest in made["sha256"].items()),
        roles={role: len(rows) for role, rows in arrays.items() if role in ROLES},
        features=" × ".join(map(str, arrays["x"].shape[1:])) + (" numbers" if arrays["x"].ndim == 2 else " pixels"),
        classes=len(np.unique(arrays["y"])),
        guessing=guessing(members, arrays["y"][rows]),
        constant=None if named is None else RightAnswers.of(named[None], owners),
        warnings=tuple(remark for remark in made["remarks"] if not is_harmless(remark)),
        notes=(*made["notes"], *filter(is_harmless, made["remarks"])),
        persons=len(np.unique(arrays["person"][arrays[trained_role(arrays)]])) if "person" in arrays else None,
        copies=Copies(**made["copies"]),
        outside=uncovered(spec["datasets"][name].get("projection"), arrays, made["notes"]),
    )


def _exposed(scores: list[Path], made: list[list[str]], spec: Json, shown: set[Cell]) -> tuple[MostExposed, ...]:
    """Return the most exposed records by the strongest attack on the shown cells; the user's own with descriptions
    and names.

    Args:
        scores: files of membership attacks.
        made: data set, model, defense, attack and identity of each file.
        spec: the study.
        shown: the scores to use.
    """
    every, own = [], {name: _own(dataset) for name, dataset in spec["datasets"].items()}
    for path, (*cell, identity) in zip(scores, made, strict=True):
        if tuple(cell) in shown:
            found = most_exposed(read_table(path, identity)[0])
            records, raw = found.records, own[cell[0]]
            if raw is not None:
                records = records.assign(**_described(raw, records["record"].tolist()))
            every.append(replace(found, records=records, cell=(cell[0], cell[1], cell[2], cell[3])))
    return tuple(every)


def _described(raw: Raw, records: list[int]) -> dict[str, list | None]:
    """Describe these records with their names; for people, with their names and numbers of records."""
    if raw.person is None:
        return {"shown": described(raw, records), "called": [raw.names[one] for one in records] if raw.names else None}
    sizes = np.bincount(raw.person)[records]
    called = [raw.people[one] for one in records] if raw.people else None
    return {"shown": [f"{size} record{'' if size == 1 else 's'}" for size in sizes], "called": called}


def _own(dataset: Json) -> Raw | None:
    """Return the user's own records from their file; None for published data and for augmented copies."""
    source = dataset["source"]
    if isinstance(source, str) or "path" not in source or "augment" in dataset:
        return None
    raw = load(source, Path())
    # The only feature of records that are known by outputs is their number, which describes nobody.
    return raw._replace(x=raw.x[:, :0]) if source.get("source") == OUTPUTS else raw


def _words(settings: Json) -> str:
    """Return settings in words: first the name, without its key."""
    own = [str(settings["name"])] if "name" in settings else []
    return ", ".join([*own, *(f"{key}: {value}" for key, value in settings.items() if key != "name")])


if __name__ == "__main__":
    lists = ("metrics", "histories", "data", "scores", "compared", "figures", "own")
    run(main, "report", "claims", lists=lists)
