"""The workflow with one small study run to its end, for tests that edit and rerun, and the real data sets."""

import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path

import hypothesis
import pytest
from workflow_copies import REPO, Workflow, copied, fresh

# As make has it: with two threads, a model's bytes depend on the models beside it. Set before torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in its background with the first two ignored, nohup with the third, and what the tests start
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same examples each time, as seeds are fixed elsewhere; and how long one takes says how busy the machine is.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("repeatable")

SHARED = REPO.parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The runs of Snakemake, which are long, come first: at the end no process waits for another's long file."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Workflow:
    """The small study, run to its end once for all processes of the tests. Do not edit: ask for `workflow`, a copy."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "finished"
    with (shared / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "finished.done").exists():
            folder.mkdir()
            fresh(folder).run()
            (shared / "finished.done").touch()
    return Workflow(folder)


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory) -> Workflow:
    """The quickstart as its file says, run to its end once. Do not edit."""
    workflow = copied(tmp_path_factory.mktemp("quickstart"))
    workflow.snakemake("quickstart", "--cores", "2", timeout=3000)
    return workflow


@pytest.fixture(scope="session")
def another(tmp_path_factory):
    """A function: name → the repository's workflow as it is, in a folder of its own for several tests."""
    return lambda name: copied(tmp_path_factory.mktemp(name))


@pytest.fixture
def workflow(finished, tmp_path) -> Workflow:
    """A copy of the finished study, times and Snakemake's records included."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder, copy_function=shutil.copy2)
    return Workflow(folder)


@pytest.fixture
def unrun(tmp_path) -> Workflow:
    """A copy of the repository's workflow that has run nothing yet."""
    return fresh(tmp_path)


@pytest.fixture
def whole(tmp_path) -> Workflow:
    """The repository's workflow as it is, in a folder of its own."""
    return copied(tmp_path)


# ------------------------------------------------------------------ real data sets beside the repository
@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """A function that writes a real data set of ../shared/data in its official layout and returns the data_dir."""

    def unpack(name: str) -> Path:
        if not (SHARED / "unpack.py").exists():
            pytest.skip(f"no real data sets at {SHARED}")
        data_dir = tmp_path_factory.mktemp(name)
        sys.path.insert(0, str(SHARED))
        try:
            import unpack

            unpack.main(data_dir, [name])
        finally:
            sys.path.remove(str(SHARED))
        return data_dir

    return unpack


@pytest.fixture
def shared():
    if not SHARED.exists():
        pytest.skip(f"no real data sets at {SHARED}")
    return SHARED
