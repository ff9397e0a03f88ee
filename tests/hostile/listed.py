# ruff: noqa: E501, B023 (a table of inputs, each on its line)
"""What was found to be taken, unclear, endless or answered by a traceback: each input by its name.

``MUST`` end in a sentence; ``MAY`` be taken as well (a reading of them makes sense), but end no other way.
"""

import io
import os
import zipfile
from pathlib import Path

import given
import numpy as np
import pandas as pd
from data_files import image_bytes, write_files, write_zip

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(97 + k)}: &{chr(97 + k)} [{', '.join(['*' + chr(96 + k)] * 10)}]\n" for k in range(1, 12)
)
TEXT = given.yaml.safe_dump(given.TINY)
ROLES = given.TINY["datasets"]["digits"]["roles"]
SCORE = "ATTACK = {'family': 'membership'%s}\ndef score(target, reference, settings, seed):\n    %s\n"
NOISE = "def noise(row, scale, generator):\n    row.normal_(generator=generator)\n"
MECHANISM = "MECHANISM = {'relations': {'shuffle': ['zero_out']}, 'claim': 'bound'%s}\n" + NOISE
EPSILON = MECHANISM % "" + "def epsilon(noise_multiplier, case):\n    return %s\n"
NET = "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, **_):\n        super().__init__()\n"
BOUND = "MECHANISM = {}\ndef bound(norms, clip_norm):\n    %s\n"


def dataset(**changes):
    return {"datasets": {"digits": changes}}


def source(value):
    return lambda f: given.study(f, dataset(source=value))


def renamed(key, name):
    """A study whose one data set, model or figure has another name."""
    value = next(iter(given.TINY[key].values()))
    return lambda f: given.whole_study(f, **{key: {name: value}})


def after(text):
    return lambda f: given.study(f, TEXT + text)


def npz(folder: Path, *arguments: str, **arrays: np.ndarray) -> str | None:
    np.savez(folder / "d.npz", **arrays)
    return given.data(folder, "d.npz", *arguments)


