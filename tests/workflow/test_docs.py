"""What the documentation says can be done is done: its commands run, its links and pictures are there."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import study_files

REPO = Path(__file__).parents[2]
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
RUNNABLE = re.compile(r"<!-- runnable -->\n```bash\n(.*?)```", re.DOTALL)


def commands(page: Path) -> list[str]:
    """The commands of the page's blocks that are tagged runnable, without comments."""
    lines = [line for block in RUNNABLE.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    return [command for line in lines if (command := re.sub(r"(^|\s)#.*", "", line).strip())]


def written_outputs(file: Path, records: int, rng: np.random.Generator) -> None:
    """A table of what a model says: of two classes, surer of its members, who are a random half of the records."""
    label, member = np.arange(records) % 2, rng.random(records) < 0.5
    own = 1 / (1 + np.exp(-rng.normal(0.5 + member, 1.0)))
    said = pd.DataFrame({"record": np.arange(records), "label": label, "member": member.astype(int)})
    said = said.assign(probability_0=np.where(label == 0, own, 1 - own))
    said = said.assign(probability_1=1 - said["probability_0"])
    if file.suffix == ".parquet":
        said.to_parquet(file)
    else:
        said.to_csv(file, index=False)


TAGGED = [command for page in PAGES for command in commands(page)]


def test_the_readme_is_short_and_its_doors_stand_in_their_order():
    lines = (REPO / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    doors = [line for line in lines if line.startswith("### ")]
    words = ("Opacus", "Data", "model", "paper", "cluster")
    assert all(word in door for word, door in zip(words, doors, strict=False))


def test_links_and_pictures_of_the_documentation_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(REPO)}: {target}"


def test_some_commands_are_tagged_and_are_of_each_kind():
    for start in ("snakemake ", "dp-leakage new", "dp-leakage sigma"):
        assert any(command.startswith(start) for command in TAGGED), start


@pytest.mark.study
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_commands_tagged_runnable_run_at_smoke_scale(whole, page):
    whole.edit("config.yaml", "scale: paper", "scale: smoke")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(REPO / name, whole.folder / name)
    shutil.copytree(REPO / "docs" / "examples", whole.folder / "docs" / "examples", dirs_exist_ok=True)
    environment = whole.folder / ".venv"  # what `make install` would set up
    environment.mkdir()
    for part in ("bin", "lib", "pyvenv.cfg"):
        (environment / part).symlink_to(Path(sys.executable).parent.parent / part)
    for stamp in (".runs", ".installed"):
        (environment / stamp).touch()
    table = load_breast_cancer(as_frame=True).frame
    renamed = {"target": "diagnosis", "mean radius": "radius", "mean texture": "texture"}
    table.rename(columns=renamed).to_csv(whole.folder / "my.csv", index=False)
    own = whole.folder / "bin"
    own.mkdir()
    (own / "dp-leakage").write_text(f'#!/bin/sh\nexec {sys.executable} -m dp_leakage "$@"\n')
    (own / "dp-leakage").chmod(0o755)
    rng = np.random.default_rng(0)
    for file, records in (("outputs.parquet", 800), ("references.csv", 800)):
        written_outputs(whole.folder / file, records, rng)
    path = f"{own}:{environment / 'bin'}:{os.environ['PATH']}"
    variables = os.environ | {"PATH": path, "PYTHONPATH": str(whole.folder / "src")}
    for command in commands(page):
        done = subprocess.run(
            command, shell=True, cwd=whole.folder, env=variables, text=True, capture_output=True, timeout=1500
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_study_of_ours_with_results_is_on_the_results_page():
    page = (REPO / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    for folder in (REPO / "docs" / "results").iterdir():
        assert not folder.is_dir() or f"({folder.name}/README.md)" in page, folder.name


def test_every_study_is_on_the_results_page():
    text = (REPO / "docs" / "results" / "README.md").read_text(encoding="utf-8")
    for path in study_files(REPO / "workflow" / "studies"):
        name = read_yaml(path)["study"]
        assert f"| `{name}` |" in text, name


def said_in_the_source() -> str:
    """Every text of the package, with a gap where a value is put in."""
    texts = []
    for path in (REPO / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)  # noqa: PD011
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def test_the_messages_that_are_explained_are_messages_of_the_source():
    source = said_in_the_source() + (REPO / "src/dp_leakage/report/template.html").read_text(encoding="utf-8")
    page = (REPO / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = [
        m
        for line in page.splitlines()
        if line.startswith("| `")
        for m in re.findall(r"`([^`]+)`", line.split(" | ")[0])
    ]
    pieces = [piece.strip(" ;:(") for m in messages for piece in re.split(r"…|'[^']*'|[\d.,]*\d\S*|\b[xk]\b", m)]
    checked = [piece for piece in pieces if len(piece) >= 15 and "Directory cannot be locked" not in piece]
    assert len(checked) > 25
    assert [piece for piece in checked if piece not in source] == []
