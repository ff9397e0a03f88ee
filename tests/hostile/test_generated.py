# ruff: noqa: E501 (tables of input)
"""Over a thousand generated inputs of the same classes: each is taken or ends in one sentence, and none of them takes long."""

import random
import string
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
import given  # noqa: E402

pytestmark = pytest.mark.fuzz
SOON = 10  # seconds of processor time
WORDS = [
    "", " ", "\n", "a\nb", "$(touch ran)", "`touch ran`", "'", '"', "{x}", "{wildcards.study}", "<script>", ": #", "--help",
    "../../x", "/etc/passwd", "a" * 300, "\x00", "\ud800", "é", "😀", "²", "true", "null", "none", "shadow", "0", "1e3", "nan",
    "*a", "&a", "!!int x", "%", "\\", "$\\frac$", "a\x85b", "\u2028", "yes", "5", "-1", "1:30", "010", "2020-99-99",
]  # fmt: skip
TEXTS = [word for word in WORDS if word != "\ud800"]
VALUES = [
    None, True, False, 0, -1, 1, 2, 10**9, 10**30, -(10**30), 0.5, -0.5, 1e-308, 1e300, float("nan"), float("inf"), [], {},
    [1], [[1]], ["a"], {"a": 1}, {1: 2}, [None], {"a": {"b": {"c": []}}}, *WORDS,
]  # fmt: skip
STUDIES, DATA, COMMANDS, YAMLS, PLUGINS = 400, 150, 150, 200, 150


def paths(value, at=()):
    """Every place in nested mappings and lists."""
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*at, key))


def replaced(value, at, new, rng):
    """A copy with another value, another key or nothing at a place."""
    if not at:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    if len(at) == 1 and isinstance(copied, dict) and rng.random() < 0.3:
        held = copied.pop(at[0])
        if rng.random() < 0.7:
            copied[new if isinstance(new, str | int | bool) else str(new)] = held
        return copied
    copied[at[0]] = replaced(copied[at[0]], at[1:], new, rng)
    return copied


def judged(run, shown):
    begun = time.process_time()
    try:
        text = run()
    except Exception as error:
        raise AssertionError(f"{shown!r}: {type(error).__name__}: {error}") from error
    assert text is None or given.is_sentence(text), (shown, text)
    assert time.process_time() - begun < SOON, shown


def test_studies_with_any_value_or_key_anywhere(tmp_path):
    rng = random.Random(1)
    places = list(paths(given.TINY))
    for _ in range(STUDIES):
        spec = given.TINY
        for _ in range(rng.choice([1, 1, 2])):
            at, new = rng.choice(places), rng.choice(VALUES)
            try:
                spec = replaced(spec, at, new, rng)
            except (KeyError, IndexError, TypeError):
                continue  # an earlier change took the place away
        content = yaml.safe_dump(spec, allow_unicode=True) if rng.random() < 0.9 else str(spec)
        judged(lambda content=content: given.study(tmp_path, content), content)


def test_texts_that_are_hardly_yaml(tmp_path):
    rng = random.Random(2)
    text = yaml.safe_dump(given.TINY)
    pieces = [
        "[",
        "]",
        "{",
        "}",
        ":",
        "#",
        "\t",
        "\n",
        "&a ",
        "*a",
        "!!int ",
        "- ",
        "<<: *a",
        "|",
        ">",
        "%",
        "@",
        "\x00",
        "\ufeff",
        "'",
        '"',
    ]
    for _ in range(YAMLS):
        changed = list(text)
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(changed))
            changed[place : place + rng.randint(0, 3)] = rng.choice([*pieces, *string.printable, *WORDS])
        content = "".join(changed)
        cut = content[: rng.randrange(len(content))] if rng.random() < 0.2 else content
        made = cut.encode(rng.choice(["utf-8", "utf-8", "utf-16", "latin-1"]), "replace") if rng.random() < 0.3 else cut
        judged(lambda made=made: given.study(tmp_path, made), made)