def raw_npz(folder: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> str | None:
    with zipfile.ZipFile(folder / "d.npz", "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return given.data(folder, "d.npz")


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def lying(folder: Path) -> str | None:
    """An array whose header speaks of ten gigabytes."""
    content = npy(np.zeros((300, 4), np.float32)).replace(b"(300, 4)", b"(2500000000, )"[:8].ljust(8))
    header = npy(np.zeros((300, 4), np.float32)).replace(b"'shape': (300, 4), }", b"'shape': (2500000000,), }"[:20])
    huge = content if header == content else header
    return raw_npz(folder, {"x.npy": huge, "y.npy": npy(np.arange(300) % 2)})


def encrypted(folder: Path) -> str | None:
    raw_npz(folder, {"x.npy": npy(np.zeros((300, 4))), "y.npy": npy(np.arange(300) % 2)})
    content = bytearray((folder / "d.npz").read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (start := content.find(mark, start)) >= 0:
            content[start + place] |= 1
            start += 4
    (folder / "d.npz").write_bytes(bytes(content))
    return given.data(folder, "d.npz")


def bad_lzma(folder: Path) -> str | None:
    raw_npz(folder, {"x.npy": npy(np.zeros((300, 4))), "y.npy": npy(np.arange(300) % 2)}, zipfile.ZIP_LZMA)
    content = bytearray((folder / "d.npz").read_bytes())
    content[60:90] = b"\xff" * 30
    (folder / "d.npz").write_bytes(bytes(content))
    return given.data(folder, "d.npz")


def images(folder: Path, *arguments: str, classes=("a", "b"), n: int = 240, size: int = 8) -> str | None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (n, size, size)).astype(np.uint8)
    write_files(folder / "imgs", {f"{classes[i % len(classes)]}/{i}.png": image_bytes(x) for i, x in enumerate(pixels)})
    return given.data(folder, "imgs", *arguments)


def not_utf8(folder: Path, name: bytes) -> str | None:
    images(folder)
    (folder / "studies" / "mine.yaml").unlink()
    os.makedirs(os.path.join(os.fsencode(folder), b"imgs", os.path.dirname(name)), exist_ok=True)
    with open(os.path.join(os.fsencode(folder), b"imgs", name), "wb") as file:
        file.write(image_bytes(np.zeros((8, 8), np.uint8)))
    return given.data(folder, "imgs")


def file_not_utf8(folder: Path) -> str | None:
    name = os.fsdecode(b"d\xe9.csv")
    given.sound().to_csv(folder / name, index=False)
    return given.data(folder, name, "--label=y")


def parquet(folder: Path, *arguments: str, label: str = "y", **columns: object) -> str | None:
    given.sound().assign(**columns).to_parquet(folder / "d.parquet")
    return given.data(folder, "d.parquet", f"--label={label}", *arguments)


def indexed(folder: Path, label: str) -> str | None:
    """A table whose own words on an index name a column that is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = given.sound().set_index("b")
    made = pa.Table.from_pandas(frame)
    meta = {b"pandas": made.schema.metadata[b"pandas"].replace(b'"b"', b'"nope"')}
    pq.write_table(made.replace_schema_metadata(meta), folder / "d.parquet")
    return given.data(folder, "d.parquet", f"--label={label}")


def swollen(folder: Path) -> str | None:
    """A zip of a picture whose size is said to be ten gigabytes."""
    write_zip(folder / "d.zip", {"a/0.png": image_bytes(np.zeros((8, 8), np.uint8)), "b/1.png": b"x" * 100})
    content = bytearray((folder / "d.zip").read_bytes())
    place = content.find(b"PK\x01\x02")
    content[place + 24 : place + 28] = (3 * 2**30).to_bytes(4, "little")
    (folder / "d.zip").write_bytes(bytes(content))
    return given.data(folder, "d.zip")


def pipe(folder: Path) -> str | None:
    os.mkfifo(folder / "d.csv")
    return given.study(folder, dataset(source={"path": str(folder / "d.csv"), "label": "y"}))


def twice(folder: Path) -> str | None:
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(folder / "d.zip", "w") as archive:
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr("a/0.png", image_bytes(np.zeros((8, 8), np.uint8)))
    return given.data(folder, "d.zip")


def frame(**columns):
    return lambda f: given.table(f, given.sound().assign(**columns))


def text(content: str):
    return lambda f: given.table(f, text=content)


def asked(words: str):
    return lambda f: given.asked(words)


def named(name: str):
    return lambda f: given.plugin(f, SCORE % ("", "return None"), name)


LARGE = 10**30
MUST = {
    # ------------------------------------------------------------------ studies
    "study/attacks=penalty_name": lambda f: given.study(f, {"attacks": {"inversion_l1": {"penalties": [[["l3", 1.0]]]}}}),
    "study/attacks=penalty_two_texts": lambda f: given.study(f, {"attacks": {"inversion_l1": {"penalties": [[["l1", "x"]]]}}}),
    "study/dataset.shadow=unknown": lambda f: given.study(f, dataset(shadow={"coutn": 2})),
    "study/dataset.shadow=text": lambda f: given.study(f, dataset(shadow={"size": "50"})),
    "study/dataset.shadow=count0": lambda f: given.study(f, dataset(shadow={"count": 0})),
    **{f"study/{key[:-1]}_name={kind}": renamed(key, name) for key in ("datasets", "models", "figures")
       for kind, name in {"int": 5, "float": 1.5, "true": True, "null": None, "newline": "fig\n", "long": "a" * 250,
                          "upper": "Fig", "dots": "../x", "reserved": "none"}.items()},
    "study/model_name=shadow": renamed("models", "shadow"),
    "study/epsilon=1e-300": lambda f: given.study(f, {"epsilon": [1e-300]}),
    "study/epsilon=null": lambda f: given.study(f, TEXT.replace("epsilon:\n- 1\n- 100\n", "epsilon: null\n")),
    "study/projection=comp1e9": lambda f: given.study(f, dataset(projection={"components": 10**9})),
    "study/published=absolute": lambda f: given.study(f, {"published": "/etc/passwd"}),
    "study/published=traversal": lambda f: given.study(f, {"published": "../studies/quickstart.yaml"}),
    "study/scales=bad_at_paper": lambda f: given.study(f, {"scales": {"smoke": {"repeats": -1}}}),
    "study/scales=nonekey_missing": lambda f: given.study(f, {"scales": {"smoke": {"nothing": None}}} | {"x": 1}),
    "study/scales=study": lambda f: given.study(f, {"scales": {"smoke": {"study": "other"}}}),
    "study/source=empty": source(""),
    "study/source=path_long": source({"path": "a" * 5000 + ".csv", "label": "y"}),
    "study/source=source_list": source(["digits"]),
    "study/source=source_map": source({"source": {"a": 1}}),
    "study/source=path_fifo": pipe,
    "study/source=resize_huge": source({"source": "digits", "resize": [100_000, 100_000]}),
    "study/figure_title=surrogate": lambda f: given.study(f, TEXT + 'paper: "\\ud800"\n'),
    "study/figure_title=nul": lambda f: given.study(f, TEXT + 'paper: "a\\0b"\n'),
    "study/members=1e12": lambda f: given.study(f, dataset(roles={"target_members": 10**12})),
    "study/model=hid1e18": lambda f: given.study(f, {"models": {"mlp": {"architecture": {"hidden": [10**18]}}}}),
    "study/shadow=count1e9": lambda f: given.study(f, {"shadow": {"count": 10**9}}),
    "study/seed=400digits": lambda f: given.study(f, TEXT.replace("seed: 1\n", f"seed: {'9' * 400}\n")),
    **{f"study/model=module_{kind}": (lambda text: lambda f: given.module(f, text))(text) for kind, text in {
        "import_raises": "1/0\n",
        "notmodule": "def Net():\n    return 5\n",
        "raises": NET + "        raise KeyError('boom')\n",
        "syntax_error": "def (:\n",
        "wrong_shape": NET + "        self.out = torch.nn.Linear(2, 3)\n    def forward(self, x):\n        return self.out(x)\n",
    }.items()},
    # ------------------------------------------------------------------ YAML
    "yaml/bomb_in_scales": after(f"scales:\n  smoke:\n    {BOMB.replace(chr(10), chr(10) + '    ')}"),
    "yaml/deep_list_3000": after("paper: " + "[" * 3000 + "]" * 3000 + "\n"),
    "yaml/int_tag": after("paper: !!int abc\n"),
    "yaml/timestamp_tag": after("paper: !!timestamp x\n"),
    "yaml/key-int-and-text-unknown": after("5: x\nzzz: y\n"),
    "yaml/recursive_in_architecture": lambda f: given.study(f, TEXT.replace("name: mlp", "name: mlp\n      loop: &l [*l]")),
    "yaml/recursive_in_scales": after("scales:\n  smoke: &s\n    training: *s\n"),
    "yaml/octal": lambda f: given.study(f, TEXT.replace("repeats: 2", "repeats: 010")),
    "yaml/sexagesimal": lambda f: given.study(f, TEXT.replace("repeats: 2", "repeats: 1:30")),
    "yaml/latin1": lambda f: given.study(f, (TEXT + "paper: caf\xe9\n").encode("latin-1")),
    # ------------------------------------------------------------------ config
    "config/duplicate": lambda f: given.config(f, given.yaml.safe_dump(given.CONFIG) + "scale: paper\n"),
    "config/study_files=[workflow/studies/quickstart.yaml]": lambda f: given.config(f, {"study_files": ["nowhere.yaml"]}),
    "config/date": lambda f: given.config(f, given.yaml.safe_dump(given.CONFIG | {"scale": "2020-99-99"}).replace("'", "")),
    "config/nonutf8": lambda f: given.config(f, b"scale: paper\ndata_dir: caf\xe9\n"),
    "config/nul_data_dir": lambda f: given.config(f, 'scale: paper\ndevice: cpu\ndata_dir: "a\\0b"\n'),
    "config/nul_device": lambda f: given.config(f, 'scale: paper\ndevice: "c\\0u"\ndata_dir: data\n'),
    "config/surrogate_data_dir": lambda f: given.config(f, 'scale: paper\ndevice: cpu\ndata_dir: "\\ud800"\n'),
    "config/overrides={tiny: {5: null}}": lambda f: given.config(f, {"overrides": {"tiny": {5: None}}}),
    "config/overrides={tiny: {true: null}}": lambda f: given.config(f, {"overrides": {"tiny": {True: None}}}),
    "config/unknown_int_and_text": lambda f: given.config(f, {5: 1, "zzz": 2}),
    "config/empty": lambda f: given.config(f, ""),
    "config/list": lambda f: given.config(f, "- scale\n"),
    # ------------------------------------------------------------------ data
    "data/csv_decimal_comma": frame(a=[f"{i},5" for i in range(300)]),
    "data/csv_label_1e19_merge": frame(y=[1e19, 2e19] * 150),
    "data/npz_sensitive=0,0": lambda f: npz(f, "--sensitive=0,0", x=np.random.rand(300, 4), y=np.arange(300) % 2),
    "data/npz_sensitive=99999999999999999999": lambda f: npz(
        f, "--sensitive=99999999999999999999", x=np.random.rand(300, 4), y=np.arange(300) % 2
    ),
    "data/npz_sensitive=²": lambda f: npz(f, "--sensitive=²", x=np.random.rand(300, 4), y=np.arange(300) % 2),
    "data/npz_zero_features": lambda f: npz(f, x=np.zeros((300, 0)), y=np.arange(300) % 2),
    "data/npz_empty_images": lambda f: npz(f, x=np.zeros((300, 0, 0), np.uint8), y=np.arange(300) % 2),
    "data/npz_label_huge_float_all": lambda f: npz(f, x=np.random.rand(300, 4), y=np.full(300, 1e300)),
    "data/npz_dots_member": lambda f: raw_npz(f, {"../x.npy": b"x", "x": b"abc", "y": b"abc"}),
    "data/npz_not_npy_members": lambda f: raw_npz(f, {"x": b"abc", "y": b"abc"}),
    "data/npz_encrypted": encrypted,
    "data/npz_lzma_bad": bad_lzma,
    "data/npz_zip_bomb": lying,
    "data/parquet_label_date": lambda f: parquet(f, y=pd.date_range("2020-01-01", periods=300)),
    "data/parquet_label_list": lambda f: parquet(f, y=[[i % 2] for i in range(300)]),
    "data/parquet_list_impute": lambda f: parquet(f, "--missing=impute", a=[[1], None] * 150),
    "data/parquet_index_as_label": lambda f: indexed(f, "nope"),
    "data/parquet_pandas_meta_index": lambda f: indexed(f, "yy"),
    "data/zip_bomb_10G": swollen,
    "data/zip_dup_members": twice,
    "data/DATA='/'": lambda f: given.data(f, "/", "--label=y"),
    "data/filename_nonutf8": file_not_utf8,
    "data/img_nonutf8_class": lambda f: not_utf8(f, b"c\xe9/0.png"),
    "data/img_nonutf8_name": lambda f: not_utf8(f, b"a/p\xe9.png"),
    "data/csv_comment_lines": text("# a comment\na,b,y\n1,2,0\n3,4,1\n"),
    "data/columns_differ_by_blanks": text("a,a ,y\n" + "1,2,0\n3,4,1\n" * 150),
    **{f"data/img_SIZE={size}": (lambda size: lambda f: images(f, f"--size={size}"))(size)
       for size in ("100000x100000", "1e3", "99999999999999999999x1", "x32", "0x3", "3x", "-1", "²")},
    **{f"data/opt_SIZE={size}": (lambda size: lambda f: images(f, f"--size={size}"))(size) for size in ("3.5x3", "abc")},
    # ------------------------------------------------------------------ plugins
    "plugin/epsilon_nan": lambda f: given.plugin(f, EPSILON % "float('nan')", use=given.solved),
    "plugin/epsilon_zero": lambda f: given.plugin(f, EPSILON % "0", use=given.solved),
    "plugin/epsilon_none": lambda f: given.plugin(f, EPSILON % "None", use=given.solved),
    "plugin/epsilon_constant": lambda f: given.plugin(f, EPSILON % "3.0", use=given.solved),
    "plugin/epsilon_grows": lambda f: given.plugin(f, EPSILON % "noise_multiplier", use=given.solved),
    "plugin/exits": lambda f: given.plugin(f, SCORE % ("", "exit(0)"), use=given.scored),
    "plugin/raises": lambda f: given.plugin(f, SCORE % ("", "raise KeyError('boom')"), use=given.scored),
    "plugin/returns_none": lambda f: given.plugin(f, SCORE % ("", "return None"), use=given.scored),
    "plugin/returns_wrong_columns": lambda f: given.plugin(f, SCORE % ("", "return (1, 2)"), use=given.scored),
    "plugin/imports_missing": lambda f: given.plugin(f, "import no_such_pkg\n" + SCORE % ("", "return 1"), use=given.scored),
    "plugin/wrong_signature": lambda f: given.plugin(f, "ATTACK = {'family': 'membership'}\ndef score(a): ...\n"),
    "plugin/bound_none": lambda f: given.plugin(f, BOUND % "return None", use=given.bounded),
    "plugin/bound_raises": lambda f: given.plugin(f, BOUND % "1/0", use=given.bounded),
    "plugin/figure_caption_int": lambda f: given.plugin(f, "FIGURE = {'caption': 3}\ndef draw(a, b, c): ...\n"),
    "plugin/mechanism_claim": lambda f: given.plugin(f, (EPSILON % 1).replace("'claim': 'bound'", "'claim': 'sure'")),
    "plugin/mechanism_neigh_typo": lambda f: given.plugin(f, (EPSILON % 1).replace("zero_out", "zero")),
    "plugin/mechanism_relations_typo": lambda f: given.plugin(f, (EPSILON % 1).replace("shuffle", "shufle")),
    "plugin/mechanism_relations_empty": lambda f: given.plugin(f, (EPSILON % 1).replace("['zero_out']", "[]")),
    "plugin/mechanism_accountant_list": lambda f: given.plugin(f, (EPSILON % 1).replace("'bound'}", "'bound', 'accountant': []}")),
    "plugin/mechanism_accountant_slash": lambda f: given.plugin(
        f, (EPSILON % 1).replace("'bound'}", "'bound', 'accountant': '../../x'}")
    ),
    "plugin/mechanism_shadow_name": lambda f: given.plugin(f, EPSILON % 1, "shadow"),
    "plugin/deep_sum": lambda f: given.plugin(f, "X = " + "+".join("1" * 30_000) + "\n" + SCORE % ("", "return 1")),
    "plugin/unhashable": lambda f: given.plugin(f, "ATTACK = {['a']: 1}\ndef score(a, b, c, d): ...\n"),
    "plugin/roles_int": lambda f: given.plugin(f, SCORE % (", 'roles': 3", "return 1")),
    **{f"plugin/settings_{kind}": (lambda value: lambda f: given.plugin(f, SCORE % (f", 'settings': {value}", "return 1")))(value)
       for kind, value in {"bytes": "{'a': b'x'}", "int": "3", "list": "[1]", "set": "{'a': {1}}"}.items()},
    **{f"plugin/name_{name}": named(name)
       for name in ("curve", "images", "models", "scores", "target", "audit", "timing", "training")},
    # ------------------------------------------------------------------ make
    **{f"make/NAME={name}": (lambda name: lambda f: given.made(f, NAME=name.strip("'"), DATA="d.csv"))(name)
       for name in ("figures", "shadow", "y", "'--help'", "'-n'", "true", "'" + "x" * 300 + "'", "quick start")},
    "make/SIZE=abc": lambda f: images(f) or given.made(f, NAME="other", DATA="imgs", SIZE="abc"),
    "make/studies is a file": lambda f: (
        (f / "studies").write_text("x"), given.sound().to_csv(f / "d.csv", index=False),
        given.made(f, NAME="mine", DATA="d.csv", LABEL="y"),
    )[-1],
    # ------------------------------------------------------------------ the privacy command
    **{f"privacy/{words}": asked(words) for words in (
        "", "sigma --epsilon 1 --batch-size 10 --dataset-size 100",
        "sigma --epsilon 1 --sampler wor --neighbors zero_out --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --kappa 0 --blocks 10 --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --kappa 1e300 --blocks 10 --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --noise-multiplier 1e300 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --blocks 0",
        "sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --blocks 1",
        f"sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --blocks {LARGE}",
        "sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --blocks 10000000000x10",
        f"sigma --epsilon 1 --epochs {LARGE} --batch-size 10 --dataset-size 100",
        f"sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size {LARGE}",
        "sigma --epsilon 1e-308 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --epsilon 1e-6 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --epsilon 1e308 --epochs 10 --batch-size 10 --dataset-size 100",
    )},
}  # fmt: skip
MAY = {
    "privacy/sigma --epsilon 1 --epochs 1000000000 --batch-size 10 --dataset-size 100": asked(
        "sigma --epsilon 1 --epochs 1000000000 --batch-size 10 --dataset-size 100"
    ),
    "yaml/bom": lambda f: given.study(f, b"\xef\xbb\xbf" + TEXT.encode()),
    "data/csv_int_overflow": frame(a=[2**63 + i for i in range(300)]),
    "data/csv_20k_text_cols": lambda f: given.table(
        f, pd.concat([given.sound(60), pd.DataFrame("ab", range(60), [f"t{i}" for i in range(500)])], axis=1)
    ),
    "data/column_nel_char": lambda f: given.table(f, given.sound().rename(columns={"a": "a\x85b"})),
    "data/filename_newline": lambda f: (
        given.sound().to_csv(f / "d\n.csv", index=False), given.data(f, "d\n.csv", "--label=y"),
    )[-1],
    "plugin/dir_named_py": lambda f: ((f / "plugs" / "sub.py").mkdir(parents=True), given.plugin(f, SCORE % ("", "...")))[-1],
    "data/img_SIZE=1x1": lambda f: images(f, "--size=1x1"),
    "data/img_class_script": lambda f: images(f, classes=("<script>", "b")),
    "data/img_cmyk_ok": images,
    "data/img_dir_named_png": lambda f: ((f / "imgs" / "a" / "x.png").mkdir(parents=True), images(f))[-1],
    "data/img_nested_deep": lambda f: images(f, classes=("x/y/z/a", "x/y/z/b")),
    "data/img_symlink_dangling": lambda f: (images(f), (f / "imgs/a/l.png").symlink_to("no"), images(f))[-1],
    "data/img_symlink_file_out": lambda f: (images(f), (f / "imgs/a/l.png").symlink_to(f / "imgs/b/1.png"), images(f))[-1],
    "data/npz_uint64_label": lambda f: npz(f, x=np.random.rand(300, 4), y=np.array([2**63, 2**63 + 1] * 150, np.uint64)),
    "data/opt_SENSITIVE=,,": lambda f: given.table(f, given.sound(), "--sensitive=,,"),
    "data/tar_symlink_loop": images,
    **{f"study/figure_title={kind}": (lambda title: lambda f: given.study(f, {"figures": {"fig_loss": {"title": title}}}))(title)
       for kind, title in {"backslash": "\\", "emoji": "😀", "html": "<script>", "percent": "%s", "two_dollars": "$\\frac$",
                           "newline": "a\nb"}.items()},
}  # fmt: skip
