"""What a release tells of its study's attacks."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import write_table
from dp_leakage.release import measured


def test_metrics_of_other_settings_are_refused_with_the_command_that_makes_them_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the file the release would say nothing of attacks, so to delete it is not the first advice."""
    path = tmp_path / "metrics.parquet"
    write_table(path, pd.DataFrame({"metric": ["accuracy"]}), {"identity": "of-others", "settings": {}})
    monkeypatch.setattr(measured, "measure_settings", lambda study, cell: {"seed": 1})
    study = SimpleNamespace(path=lambda name, cell: path, target="mine")
    with pytest.raises(
        UserError, match=r"other settings or other code .*: run `dp-leakage run mine` first, or delete it"
    ):
        measured.measured_of(study, SimpleNamespace(), 8)


WORDS = "On digits, use ε = 10."
ANSWER = {"kind": "answer", "dataset": "digits", "verdict": "both", "cells": [["mlp", "dp"]], "words": WORDS}
BROKEN = {"kind": "refuted", "dataset": "digits", "verdict": "", "cells": [["mlp", "dp"]], "words": "ε ≥ 3."}


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ([ANSWER], [f"The report recommends this setting: {WORDS}"]),
        ([ANSWER | {"verdict": "open"}], [f"The report does not recommend this setting: {WORDS}"]),
        ([ANSWER | {"cells": [["mlp", "other"]]}], [f"The report does not recommend this setting: {WORDS}"]),
        ([ANSWER | {"dataset": "wine"}, BROKEN | {"cells": [["cnn", "dp"]]}], []),
        ([BROKEN], ["The report refutes what this setting claims: ε ≥ 3."]),
        (None, ["The study has no report: "]),
    ],
)
def test_the_report_is_asked_about_a_setting_before_it_is_trained(tmp_path, claims, said):
    path = tmp_path / "claims.json"
    if claims is not None:
        path.write_text(json.dumps({"claims": claims}))
    study = SimpleNamespace(path=lambda name: path, target="mine")
    found = measured.advice_of(study, SimpleNamespace(dataset="digits", model="mlp", defense="dp"))
    assert len(found) == len(said)
    assert all(sentence.startswith(begin) for sentence, begin in zip(found, said, strict=True))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"claims": [7]}', '{"claims": {"a": 1}}'])
def test_a_damaged_report_is_refused_with_the_command_that_writes_it_anew(tmp_path, content):
    path = tmp_path / "claims.json"
    path.write_text(content)
    study = SimpleNamespace(path=lambda name: path, target="mine")
    with pytest.raises(UserError, match="cannot be read; run `dp-leakage run mine` again, which writes it"):
        measured.advice_of(study, SimpleNamespace(dataset="digits", model="mlp", defense="dp"))
