"""What somebody adds to the package for the first time: one file of code, which nothing else names; a step, two."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from dp_leakage.attacks.signals import losses
from dp_leakage.provenance.files import read_arrays

REPO = Path(__file__).parents[1]
STUDY = """
from pathlib import Path

from dp_leakage.common.config import merged
from dp_leakage.study.file import load_study
from dp_leakage.study.plan import caption, figure_settings
from dp_leakage.study.protocol import settings_of_attack, source_of
from dp_leakage.study.steps import attack_settings, prepare_settings, train_settings
from dp_leakage.common.yaml_files import read_yaml

def study(**changes):
    path = Path("tests/studies/quickstart.yaml")
    return load_study(path, read_yaml(path), scale="paper", overrides={"quickstart": changes})
"""


class Addition(NamedTuple):
    """A file below ``src/dp_leakage``, what it says (or what is put before a line of it), and what then works."""

    file: str
    text: str
    works: str
    before: str = ""


ADDITIONS = {
    "an attack": Addition(
        "attacks/membership/loudest.py",
        """
        '''The larger the margin, the likelier a member.'''

        from dp_leakage.attacks.signals import Scores

        ATTACK = {
            "family": "membership",
            "settings": {"level": {"type": "number", "exclusiveMinimum": 0, "default": 1.0, "description": "Margin."}},
        }


        def score(target, reference, settings, seed):
            margin = target.asked.margin[0]
            return Scores(margin, margin > settings["level"])
        """,
        """
        made = study(attacks={"loudest": {"level": 2}})
        settings = attack_settings(made, made.cell("digits", "mlp", "none"), "loudest")
        assert settings["module"] == "dp_leakage.attacks.membership.loudest"
        assert settings["settings"] == {"level": 2}
        refused(lambda: study(attacks={"loudest": {"level": 0}}), "expected a number above 0")
        refused(lambda: study(attacks={"loudes": {}}), "did you mean 'loudest'")
        """,
    ),
    "a kind of figure": Addition(
        "figures/dots.py",
        """
        '''Accuracies as dots.'''

        from dp_leakage.table.frames import chosen, drawn_numbers
        from dp_leakage.figures.style import canvas, finish, styled

        FIGURE = {"caption": "Accuracies.", "settings": {"size": {"type": "integer", "minimum": 1, "default": 3}}}


        @styled
        def draw(metrics, settings, published):
            rows = chosen(metrics, settings)
            rows = drawn_numbers(rows[rows["metric"] == "test_accuracy"], published)
            figure, [[ax]] = canvas(1, 1)
            ax.plot(rows["measured"], "o", markersize=settings["size"])
            return finish(figure, [], title=settings["title"]), rows
        """,
        """
        made = study(figures={"fig_dots": {"kind": "dots", "settings": {"size": 5}}})
        assert figure_settings(made, "fig_dots")["module"] == "dp_leakage.figures.dots"
        assert caption(made, "fig_dots") == "Accuracies."
        figures = {"fig_dots": {"kind": "dots", "settings": {"size": 0}}}
        refused(lambda: study(figures=figures), "a whole number of at least 1")
        sys.path.append("tests/figures")
        import synthetic
        from dp_leakage.figures import draw
        assert len(draw("dots", synthetic.quick_frame(), {})[1])
        """,
    ),
    "a source of data": Addition(
        "data/sources/coin.py",
        """
        '''Records that are one coin each.'''

        import numpy as np

        from dp_leakage.data.raw import Raw

        SOURCE = {"summary": "Coins.", "keys": {"count": {"type": "integer", "minimum": 1}}, "required": ["count"]}


        def load(spec, data_dir):
            y = np.arange(spec["count"]) % 2
            return Raw(y[:, None].astype(np.float32), y, ("tails", "heads"), ("side",))
        """,
        """
        from dp_leakage.data import load
        made = study(datasets={"digits": {"source": {"source": "coin", "count": 2000}}})
        assert prepare_settings(made, "digits")["source"] == {"source": "coin", "count": 2000}
        assert load(source_of(made.spec, "digits"), Path("data")).x.shape == (2000, 1)
        refused(lambda: study(datasets={"digits": {"source": "coin"}}), "count: missing; the source coin needs")
        """,
    ),
    "a mechanism's bound": Addition(
        "privacy/mechanisms/gentle.py",
        """
        '''Gradients are scaled by C/(‖g‖ + C): never longer than C, and never cut.'''

        from dp_leakage.privacy.mechanisms import gaussian
        from dp_leakage.privacy.mechanisms.base import Declaration

        MECHANISMS = {
            "gentle": Declaration(
                label="gentle",
                guarantee="Hides each record.",
                module=gaussian.__name__,
                noise="gaussian",
                bound="gentle",
            )
        }
        ACCOUNTANTS = {}


        def bound(norms, clip_norm):
            return clip_norm / (norms + clip_norm)
        """,
        """
        import torch
        from dp_leakage.privacy.clipping import bound_scales
        changes = {"defense": "gentle", "accountant": "rdp", "sampler": "poisson", "epsilon": [1]}
        made = study(defenses=[{"defense": "none"}, changes])
        cell = made.cell("digits", "mlp", "gentle-rdp-eps=1")
        assert (cell.training["mechanism"]["bound"], cell.training["mechanism"]["noise"]) == ("gentle", "gaussian")
        assert torch.allclose(bound_scales(torch.tensor([0.0, 2.0]), 2.0, "gentle"), torch.tensor([1.0, 0.5]))
        code = train_settings(made, cell)["code"]
        from dp_leakage.provenance import fingerprint
        from dp_leakage.study.step_code import step_code
        file = Path("src/dp_leakage/privacy/mechanisms/gentle.py")
        file.write_text(file.read_text().replace("(norms + clip_norm)", "(norms + 2 * clip_norm)"))
        for remembered in (step_code, fingerprint._parsed, fingerprint._imports):
            remembered.cache_clear()
        assert train_settings(made, cell)["code"] != code
        """,
    ),
    "a metric": Addition(
        "metrics/measure.py",
        """
            rows += judged("flagged_share", own, BALANCED, flags)
        """,
        """
        import numpy as np
        import pandas as pd
        from dp_leakage.metrics import measure_membership
        n = 40
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"repeat": np.repeat([0, 1], n), "record": np.tile(np.arange(n), 2)})
        frame = frame.assign(member=frame["record"] < n // 2, score=rng.normal(size=2 * n))
        rows = measure_membership(frame.assign(flagged=frame["score"] > 0), "mine")
        assert [row["repeat"] for row in rows if row["metric"] == "flagged_share"] == ["0", "1", "all"]
        """,
        before='    rows += judged("membership_auc"',
    ),
    "a setting": Addition(
        "attacks/membership/yeom.py",
        """
        "sharpness": {"type": "number", "exclusiveMinimum": 0, "default": 1.0, "description": "How sharp."},
        """,
        """
        made = study(attacks={"yeom": {"sharpness": 2}})
        settings = attack_settings(made, made.cell("digits", "mlp", "none"), "yeom")
        assert settings["settings"] == {"probability_floor": 0.0, "sharpness": 2}
        assert settings_of_attack(study().spec, "yeom")["sharpness"] == 1.0
        refused(lambda: study(attacks={"yeom": {"sharpness": 0}}), "sharpness' is 0; expected a number above 0")
        refused(lambda: study(attacks={"yeom": {"sharpnes": 1}}), "attacks.yeom.sharpnes'; did you mean 'sharpness'")
        from dp_leakage.reference import reference
        assert "| `sharpness` | number above 0 | `yeom` | How sharp. |" in reference()
        """,
        before='"probability_floor": {',
    ),
    "a qualifier of metrics": Addition(
        "metrics/rows.py",
        """
        "temperature": Qualifier("by how much outputs are softened", float),
        """,
        """
        sys.path.append("tests/figures")
        import synthetic
        from dp_leakage.table.frames import NAMES, chosen, drawn_numbers, metric_rows
        from dp_leakage.metrics.intervals import Estimate
        from dp_leakage.metrics.rows import row
        from dp_leakage.provenance.files import read_table
        from dp_leakage.steps._metrics import joined
        from dp_leakage.steps._rows import write_rows
        given = [row("softened", "all", Estimate(0.1 * t, 0.0, 1.0), attack="yeom", temperature=t) for t in (4, 2, 1)]
        write_rows(Path("rows.parquet"), given, {})
        written = read_table(Path("rows.parquet"))[0]
        assert written["temperature"].tolist() == [4, 2, 1]
        metrics = synthetic.quick_frame()
        cell = metrics.iloc[0][["study", *NAMES]]
        frame = chosen(joined([(dict(cell, epsilon=None, delta=None), written)]), {})
        assert drawn_numbers(metric_rows(frame, "softened"), None)["temperature"].tolist() == [1, 2, 4]
        assert metric_rows(frame, "softened", temperature=2)["value"].tolist() == [0.2]
        refused(lambda: metric_rows(frame, "softened", temperature=3), "there is: softened attack=yeom, temperature=1")
        from dp_leakage.reference import reference
        assert "by how much outputs are softened" in reference()
        """,
        before='    "of": Qualifier(',
    ),
}
# A step between the models' answers and the attacks: an entry, a module and a rule.
ENTRY = """

def _tempered(study, job):
    asked = made(study, "query", None, dataset=job.dataset, model=job.model, group=job.group, answers=SIGNALS)
    return {"temperature": 2.0, "signals": asked, "code": step_code("temper")}


STEPS["temper"] = Step(
    {SIGNALS: paths.MODEL + "/{group}/tempered.npz"},
    _tempered,
    reads=lambda study, job: {"asked": path_of("query", SIGNALS, study=study.name, **job.names)},
)
ANSWERED_BY[SIGNALS] = "temper"
"""
MODULE = """
'''Divides the margins of what models say by a temperature.'''

from dp_leakage.provenance.files import read_arrays, write_arrays
from dp_leakage.steps import provenance, run


def main(settings, asked, signals):
    arrays, _ = read_arrays(asked, settings["signals"])
    write_arrays(signals, arrays | {"margin": arrays["margin"] / settings["temperature"]}, provenance(settings))


if __name__ == "__main__":
    run(main, "asked", "signals")
"""
RULE = """

rule temper:
    input:
        unpack(inputs_of("temper")),
    output:
        paths.MODEL + "/{group}/tempered.npz",
    log:
        paths.log("temper", "{dataset}/{model}/{group}"),
    wildcard_constraints:
        group="([^/]+/)?(shadow|reference)",
    group:
        in_group(query_group)
    conda:
        JOBS
    resources:
        mem_mb=memory_of("temper"),
        runtime=minutes_of("temper"),
    params:
        settings=settings_of("temper"),
    shell:
        "python -m dp_leakage.steps.temper --settings {params.settings:q} --asked {input.asked:q}"
        " --signals {output:q} 2> {log:q}"
"""
REFUSED = """
import sys

from dp_leakage.common.errors import UserError

def refused(made, sentence):
    try:
        made()
    except UserError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"taken, where this is due: {sentence}")
