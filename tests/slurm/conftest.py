"""A real one-node SLURM cluster, started for these tests and stopped after them."""

import subprocess
from pathlib import Path

import pytest
from slurm_cluster import Cluster

CLUSTER = Path(__file__).with_name("cluster")
CANNOT = 3  # exit status of the script where SLURM cannot be had


@pytest.fixture(scope="session")
def cluster():
    started = subprocess.run([CLUSTER, "start"], text=True, capture_output=True, check=False)
    if started.returncode == CANNOT:
        pytest.skip(started.stderr.strip())
    assert started.returncode == 0, started.stdout + started.stderr
    yield Cluster()
    subprocess.run([CLUSTER, "stop"], check=True)
