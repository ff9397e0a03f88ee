"""Two processes that share their batches: only the first adds noise, and it judges."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from watched import SCRIPTS, same_bytes

import dp_leakage

pytestmark = pytest.mark.slow


def launched(folder, port, words):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    environment = os.environ | {"PYTHONPATH": str(Path(dp_leakage.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [*command, *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_two_processes_hold_and_their_weights_are_the_same(mode, tmp_path):
    script = [str(SCRIPTS / "ddp.py"), "--mode", mode]
    assert launched(tmp_path, 29601, [*script, "--save", "plain.pt"]).returncode == 0
    ran = launched(tmp_path, 29602, ["-m", "dp_leakage", "watch", *script, "--save", "watched.pt"])
    assert ran.returncode == 0, ran.stderr
    assert "watch: cannot tell" not in ran.stderr
    told = json.loads((tmp_path / "watched" / "report.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "holds"
    assert same_bytes(tmp_path / "plain.pt", tmp_path / "watched.pt")


def test_sharded_tensors_are_left_alone_and_cannot_be_told(tmp_path):
    """To look at them waits for all processes: a watch that does so in one of them would stop the training."""
    script = [str(SCRIPTS / "ddp.py"), "--mode", "ghost_fsdp"]
    assert launched(tmp_path, 29603, [*script, "--save", "plain.pt"]).returncode == 0
    ran = launched(tmp_path, 29604, ["-m", "dp_leakage", "watch", *script, "--save", "watched.pt"])
    assert "watch: cannot tell: Tensors are sharded (FSDP)" in ran.stderr
    assert "A check failed" not in ran.stderr
    told = json.loads((tmp_path / "watched" / "report.json").read_text(encoding="utf-8"))
    assert (told["verdict"], told["script_status"]) == ("cannot tell", 0)
    assert [finding["code"] for finding in told["findings"] if finding["level"] != "note"] == ["fsdp"]
    assert told["trainings"][0]["counted"] == told["trainings"][0]["steps"] > 0
    assert same_bytes(tmp_path / "plain.pt", tmp_path / "watched.pt")
