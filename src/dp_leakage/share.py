"""A copy of a study's results that can be given away: without seeds, member lists, and what confirms a guess at either.

    python -m dp_leakage.share results/quickstart shared/quickstart

Everything random in a training follows from its seed. Anyone with a model's file, the seed and the members can train
the model again, to equal bytes. So anyone with the file, the seed and a guess at the members (or the data) can confirm
the guess: noise that can be recomputed protects nobody. The copy holds the figures, the metrics and the models'
weights. It does not hold the data, the member lists, scores of single records, seeds, hashes of any of these, or the
report, which names the seed, the data's hash and the most exposed records. Figures that show records are copied as they
are.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dp_leakage.common.arguments import Parser
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_dir, is_file
from dp_leakage.provenance.files import read_table, read_tensors, replacing

MEMBERS = "train_indices"
# Settings that say nothing about records.
OPEN = ("mechanism", "dataset", "model", "defense", "architecture", "training")
STAMPS = re.compile(rb"(identity=)[0-9a-f]{16}|(csv=|pdf=|png=)[0-9a-f]{64}")


def share(results: Path, shared: Path) -> list[Path]:
    """Writes the copy; returns its files.

    Args:
        results: a study's folder.
        shared: a folder that does not exist, or is empty.

    Raises:
        UserError: there are no results, ``shared`` lies in them, is no folder or holds something, or a file is damaged.
    """
    if not is_file(results / "report.html"):
        raise UserError(f"{results} holds no finished study (report.html is missing); run `snakemake STUDY` first")
    if "\0" in str(shared) or (os.path.lexists(shared) and not is_dir(shared)):
        raise UserError(f"{str(shared)!r} is no folder; name one that does not exist")
    if is_dir(shared) and any(shared.iterdir()):
        raise UserError(f"{shared} is not empty; name a folder that does not exist")
    if Path(os.path.realpath(shared)).is_relative_to(os.path.realpath(results)):
        raise UserError(f"{shared} lies in {results}, which is not for sharing; name a folder elsewhere")
    written = []
    for path in sorted(results.rglob("*")):
        to = shared / path.relative_to(results)
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.name in ("target.safetensors", "models.safetensors"):
            _weights(path, to)
        elif path.name == "metrics.parquet":
            _metrics(path, to)
        elif path.parent == results / "figures":
            with replacing(to) as temporary:
                temporary.write_bytes(_unstamped(path.read_bytes(), path.suffix))
        else:
            continue
        written.append(to)
    return written


def _weights(path: Path, to: Path) -> None:
    from safetensors.numpy import save_file

    tensors, made = read_tensors(path)
    settings = {key: value for key, value in made["settings"].items() if key in OPEN}
    weights = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items() if name != MEMBERS}
    with replacing(to) as temporary:
        save_file(weights, temporary, {"dp_leakage": json.dumps(settings, sort_keys=True)})


def _metrics(path: Path, to: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame, _ = read_table(path)
    with replacing(to) as temporary:
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None), temporary)


def _unstamped(content: bytes, suffix: str) -> bytes:
    """A figure's file with its provenance overwritten by zeros, at the same length."""
    if suffix == ".csv":
        return content
    found = STAMPS.sub(lambda said: said[1] + b"0" * 16 if said[1] else said[2] + b"0" * 64, content)
    return _with_checksum(found) if suffix == ".png" else found


def _with_checksum(png: bytes) -> bytes:
    """A PNG with the correct checksum of its second chunk, the text."""
    import struct
    import zlib

    start = 8 + 25  # signature and header
    (length,) = struct.unpack(">I", png[start : start + 4])
    end = start + 8 + length
    return png[:end] + struct.pack(">I", zlib.crc32(png[start + 4 : end])) + png[end + 4 :]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = Parser(
        prog="python -m dp_leakage.share", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="a study's folder, such as results/quickstart")
    parser.add_argument("shared", type=Path, help="where to: a folder that does not exist")
    options = parser.parse_args(arguments)
    try:
        written = share(options.results, options.shared)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(written)} files in {options.shared}, without seeds and member lists")
    return 0


if __name__ == "__main__":
    sys.exit(main())