"""


@pytest.mark.parametrize("what", ADDITIONS)
def test_an_addition_is_one_file_of_code(what, tmp_path):
    addition = ADDITIONS[what]
    for part in ("src/dp_leakage", "tests/studies", "tests/figures", "workflow"):
        shutil.copytree(REPO / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    file, text = tmp_path / "src/dp_leakage" / addition.file, textwrap.dedent(addition.text).lstrip("\n")
    if addition.before:
        head, found, rest = file.read_text().partition(addition.before)
        assert found
        text = head + textwrap.indent(text, "    ") + found + rest
    file.write_text(text.replace("'''", '"""'))
    script = STUDY + REFUSED + textwrap.dedent(addition.works)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_step_is_an_entry_a_module_and_a_rule(unrun):
    unrun.append("src/dp_leakage/study/steps/attack.py", ENTRY)
    unrun.append("workflow/rules/auxiliary.smk", RULE)
    (unrun.folder / "src/dp_leakage/steps/temper.py").write_text(MODULE)
    planned = unrun.planned("quickstart")
    assert planned["temper"] == planned["query"] / 2 > 0  # each query of signals has another of class scores beside it
    cell = "results/quickstart-smoke/digits/mlp/none"
    unrun.snakemake(f"{cell}/attack/yeom.parquet", "--cores", "1")
    said, tempered = (read_arrays(unrun.folder / cell / f"{name}.npz")[0] for name in ("signals", "tempered"))
    assert np.array_equal(tempered["margin"], said["margin"] / 2)
    scores = pd.read_parquet(unrun.folder / cell / "attack/yeom.parquet")
    assert np.isin(scores["score"], -losses(tempered["margin"].mean(axis=0))).all()
