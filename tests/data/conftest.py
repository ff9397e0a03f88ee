"""Where real data sets may lie."""

import sys
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


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