def test_tables_and_arrays_of_any_content(tmp_path):
    rng = random.Random(3)
    for case in range(DATA):
        folder = tmp_path / str(case)
        folder.mkdir()
        if case % 3:
            frame = given.sound(rng.choice([0, 1, 2, 120, 240])).astype(object)
            for _ in range(rng.randint(0, 3)):
                column = rng.choice(list(frame.columns))
                values = [rng.choice([*TEXTS, 1e300, -1, None, float("inf"), "1,5", 10**25]) for _ in range(len(frame))]
                frame[column] = values if rng.random() < 0.5 else rng.choice(TEXTS)
            if rng.random() < 0.5:
                frame = frame.rename(columns={"a": rng.choice(TEXTS), "b": rng.choice(TEXTS)})
            content = frame.to_csv(index=False).encode("utf-8", "replace")
            if rng.random() < 0.4:
                place = rng.randrange(max(1, len(content)))
                content = content[:place] + bytes(rng.randrange(256) for _ in range(5)) + content[place + 2 :]
            (folder / "d.csv").write_bytes(content)
            judged(
                lambda folder=folder: given.data(
                    folder, "d.csv", "--label=y", f"--missing={rng.choice(['', 'impute'])}"
                ),
                case,
            )
        else:
            shape = rng.choice([(200, 4), (0, 4), (200, 0), (200, 8, 8), (200, 3, 8, 8), (200,), (200, 1, 1, 1, 1), ()])
            kind = rng.choice(["f8", "f4", "i8", "u8", "?", "U3", "c16", "M8[s]"])
            x, y = np.zeros(shape).astype(kind), (np.arange(200) % 2).astype(rng.choice(["i8", "f8", "U3", "?", "u8"]))
            np.savez(folder / "d.npz", x=x, y=y[: rng.choice([200, 200, 3])])
            content = bytearray((folder / "d.npz").read_bytes())
            for _ in range(rng.choice([0, 0, 3, 30])):
                content[rng.randrange(len(content))] = rng.randrange(256)
            (folder / "d.npz").write_bytes(bytes(content))
            judged(
                lambda folder=folder: given.data(
                    folder, "d.npz", *[f"--sensitive={rng.choice(WORDS)}"][: rng.randint(0, 1)]
                ),
                case,
            )


def test_command_lines_of_the_privacy_command():
    rng = random.Random(4)
    numbers = [
        "0",
        "-1",
        "1",
        "10",
        "100",
        "1e300",
        "1e-300",
        "nan",
        "inf",
        "x",
        "",
        "²",
        "1" * 50,
        "0x10",
        "1_0",
        "3.5",
    ]
    options = [
        "--epsilon",
        "--epochs",
        "--batch-size",
        "--dataset-size",
        "--delta",
        "--kappa",
        "--blocks",
        "--noise-multiplier",
    ]
    for _ in range(COMMANDS):
        sound = {"--epochs": "10", "--batch-size": "10", "--dataset-size": "100", "--epsilon": "1"}
        for _ in range(rng.randint(1, 3)):
            sound[rng.choice(options)] = rng.choice(numbers)
        if rng.random() < 0.2:
            sound.pop(rng.choice(list(sound)))
        words = [rng.choice(["sigma", "sigma", "epsilon"]), *(f"{key}={value}" for key, value in sound.items())]
        judged(lambda words=words: given.asked(" ".join(words)), words)


def test_plugins_that_declare_and_return_anything(tmp_path):
    rng = random.Random(5)
    shown = [repr(value) for value in VALUES if "\ud800" not in str(value)]
    for case in range(PLUGINS):
        folder = tmp_path / str(case)
        folder.mkdir()
        value = rng.choice(shown)
        text, use = rng.choice(
            [
                (f"ATTACK = {{'family': {value}}}\ndef score(a, b, c, d):\n    return {value}\n", given.scored),
                (
                    f"ATTACK = {{'family': 'membership', 'settings': {value}}}\ndef score(a, b, c, d):\n    return 1\n",
                    None,
                ),
                (f"ATTACK = {{'family': 'membership'}}\ndef score(a, b, c, d):\n    return {value}\n", given.scored),
                (f"MECHANISM = {{}}\ndef bound(norms, clip_norm):\n    return {value}\n", given.bounded),
                (
                    "MECHANISM = {'relations': {'shuffle': ['zero_out']}, 'claim': 'bound'}\n"
                    f"def noise(a, b, c): ...\ndef epsilon(noise_multiplier, case):\n    return {value}\n",
                    given.solved,
                ),
                (f"FIGURE = {{'caption': {value}}}\ndef draw(a, b, c): ...\n", None),
                (
                    f"MECHANISM = {{'relations': {value}, 'claim': {value}}}\ndef noise(a, b, c): ...\ndef epsilon(a, b): ...\n",
                    None,
                ),
            ]
        )
        text = text.replace("nan", "float('nan')").replace("inf", "float('inf')") if rng.random() < 0.5 else text
        judged(lambda folder=folder, text=text, use=use: given.plugin(folder, text, use=use), text)


def test_more_than_a_thousand_are_generated():
    assert STUDIES + DATA + COMMANDS + YAMLS + PLUGINS >= 1000
