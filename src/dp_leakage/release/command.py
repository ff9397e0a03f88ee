"""``dp-leakage release`` and ``dp-leakage verify FOLDER``: make or check a release."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.paths import is_dir, user_path
from dp_leakage.common.rounding import rounded_down
from dp_leakage.common.shown import show
from dp_leakage.options.release import parser, verifying
from dp_leakage.release.folder import alone, check_new, released_before
from dp_leakage.release.verify import verify


def make(arguments: Sequence[str] | None = None) -> int:
    """Make a release; return the exit status, 1 if it is refused."""
    return _told(_make, parser().parse_args(arguments))


def check(arguments: Sequence[str] | None = None) -> int:
    """Check a release; return the exit status, 1 if its statement does not hold."""
    return _told(_verify, verifying().parse_args(arguments))


def _told(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> int:
    try:
        run(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _verify(options: argparse.Namespace) -> None:
    print("\n".join(verify(user_path(options.folder))))


def _make(options: argparse.Namespace) -> None:
    import torch

    from dp_leakage.release.make import release
    from dp_leakage.release.measured import advice_of, measured_of
    from dp_leakage.release.plan import plan_of, study_named
    from dp_leakage.release.sheet import records_in_words
    from dp_leakage.release.statement import spent_in_words
    from dp_leakage.release.twin import CANARIES, audited, most_shown
    from dp_leakage.study.file import typed
    from dp_leakage.study.paths import RELEASE
    from dp_leakage.study.plan import check_unexpired
    from dp_leakage.training.checkpoint import Checkpoint

    torch.set_num_threads(1)
    given = {key: typed(value) for key, value in (("models", options.models), ("canary", options.canary)) if value}
    study, config = study_named(options.study, options.scale, {"audit": given} if given else None)
    wanted = study.spec.get("release") or {}
    if not options.cell and not study.releases:
        valid = nearest("", study.private_names)
        raise UserError(f"CELL is missing: study {study.target} names none in release.cell; {valid}")
    cell = study.cell_named(options.cell or wanted["cell"])
    folder = user_path(options.to) if options.to else study.path(RELEASE, cell)
    if options.keep and is_dir(folder):
        print("\n".join(verify(folder)))
        return
    check_new(folder)
    check_unexpired(study)
    for sentence in [*released_before(folder, study.target), *advice_of(study, cell)]:
        print(sentence, flush=True)
    plan = plan_of(study, cell, Path(config.get("data_dir", "data")), wanted)
    measured = measured_of(study, cell, plan.units)
    interval = float(config.get("checkpoint_seconds", 60))
    if audit := wanted.get("audit"):
        models = audit["models"]
        most = rounded_down(most_shown(plan, models), 3)
        print(f"Audits {models} twins first; they could show ε ≥ {most}.", flush=True)
        with alone(folder) as working:
            state = Checkpoint(working / "audit.safetensors", f"{plan.identity}-{audit}", interval)
            twins = audited(plan, models, audit.get("canary", CANARIES[0]), state, lambda n, m: _show(n, m, "twin"))
        print(f"They show ε ≥ {rounded_down(twins['epsilon_at_least'], 3)} with 95 % confidence.", flush=True)
        measured["audits"] = [*measured.get("audits", []), twins]
    times = "once" if plan.selection is None else f"{plan.selection['mean']:g} times on average"
    print(
        f"Trains {cell.model} {times} on {records_in_words(plan.told)} at a noise multiplier of "
        f"{plan.training.mechanism.sigma:.4g}.",
        flush=True,
    )
    statement = release(plan, folder, interval, measured, _show)
    print(f"Released with {spent_in_words(statement)}: {folder}")
    print(f"Check it anywhere, without the data: dp-leakage verify {folder}")


def _show(done: int, of: int, what: str = "epoch") -> None:
    show(f"\r{what} {done} of {of}" + ("\n" if done == of else ""))
