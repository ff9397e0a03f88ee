"""What a study asks for: the metrics of its cells, its figures, its report, and every file that is made for them."""

from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.shown import one_line
from dp_leakage.data import files_of
from dp_leakage.engines import GIVEN as ELSEWHERE
from dp_leakage.figures import COMMON, FIGURES, FigureKind, words_of
from dp_leakage.provenance.fingerprint import ROOT
from dp_leakage.study.cells import TRAINING, Cell, together
from dp_leakage.study.parts import GIVEN, IMAGES, MEASURED, METRICS, PROVEN, SCORES, Given, part
from dp_leakage.study.paths import TARGET
from dp_leakage.study.settings import Input, Settings
from dp_leakage.study.step_code import step_code

PAGE = [ROOT / "report" / file for file in ("page.js", "template.html")]  # not code that is hashed, but the page's text


class Study(Settings):
    """A checked study at one scale: cells, paths, settings of every step, and targets. Pure: it makes no file."""

    def everything(self) -> list[Path]:
        """Everything that the study's target asks for: every output of all its jobs, except temporary ones.

        A lost file that nothing asks for by name would not be made again, because the job's other files still exist.
        """
        files = [self.report, self.claims]
        for figure in self.spec["figures"]:
            files += [*self.figure_files(figure).values(), *self.figure_inputs(figure)]
        for cell in self.cells.values():
            names = (cell.dataset, cell.model, cell.defense)
            files += [self.data(cell.dataset), *self.tuned_for(cell)]
            files += [*self.training_files(cell.dataset, cell.model, TARGET, cell.defense)]
            files += [self.metrics(*names)]
            for name in dict.fromkeys((*MEASURED, *cell.parts)):
                files += part(name).files(self, cell)
        return list(dict.fromkeys(files))

    # ------------------------------------------------------------------ figures
    def figure_cells(self, figure: str) -> list[Cell]:
        """The cells that a figure draws. Raises UserError if it selects none."""
        select = self.spec["figures"][figure].get("select", {})
        chosen = [
            cell for cell in self.cells.values() if all(cell.columns[key] in values for key, values in select.items())
        ]
        if not chosen:
            raise UserError(f"study {self.target}: key 'figures.{figure}.select' fits no cell of the study: {select}")
        return chosen

    def figure_parts(self, figure: str, cell: Cell) -> list[str]:
        """The parts of a cell that a figure receives."""
        kind, given = self._figure_kind(figure), self._given(figure)
        if given.always:
            return list(given.always)
        wanted = self.spec["figures"][figure].get("parts", self.drawable)
        found = [name for name in wanted if name in cell.parts and given.takes(name)]
        if found and cell.columns["accountant"]:
            also = {TRAINING: kind.spent, PROVEN: kind.proven}
            found += [name for name, needed in also.items() if needed and name not in found]
        attacks = [name for name in cell.membership if name in found and kind.needs == METRICS]
        return [*found, together(cell, attacks)] if len(attacks) > 1 else found

    @property
    def drawable(self) -> list[str]:
        """The parts that a figure may name; without ``parts`` it gets all of them."""
        return [TRAINING, *self.spec["attacks"], *self.bounded, *self.structured, *self.grouped]

    def figure_settings(self, figure: str) -> Json:
        """Of step ``figure``."""
        spec, kind, cells = self.spec["figures"][figure], self._figure_kind(figure), self.figure_cells(figure)
        prints = self.spec.get("published")
        words = words_of(self.folder / prints) if prints else None

        def parts(cell: Cell) -> list[list[str]]:
            return [[name, self._drawn(figure, cell, name)[1]] for name in self.figure_parts(figure, cell)]

        return {
            "study": self.name,
            "figure": figure,
            "module": kind.module,
            "needs": kind.needs,
            "settings": {**COMMON, **kind.settings, **spec.get("settings", {}), "title": spec.get("title")},
            # Lists, since JSON sorts mappings, and the files come in this order.
            "columns": list(cells[0].columns),
            "cells": [[list(cell.columns.values()), parts(cell)] for cell in cells],
            "code": step_code("figure", kind.module, own=(words,) if words else ()),
        }

    def figure_inputs(self, figure: str) -> list[Path]:
        """Inputs of a figure, in the order of its settings."""
        return [
            self._drawn(figure, cell, name)[0]
            for cell in self.figure_cells(figure)
            for name in self.figure_parts(figure, cell)
        ]

    def _drawn(self, figure: str, cell: Cell, name: str) -> Input:
        """What a figure reads of a part: its rows, the scores of an attack, or its pictures."""
        needs = self._figure_kind(figure).needs
        if name in ATTACKS and needs == SCORES:
            return self.scores(cell.dataset, cell.model, cell.defense, name), self.attacked(cell, name)
        if name in ATTACKS and needs == IMAGES:
            return self.images(cell, name), self.attacked(cell, name)
        return self.part_file(cell, name), part(name).made(self, cell)

    def caption(self, figure: str) -> str:
        """How to read a figure: the study's own text, or else that of its kind."""
        return self.spec["figures"][figure].get("caption") or self._figure_kind(figure).caption

    def _figure_kind(self, figure: str) -> FigureKind:
        return FIGURES[self.spec["figures"][figure]["kind"]]

    def _given(self, figure: str) -> Given:
        return GIVEN[self._figure_kind(figure).needs]

    def title_of(self, figure: str) -> str:
        """A figure's title, or its kind if it has none."""
        spec = self.spec["figures"][figure]
        return str(spec.get("title", spec["kind"]))

    @property
    def published_file(self) -> list[Path]:
        """The paper's printed numbers, an input of every figure; nothing if the study has no paper."""
        name = self.spec.get("published")
        return [self.folder / name] if name else []

    # ------------------------------------------------------------------ report
    def report_settings(self) -> Json:
        """Of step ``report``."""
        return {
            "study": self.name,
            "spec": {k: v for k, v in self.spec.items() if k not in ("scales", "release")},
            "figures": {figure: identity(self.figure_settings(figure)) for figure in self.spec["figures"]},
            "cells": [[key, identity(self.measure_settings(cell))] for key, cell in self.cells.items()],
            "data": [[dataset, self.data_identity(dataset)] for dataset in self.spec["datasets"]],
            "scores": [
                [cell.dataset, cell.model, cell.defense, attack, self.attacked(cell, attack)]
                for cell, attack in self._exposed()
            ],
            "compared": [[cell.dataset, cell.model, *(made for _, made in files)] for cell, files in self._compared()],
            "aware": self.aware,
            "captions": {figure: self.caption(figure) for figure in self.spec["figures"]},
            "words": identity({path.name: path.read_text(encoding="utf-8") for path in PAGE}),
            "code": step_code("report"),
        }

    @property
    def aware(self) -> bool:
        """Whether, on every data set, some membership attack learns from models under the defense that it attacks."""

        def learns(dataset: str, attack: str) -> bool:
            entry = ATTACKS[attack]
            usual = "same" if self.by_coins(attack) else "none"
            same = entry.needs is not None and self.auxiliary_spec(dataset, entry.needs).get("defense", usual) == "same"
            return same and entry.aware and entry.family == "membership"

        return all(any(learns(d, attack) for attack in self.attacks_on(d)) for d in self.spec["datasets"])

    def exposed_scores(self) -> list[Path]:
        """Membership scores of the undefended and the private models. The report names the records that these scores
        single out.
        """
        return [self.scores(cell.dataset, cell.model, cell.defense, attack) for cell, attack in self._exposed()]

    def compared_signals(self) -> list[Path]:
        """What models that were trained elsewhere say, each followed by what its references say."""
        return [path for _, files in self._compared() for path, _ in files]

    def _compared(self) -> list[tuple[Cell, list[Input]]]:
        """The models that were trained elsewhere and attacked with references: what they say, and what those say."""
        found = []
        for cell in self.cells.values():
            used = any(ATTACKS[attack].needs == "reference" for attack in cell.membership)
            if cell.training["engine"] in ELSEWHERE and used:
                groups = (TARGET, cell.defense), ("reference", self.auxiliary_defense(cell, "reference"))
                found.append((cell, [self.answered(cell.dataset, cell.model, *group) for group in groups]))
        return found

    def _exposed(self) -> list[tuple[Cell, str]]:
        return [
            (cell, attack)
            for cell in self.cells.values()
            for attack in cell.membership
            if cell.defense == "none" or cell.columns["accountant"]
        ]

    def report_files(self) -> list[str]:
        """The user's files in which the report looks up the records that it names."""
        sources = [self.prepare_settings(dataset)["source"] for dataset in self.spec["datasets"]]
        return [name for source in sources for name in files_of(source)]

    # ------------------------------------------------------------------ release and targets
    def before_release(self) -> list[Path]:
        """What is made before a release: all that is measured of its cell, and with that its learning rate."""
        cell = self.cell_named(self.spec["release"]["cell"])
        return [self.metrics(cell.dataset, cell.model, cell.defense), *self.tuned_for(cell)]

    def target_descriptions(self) -> dict[str, str]:
        """Target → one line for ``snakemake --list-target-rules``."""
        audit = {f"{self.target}_audit": "canaries of every cell, trained and scored"}
        return {
            **(audit if self.audited else {}),
            **({f"{self.target}_release": "the model that is given away, trained once"} if self.releases else {}),
            f"{self.target}_verify": "reads every file of the study and compares it with its digest",
            self.target: one_line(self.spec["title"]),
            f"{self.target}_report": "the page with everything",
            **{f"{self.target}_{name}": one_line(self.title_of(name)) for name in self.spec["figures"]},
        }
