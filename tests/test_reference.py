"""The reference page says every key, and what it says is what the sections say."""

from pathlib import Path

import yaml

from dp_leakage.common.run_config import Config
from dp_leakage.common.sections import schema_of
from dp_leakage.reference import reference, undocumented
from dp_leakage.study.sections import StudyFile

REPO = Path(__file__).parents[1]
CONFIG, STUDY = schema_of(Config), schema_of(StudyFile)


def test_no_key_is_undocumented():
    assert undocumented(CONFIG) == []
    assert undocumented(STUDY) == []
    assert undocumented({"properties": {"a": {"type": "object", "properties": {"b": {}}}}}) == ["a", "a.b"]


def test_the_page_is_up_to_date():
    page = (REPO / "docs" / "reference.md").read_text(encoding="utf-8")
    assert page == reference(), "run: make reference"


def test_every_key_of_config_yaml_is_explained_there_and_in_the_schema():
    text = (REPO / "config.yaml").read_text(encoding="utf-8")
    keys = set(yaml.safe_load(text))
    assert keys == set(CONFIG["properties"])
    lines = text.splitlines()
    for key in keys:
        position = next(i for i, line in enumerate(lines) if line.startswith(f"{key}:"))
        assert lines[position - 1].startswith("#"), key
