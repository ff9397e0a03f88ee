# ruff: noqa: E501, B023 (a table of inputs, each on its line)
"""Hostile inputs of kinds that nobody had listed: odd files, odd encodings, odd models, odd command lines.

``MUST`` end in a sentence; ``MAY`` be taken as well (a reading of them makes sense), but end no other way.
"""

import gzip
import io
import os
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import given
import numpy as np
import pandas as pd
from data_files import image_bytes, write_files, write_zip
from listed import BOUND, NET, SCORE, TEXT, images, npy, npz, raw_npz

from dp_leakage import audit_model, audit_training, share

Input = Callable[[Path], str | None]


# ---------------------------------------------------------------------- commands that `given` does not have
def inside(folder: Path, run: Callable[[], object]) -> str | None:
    """What a command complains of that runs in a folder."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        return given.said(run)
    finally:
        os.chdir(before)


def audited(folder: Path, *words: str) -> str | None:
    return inside(folder, lambda: audit_model.main(["mine", *words]))


def outputs(
    folder: Path, frame: pd.DataFrame | None = None, content: bytes | None = None, name: str = "o.csv"
) -> str | None:
    """`audit_model` of a table of outputs."""
    if content is None:
        frame.to_csv(folder / name, index=False)
    else:
        (folder / name).write_bytes(content)
    return audited(folder, f"--outputs={name}")


def said_of(n: int = 300, **columns: object) -> pd.DataFrame:
    """A table of outputs that is taken."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"record": range(n), "label": rng.integers(0, 2, n), "member": np.arange(n) % 2, "loss": rng.random(n)}
        | columns
    )


def with_outputs(**columns: object) -> Input:
    return lambda f: outputs(f, said_of(**columns))


def onnx(
    folder: Path, content: bytes | None = None, graph: Callable[[], bytes] | None = None, name: str = "m.onnx"
) -> str | None:
    """`audit_model` of an ONNX file and a table of two features."""
    (folder / name).write_bytes(graph() if graph else content)
    return modeled(folder, f"--model={name}")


def modeled(folder: Path, *words: str) -> str | None:
    given.sound().assign(m=np.arange(300) // 2 % 2).to_csv(folder / "d.csv", index=False)
    return audited(folder, *words, "--data=d.csv", "--label=y", "--members=m")


def made_graph(
    nodes: Callable[[object], list],
    inputs: tuple = (("x", 1, (None, 2)),),
    outputs: tuple = (("z", 1, (None, 2)),),
    initializers: tuple = (),
    opset: str = "",
) -> bytes:
    """An ONNX model of these nodes; ``inputs`` and ``outputs`` are names, types and shapes."""
    from onnx import helper

    infos = [[helper.make_tensor_value_info(*one) for one in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes(helper), "g", *infos, list(initializers))
    sets = [helper.make_opsetid("", 13), *([helper.make_opsetid(opset, 1)] if opset else [])]
    model = helper.make_model(graph, opset_imports=sets)
    model.ir_version = 7
    return model.SerializeToString()


def endless() -> bytes:
    """A loop of 2⁶² turns."""
    from onnx import TensorProto, helper

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["x1", "x1"], ["x2"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("x1", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("x2", TensorProto.FLOAT, [None, 2])],
    )  # fmt: skip
    starts = (
        helper.make_tensor("n", TensorProto.INT64, [], [2**62]),
        helper.make_tensor("c", TensorProto.BOOL, [], [True]),
    )
    return made_graph(lambda h: [h.make_node("Loop", ["n", "c", "x"], ["z"], body=body)], initializers=starts)


def outside_weights(place: str) -> bytes:
    """A model whose weights lie in another file."""
    from onnx import StringStringEntryProto, TensorProto

    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2], data_location=TensorProto.EXTERNAL)
    weight.external_data.append(StringStringEntryProto(key="location", value=place))
    return made_graph(lambda h: [h.make_node("MatMul", ["x", "w"], ["z"])], initializers=(weight,))


def swelling() -> bytes:
    """A few bytes that ask for an exabyte."""
    from onnx import TensorProto, helper

    shape = helper.make_tensor("s", TensorProto.INT64, [2], [2, 2**57])
    return made_graph(
        lambda h: [h.make_node("ConstantOfShape", ["s"], ["big"]), h.make_node("MatMul", ["x", "big"], ["z"])],
        initializers=(shape,),
    )


def weights(folder: Path, content: bytes, name: str = "w.safetensors", model: str = "brk2:Net") -> str | None:
    """`audit_model` of a module of the user's with these weights."""
    import importlib
    import sys

    (folder / "brk2.py").write_text(
        NET + "        self.out = torch.nn.Linear(2, 2)\n    def forward(self, x):\n        return self.out(x)\n"
    )
    (folder / name).write_bytes(content)
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        return modeled(folder, f"--model={model}", f"--weights={name}")
    finally:
        sys.path[:] = path
        sys.modules.pop("brk2", None)


def pickled() -> bytes:
    import pickle

    class Evil:
        def __reduce__(self):
            return os.system, ("touch ran",)

    return pickle.dumps(Evil())


def header(text: str, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(text) if length is None else length) + text.encode()


TRAIN = "import numpy as np\ndef train(x, y, seed):\n    return lambda r: %s\n"


def trained(
    folder: Path, *words: str, text: str = TRAIN % "np.tile([.5] * 10, (len(r), 1))", train: str = "brk3:train"
) -> str | None:
    """`audit_training` of a function of this text."""
    import importlib
    import sys

    (folder / "brk3.py").write_text(text)
    path = list(sys.path)
    importlib.invalidate_caches()
    try:
        return inside(
            folder,
            lambda: (
                audit_training.main([f"--train={train}", "--epsilon=1", "--models=20", "--records=50", *words]) or 0
            ),
        )
    finally:
        sys.path[:] = path
        sys.modules.pop("brk3", None)


def trained_on(**arrays: np.ndarray) -> Input:
    def run(folder: Path) -> str | None:
        np.savez(folder / "t.npz", **arrays)
        return trained(folder, "--data=t.npz")

    return run


def trained_file(content: bytes, name: str = "t.npz") -> Input:
    def run(folder: Path) -> str | None:
        (folder / name).write_bytes(content)
        return trained(folder, f"--data={name}")

    return run


def kept(folder: Path, name: str, data: bytes) -> str | None:
    """What an audit says whose verdict would go over a file of the user's, which it leaves as it is."""
    (folder / name).write_bytes(data)
    text = trained(folder, f"--verdict={name}")
    return text if (folder / name).read_bytes() == data else None


def shared(folder: Path, study: str, to: str) -> str | None:
    return inside(folder, lambda: share.main([study, "--to", to]))


def results(folder: Path) -> None:
    """What `share` takes for a finished study."""
    (folder / "results").mkdir()
    (folder / "results" / "report.html").write_text("x")
    (folder / "results" / "figures").mkdir()
    (folder / "results" / "figures" / "fig.csv").write_text("x\n1\n")


# ---------------------------------------------------------------------- odd files
def content(data: bytes, name: str = "d.csv", *arguments: str) -> Input:
    def run(folder: Path) -> str | None:
        (folder / name).write_bytes(data)
        return given.data(folder, name, *(arguments or ("--label=y",)))

    return run


def csv_text(**columns: object) -> str:
    return given.sound().assign(**columns).to_csv(index=False)


def folder_named(name: str, *arguments: str) -> Input:
    return lambda f: ((f / name).mkdir(), given.data(f, name, *arguments))[-1]


def looped(name: str) -> Input:
    return lambda f: ((f / name).symlink_to(name), given.data(f, name, "--label=y"))[-1]


def study_at(make: Callable[[Path], object]) -> Input:
    """`make` puts something at the path of a study file, which is then loaded."""

    def run(folder: Path) -> str | None:
        file = folder / "tiny.yaml"
        make(file)
        return given.said(lambda: given.planned(given.load_studies(given.CONFIG, [file])))

    return run


def parquet_of(make: Callable[[object, object], object], *arguments: str) -> Input:
    """`make(pyarrow, sound columns)` gives the table."""

    def run(folder: Path) -> str | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        frame = given.sound()
        pq.write_table(make(pa, {name: pa.array(frame[name]) for name in frame}), folder / "d.parquet")
        return given.data(folder, "d.parquet", "--label=y", *arguments)

    return run


def column(kind: Callable[[object], object]) -> Input:
    """A Parquet table with one more column, which `kind(pyarrow)` gives."""
    return parquet_of(lambda pa, columns: pa.table(columns | {"c": kind(pa)}))


def npy_header(text: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + version + size + text.encode("latin-1") + data


def lying_npz(text: str, **more: object) -> Input:
    return lambda f: raw_npz(f, {"x.npy": npy_header(text, **more), "y.npy": npy(np.arange(300) % 2)})


def zipped(
    folder: Path, members: dict[str, bytes], spoil: Callable[[bytes], bytes] = lambda data: data, name: str = "d.zip"
) -> str | None:
    write_zip(folder / name, members)
    (folder / name).write_bytes(spoil((folder / name).read_bytes()))
    return given.data(folder, name)


PICTURES = {f"{'ab'[i % 2]}/{i}.png": image_bytes(np.full((4, 4), i % 250, np.uint8)) for i in range(240)}


def tarred(folder: Path, add: Callable[[tarfile.TarFile], None], name: str = "d.tar") -> str | None:
    with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as archive:
        add(archive)
    return given.data(folder, name)


def huge_picture() -> bytes:
    """A PNG of 60,000 × 60,000 pixels in a few bytes."""
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def with_picture(name: str, picture: bytes, *arguments: str) -> Input:
    return lambda f: (write_files(f / "imgs", PICTURES | {name: picture}), given.data(f, "imgs", *arguments))[-1]


def plugin_file(data: bytes, name: str = "plug.py") -> Input:
    def run(folder: Path) -> str | None:
        (folder / "plugs").mkdir()
        (folder / "plugs" / name).write_bytes(data)
        return given.config(folder, {"plugins": [str(folder / "plugs")]})

    return run


def plugin_at(make: Callable[[Path], object]) -> Input:
    """`make` puts something at the path of a plugin."""
    return lambda f: (
        (f / "plugs").mkdir(),
        make(f / "plugs" / "plug.py"),
        given.config(f, {"plugins": [str(f / "plugs")]}),
    )[-1]


def beside_a_study(folder: Path, data: bytes) -> str | None:
    """A Python file of this content in the folder of a study."""
    (folder / "tiny").mkdir()
    (folder / "tiny" / "own_kind.py").write_bytes(data)
    (folder / "tiny" / "study.yaml").write_text(TEXT)
    files = [folder / "tiny" / "study.yaml"]
    return given.said(lambda: given.planned(given.load_studies(given.CONFIG, files)))


def dataset(**changes: object) -> Input:
    return lambda f: given.study(f, {"datasets": {"digits": changes}})


def configured(**changes: object) -> Input:
    return lambda f: given.config(f, changes)


SHOWN = SCORE % ("", "return 1")
GAUSSIAN = {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}
MUST: dict[str, Input] = {
    # ------------------------------------------------------------------ a study's or config's file
    "file/study folder": study_at(Path.mkdir),
    "file/study loop": study_at(lambda file: file.symlink_to(file.name)),
    "file/study dangling": study_at(lambda file: file.symlink_to("nowhere")),
    "file/study pipe": study_at(os.mkfifo),
    "file/study /dev/zero": study_at(lambda file: file.symlink_to("/dev/zero")),
    "file/study empty": lambda f: given.study(f, b""),
    "file/study bom alone": lambda f: given.study(f, b"\xef\xbb\xbf"),
    "file/study utf16": lambda f: given.study(f, TEXT.encode("utf-16")),
    "file/study utf32": lambda f: given.study(f, TEXT.encode("utf-32")),
    "file/study one line of 3 MB": lambda f: given.study(f, "title: " + "a" * 3_000_000),
    "file/study two documents": lambda f: given.study(f, TEXT + "---\n" + TEXT),
    "file/study merge of a number": lambda f: given.study(f, TEXT + "<<: 5\n"),
    "file/study merge of itself": lambda f: given.study(f, "&a\n" + TEXT + "<<: *a\n"),
    "file/study version": lambda f: given.study(f, "%YAML 9.9\n---\n" + TEXT),
    "file/study python tag": lambda f: given.study(f, "%TAG ! tag:yaml.org,2002:python/\n---\nstudy: !object/apply:os.system ['touch ran']\n"),
    "file/study undefined alias": lambda f: given.study(f, TEXT + "paper: *nothing\n"),
    "file/study key is a list": lambda f: given.study(f, TEXT + "? [a, b]\n: 1\n"),
    "file/study key in cyrillic": lambda f: given.study(f, TEXT.replace("epsilon:", "еpsilon:")),
    "file/study key with zero width": lambda f: given.study(f, TEXT.replace("epsilon:", "epsilon\u200b:")),
    "file/study bidirectional": lambda f: given.study(f, TEXT + "\u202eepsilon: [1]\n"),
    "file/config utf16": lambda f: given.config(f, given.yaml.safe_dump(given.CONFIG).encode("utf-16")),
    "file/config bom alone": lambda f: given.config(f, b"\xef\xbb\xbf"),
    "file/config one document more": lambda f: given.config(f, given.yaml.safe_dump(given.CONFIG) + "---\n"),
    # ------------------------------------------------------------------ config, at every level
    **{f"config/{key}={value!r}": (lambda key, value: lambda f: given.config(f, {key: value}))(key, value) for key, value in [
        *((key, value) for key in given.CONFIG for value in ({"a": 1}, [[1]], [None], 3.5)
          if not (key == "checkpoint_seconds" and value == 3.5)),
        ("scale", ""), ("scale", "smoke\u200b"), ("scale", ["smoke"]), ("data_dir", ""), ("device", "cuda:99"), ("device", "tpu"),
        ("checkpoint_seconds", 0), ("checkpoint_seconds", -5), ("checkpoint_seconds", True), ("preload", "yes"), ("preload", 1),
        ("plugins", "plugs"), ("plugins", [""]), ("plugins", ["/etc/passwd"]), ("plugins", ["no/such"]), ("plugins", ["~/no"]), ("plugins", ["a\nb"]),
        ("study_files", ["."]), ("study_files", ["/dev/null"]), ("study_files", ["a" * 5000]), ("study_files", ["no.yaml", "no.yaml"]),
        ("only_datasets", ["mnist\u200b"]), ("only_datasets", ["digits", "digits"]), ("only_datasets", [""]),
        ("overrides", {"tiny": []}), ("overrides", {"tiny": 5}), ("overrides", {"tinny": {}}), ("overrides", {"tiny": {"study": "x"}}),
        ("overrides", {"tiny": {"datasets": {"digits": None}}}), ("overrides", {"tiny": {"models": {"mlp": None}}}),
        ("overrides", {"tiny": {"defenses": []}}), ("overrides", {"tiny": {"epsilon": {}}}), ("overrides", {"tiny": {"repeats": 2.0}}),
        ("overrides", {"tiny": {"training": 5}}), ("overrides", {"tiny": {"training": {"epochs": "5"}}}), ("overrides", {"tiny": {"figures": []}}),
        ("overrides", {"tiny": {"figures": {"fig_loss": None}, "attacks": 5}}), ("overrides", {"tiny": {"seed": 2**63}}),
        ("overrides", {"tiny": {"seed": -1}}), ("overrides", {"tiny": {"delta": 0}}), ("overrides", {"tiny": {"delta": 1}}),
        ("overrides", {"tiny": {"epsilon": [1, 1.0]}}), ("overrides", {"tiny": {"epsilon": [1, 1.0000000001]}}),
    ]},
    # ------------------------------------------------------------------ studies: numbers and names
    "study/role of zero": dataset(roles={"target_members": 0}),
    "study/role below zero": dataset(roles={"target_members": -5}),
    "study/role of half": dataset(roles={"target_members": 1.5}),
    "study/role unicode": dataset(roles={"target_mémbers": 50}),
    "study/components none": dataset(projection={"components": 0}),
    "study/source zero width": dataset(source="digits\u200b"),
    "study/path is a folder of csv": lambda f: ((f / "d.csv").mkdir(), dataset(source={"path": str(f / "d.csv"), "label": "y"})(f))[-1],
    "study/path loop": lambda f: ((f / "d.csv").symlink_to("d.csv"), dataset(source={"path": str(f / "d.csv"), "label": "y"})(f))[-1],
    "study/path of nobody": dataset(source={"path": "~no_such_user/d.csv", "label": "y"}),
    "study/hidden none": lambda f: given.study(f, {"models": {"mlp": {"architecture": {"hidden": [0]}}}}),
    "study/hidden below zero": lambda f: given.study(f, {"models": {"mlp": {"architecture": {"hidden": [-8]}}}}),
    "study/hidden 20,000 layers": lambda f: given.study(f, {"models": {"mlp": {"architecture": {"hidden": [8] * 20_000}}}}),
    "study/learning rate infinite": lambda f: given.study(f, TEXT.replace("learning_rate: 0.01", "learning_rate: .inf")),
    "study/learning rate none": lambda f: given.study(f, {"training": {"learning_rate": 0}}),
    "study/epochs 1e18": lambda f: given.study(f, {"training": {"epochs": 10**18}}),
    "study/batch larger than data": lambda f: given.study(f, {"training": {"batch_size": 10**6}}),
    "study/repeats 1e9": lambda f: given.study(f, {"repeats": 10**9}),
    "study/figures alike but for case": lambda f: given.study(f, {"figures": {"Fig_loss": {"kind": "accuracy_loss"}}}),
    "study/figure named as study's report": lambda f: given.whole_study(f, figures={"report": {"kind": "accuracy_loss"}}),
    "study/defense twice": lambda f: given.whole_study(f, defenses=[{"defense": "none"}, {"defense": "none"}]),
    "study/defense unicode": lambda f: given.whole_study(f, defenses=[{"defense": "gaussían"}]),
    "study/defense number": lambda f: given.whole_study(f, defenses=[5]),
    "study/noise none": lambda f: given.whole_study(f, defenses=[GAUSSIAN | {"noise_multiplier": 0}]),
    "study/clip below zero": lambda f: given.whole_study(f, defenses=[GAUSSIAN | {"clip_norm": -1}]),
    "study/clip 1e-320": lambda f: given.whole_study(f, defenses=[GAUSSIAN | {"clip_norm": 1e-320}]),
    "study/epsilon 1e5 of them": lambda f: given.whole_study(f, epsilon=[1 + i / 7 for i in range(50_000)]),
    # ------------------------------------------------------------------ tables
    "csv/folder": folder_named("d.csv", "--label=y"),
    "csv/loop": looped("d.csv"),
    "csv/empty": content(b""),
    "csv/bom alone": content(b"\xef\xbb\xbf"),
    "csv/newlines alone": content(b"\n\n\n"),
    "csv/header alone": content(b"a,b,y\n"),
    "csv/utf16": content(csv_text().encode("utf-16")),
    "csv/utf32": content(csv_text().encode("utf-32")),
    "csv/latin1": content(csv_text(a="\xe9").encode("latin-1")),
    "csv/zeros alone": content(b"\0" * 5000),
    "csv/one line of 30 MB": content(b"1," * 15_000_000),
    "csv/one quote open": content(b'a,"b,y\n' + b"1,2,0\n" * 300),
    "csv/field of 2 MB": content(b"a," + b"b" * 2_000_000 + b",y\n" + b"1,2,0\n3,4,1\n" * 150),
    "csv/column twice": content(csv_text().replace("a,b,y", "a,a,y").encode()),
    "csv/columns alike in unicode": content(csv_text().replace("a,b,y", "e\u0301,\u00e9,y").encode()),
    "csv/semicolons": content(csv_text().replace(",", ";").encode()),
    "csv/a json": content(b'{"a": [1, 2], "y": [0, 1]}'),
    "csv/a parquet": content(b"PAR1" + b"\0" * 100 + b"PAR1"),
    "csv/a png": content(huge_picture()),
    "csv/gzip cut": content(gzip.compress(csv_text().encode())[:60], "d.csv.gz"),
    "csv/gzip that is none": content(csv_text().encode(), "d.csv.gz"),
    "csv/tsv by commas": content(csv_text().encode(), "d.tsv"),
    "csv/one class": content(csv_text(y=1).encode()),
    "csv/label for each record": content(csv_text(y=range(300)).encode()),
    "csv/label half a number": content(csv_text(y=[0.5, 1] * 150).encode()),
    "csv/label infinite": content(csv_text(y=["inf", "1"] * 150).encode()),
    "csv/all columns dropped": lambda f: given.table(f, given.sound(), "--drop=a,b"),
    "csv/label is sensitive": lambda f: given.table(f, given.sound(), "--sensitive=y"),
    "csv/label is key": lambda f: given.table(f, given.sound(), "--key=y"),
    "csv/size of a table": lambda f: given.table(f, given.sound(), "--size=8x8"),
    "csv/label with zero width": lambda f: given.table(f, given.sound().rename(columns={"y": "y\u200b"})),
    "csv/complex numbers": content(csv_text(a=["1+2j", "2"] * 150, b=[f"{i}+1j" for i in range(300)]).encode()),
    "csv/texts of 1 MB": content(csv_text(a=["x" * 100_000 + str(i) for i in range(300)]).encode()),
    "csv/two records": content(b"a,b,y\n1,2,0\n3,4,1\n"),
    "data/path with a null": lambda f: given.data(f, "d\0.csv", "--label=y"),
    "data/standard input": lambda f: given.data(f, "/dev/stdin", "--label=y"),
    "data/dev zero": lambda f: given.data(f, "/dev/zero", "--label=y"),
    "data/the working folder": lambda f: given.data(f, ".", "--label=y"),
    "data/address": lambda f: given.data(f, "https://example.org/d.csv", "--label=y"),
    "data/trailing slash": lambda f: (given.sound().to_csv(f / "d.csv"), given.data(f, "d.csv/", "--label=y"))[-1],
    "data/nobody's home": lambda f: given.data(f, "~no_such_user/d.csv", "--label=y"),
    "data/long name": lambda f: given.data(f, "a" * 5000 + ".csv", "--label=y"),
    "data/no suffix": content(csv_text().encode(), "data"),
    "data/folder option is a file": lambda f: ((f / "g").write_text("x"), given.table(f, given.sound(), "--folder=g"))[-1],
    "data/folder option loops": lambda f: ((f / "g").symlink_to("g"), given.table(f, given.sound(), "--folder=g"))[-1],
    "data/folder option in proc": lambda f: given.table(f, given.sound(), "--folder=/proc/1"),
    # ------------------------------------------------------------------ Parquet
    "parquet/struct": column(lambda pa: pa.array([{"a": 1, "b": "x"}] * 300)),
    "parquet/map": column(lambda pa: pa.array([[("a", 1)]] * 300, pa.map_(pa.string(), pa.int64()))),
    "parquet/list of struct": column(lambda pa: pa.array([[{"a": 1}]] * 300)),
    "parquet/binary": column(lambda pa: pa.array([b"\xff\x00"] * 300)),
    "parquet/interval": column(lambda pa: pa.array([1] * 300, pa.duration("s"))),
    "parquet/time": column(lambda pa: pa.array([1] * 300, pa.time32("s"))),
    "parquet/nothing": column(lambda pa: pa.nulls(300)),
    "parquet/date beyond": column(lambda pa: pa.array([2**62] * 300, pa.timestamp("us"))),
    "parquet/column twice": parquet_of(lambda pa, c: pa.Table.from_arrays([*c.values(), c["a"]], [*c, "a"])),
    "parquet/no rows": parquet_of(lambda pa, c: pa.table({name: values.slice(0, 0) for name, values in c.items()})),
    "parquet/no columns": parquet_of(lambda pa, c: pa.table({})),
    "parquet/label struct": parquet_of(lambda pa, c: pa.table(c | {"y": pa.array([{"a": i % 2} for i in range(300)])})),
    "parquet/folder": folder_named("d.parquet", "--label=y"),
    "parquet/empty": content(b"", "d.parquet"),
    "parquet/magic alone": content(b"PAR1PAR1", "d.parquet"),
    "parquet/length lies": content(b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "d.parquet"),
    # ------------------------------------------------------------------ arrays
    "npz/objects": lambda f: npz(f, x=np.array([[1, "a"]] * 300, object), y=np.arange(300) % 2),
    "npz/objects as labels": lambda f: npz(f, x=np.random.rand(300, 2), y=np.array([{}, 1] * 150, object)),
    "npz/structured": lambda f: npz(f, x=np.zeros(300, [("a", "f4"), ("b", "f4")]), y=np.arange(300) % 2),
    "npz/complex": lambda f: npz(f, x=np.zeros((300, 2), complex), y=np.arange(300) % 2),
    "npz/dates": lambda f: npz(f, x=np.zeros((300, 2), "M8[s]"), y=np.arange(300) % 2),
    "npz/labels dates": lambda f: npz(f, x=np.random.rand(300, 2), y=np.arange(300).astype("M8[s]")),
    "npz/labels bytes": lambda f: npz(f, x=np.random.rand(300, 2), y=np.array([b"a", b"b"] * 150)),
    "npz/labels one hot": lambda f: npz(f, x=np.random.rand(300, 2), y=np.eye(2)[np.arange(300) % 2]),
    "npz/float16 infinite": lambda f: npz(f, x=np.full((300, 2), np.inf, np.float16), y=np.arange(300) % 2),
    "npz/beyond float32": lambda f: npz(f, x=np.full((300, 2), 1e300), y=np.arange(300) % 2),
    "npz/not a number": lambda f: npz(f, x=np.full((300, 2), np.nan), y=np.arange(300) % 2),
    "npz/names alone": lambda f: npz(f, features=np.random.rand(300, 2), target=np.arange(300) % 2),
    "npz/empty archive": lambda f: raw_npz(f, {}),
    "npz/empty": content(b"", "d.npz"),
    "npz/an npy": content(npy(np.zeros((300, 2))), "d.npz"),
    "npz/folder": folder_named("d.npz"),
    "npz/loop": looped("d.npz"),
    "npz/x twice": lambda f: raw_npz(f, {"x.npy": npy(np.zeros((300, 2))), "x": npy(np.zeros((300, 3))), "y.npy": npy(np.arange(200) % 2)}),
    "npz/shape below zero": lying_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (-300, -2), }\n", data=b"\0" * 2400),
    "npz/shape of true": lying_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2), }\n", data=b"\0" * 8),
    "npz/shape endless": lying_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1000000000000000000000), }\n"),
    "npz/header is code": lying_npz("{'descr': __import__('os').system('touch ran'), 'fortran_order': False, 'shape': (1, 2), }\n"),
    "npz/header deep": lying_npz("(" * 60_000, version=b"\x02\x00"),
    "npz/header of 10 MB": lying_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }" + " " * 10_000_000, version=b"\x02\x00"),
    "npz/version 9": lying_npz("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n", version=b"\x09\x00"),
    "npz/dtype of 2 GB": lying_npz("{'descr': '|V2000000000', 'fortran_order': False, 'shape': (1, 2), }\n"),
    # ------------------------------------------------------------------ images
    "images/bomb": with_picture("a/x.png", huge_picture()),
    "images/empty file": with_picture("a/x.png", b""),
    "images/text": with_picture("a/x.jpg", b"hello"),
    "images/16 bits": with_picture("a/x.png", image_bytes(np.zeros((4, 4), np.uint16))),
    "images/other size": with_picture("a/x.png", image_bytes(np.zeros((5, 4), np.uint8))),
    "images/one class": lambda f: images(f, classes=("a",)),
    "images/in no folder": lambda f: (write_files(f / "imgs", {"x.png": PICTURES["a/0.png"]}), given.data(f, "imgs"))[-1],
    "images/an empty folder": folder_named("imgs"),
    "images/an svg": lambda f: (write_files(f / "imgs", {"a/x.svg": b"<svg/>", "b/y.svg": b"<svg/>"}), given.data(f, "imgs"))[-1],
    "zip/empty": content(b"", "d.zip"),
    "zip/end alone": content(b"PK\x05\x06" + b"\0" * 18, "d.zip"),
    "zip/cut": lambda f: zipped(f, PICTURES, lambda data: data[: len(data) // 2]),
    "zip/leads out": lambda f: zipped(f, PICTURES | {"../../x.png": b"x"}),
    "zip/leads out by backslash": lambda f: zipped(f, PICTURES | {"..\\x.png": b"x"}),
    "zip/absolute": lambda f: zipped(f, PICTURES | {"/etc/x.png": b"x"}),
    "zip/checksum": lambda f: zipped(f, PICTURES, lambda data: data[:45] + bytes([data[45] ^ 255]) + data[46:]),
    "zip/of texts": lambda f: zipped(f, {"a/x.txt": b"x", "b/y.txt": b"y"}),
    "tar/empty": content(b"", "d.tar"),
    "tar/zeros": content(b"\0" * 10_240, "d.tar"),
    "tar/gzip cut": content(gzip.compress(b"x" * 10_000)[:40], "d.tgz"),
    "tar/device": lambda f: tarred(f, lambda t: t.addfile(_entry("a/x.png", type=tarfile.CHRTYPE))),
    "tar/link out": lambda f: tarred(f, lambda t: t.addfile(_entry("a/x.png", type=tarfile.SYMTYPE, linkname="/etc/passwd"))),
    "tar/size lies": lambda f: ((f / "d.tar").write_bytes(_entry("a/x.png", size=2**40).tobuf() + b"\0" * 1024), given.data(f, "d.tar"))[-1],
    "tar/size below zero": lambda f: ((f / "d.tar").write_bytes(_below_zero()), given.data(f, "d.tar"))[-1],
    # ------------------------------------------------------------------ plugins
    "plugin/utf16": plugin_file(SHOWN.encode("utf-16")),
    "plugin/nul": plugin_file(SHOWN.encode() + b"\0"),
    "plugin/latin1": plugin_file(b"# caf\xe9\n" + SHOWN.encode()),
    "plugin/unknown coding": plugin_file(b"# -*- coding: klingon -*-\n" + SHOWN.encode()),
    "plugin/name upper": plugin_file(SHOWN.encode(), "Plug.py"),
    "plugin/name unicode": plugin_file(SHOWN.encode(), "plúg.py"),
    "plugin/name blanks": plugin_file(SHOWN.encode(), "my plug.py"),
    "plugin/name of a module": plugin_file(SHOWN.encode(), "json.py"),
    "plugin/name of an attack": plugin_file(SHOWN.encode(), "yeom.py"),
    "plugin/annotated": plugin_file(SHOWN.replace("ATTACK =", "ATTACK: dict =").replace("'membership'", "5").encode()),
    **{f"plugin/of a study, {name}": (lambda data: lambda f: beside_a_study(f, data))(data) for name, data in {
        "open": b"FIGURE = {'caption': 'x'\n", "a name": b"FIGURE = {'caption': CAPTION}\n", "utf16": SHOWN.encode("utf-16"), "a call": b"FIGURE = {'caption': open('ran', 'w')}\n",
    }.items()},
    "plugin/two words": plugin_file((SHOWN + "FIGURE = {'caption': 'x'}\n").encode()),
    "plugin/score is a class": plugin_file(b"ATTACK = {'family': 'membership'}\nclass score: ...\n"),
    "plugin/score is async": plugin_file(b"ATTACK = {'family': 'membership'}\nasync def score(a, b, c, d): ...\n"),
    "plugin/a billion": plugin_file(b"ATTACK = {'family': 'membership', 'settings': {'a': 10**10**10}}\n"),
    "plugin/digits of 10,000": plugin_file(f"ATTACK = {{'family': 'membership', 'settings': {{'a': {'9' * 10_000}}}}}\ndef score(a, b, c, d): ...\n".encode()),
    "plugin/deep": plugin_file(b"ATTACK = " + b"[" * 5000 + b"]" * 5000 + b"\n"),
    "plugin/recursion": lambda f: given.plugin(f, SCORE % ("", "return score(target, reference, settings, seed)"), use=given.scored),
    "plugin/group of exceptions": lambda f: given.plugin(f, SCORE % ("", "raise ExceptionGroup('a', [ValueError(1)])"), use=given.scored),
    "plugin/error that cannot be shown": lambda f: given.plugin(
        f, "class E(Exception):\n    def __str__(self):\n        raise ValueError('x')\n" + SCORE % ("", "raise E"), use=given.scored
    ),
    "plugin/stop iteration": lambda f: given.plugin(f, SCORE % ("", "raise StopIteration"), use=given.scored),
    "plugin/generator": lambda f: given.plugin(f, SCORE % ("", "yield 1"), use=given.scored),
    "plugin/bound nan": lambda f: given.plugin(f, BOUND % "return norms * float('nan')", use=given.bounded),
    "plugin/bound complex": lambda f: given.plugin(f, BOUND % "return norms * 1j", use=given.bounded),
    "plugin/bound other shape": lambda f: given.plugin(f, BOUND % "return norms[:1]", use=given.bounded),
    "plugin/bound sparse": lambda f: given.plugin(f, BOUND % "return norms.to_sparse()", use=given.bounded),
    # ------------------------------------------------------------------ outputs of models
    "outputs/folder": lambda f: ((f / "o.csv").mkdir(), audited(f, "--outputs=o.csv"))[-1],
    "outputs/loop": lambda f: ((f / "o.csv").symlink_to("o.csv"), audited(f, "--outputs=o.csv"))[-1],
    "outputs/pipe": lambda f: (os.mkfifo(f / "o.csv"), audited(f, "--outputs=o.csv"))[-1],
    "outputs/null in the name": lambda f: audited(f, "--outputs=o\0.csv"),
    "outputs/long name": lambda f: audited(f, "--outputs=" + "a" * 5000 + ".csv"),
    "outputs/empty": lambda f: outputs(f, content=b""),
    "outputs/bom alone": lambda f: outputs(f, content=b"\xef\xbb\xbf"),
    "outputs/utf16": lambda f: outputs(f, content=said_of().to_csv(index=False).encode("utf-16")),
    "outputs/another suffix": lambda f: outputs(f, content=b"x", name="o.txt"),
    "outputs/not a number": with_outputs(loss=np.nan),
    "outputs/texts": with_outputs(loss="low"),
    "outputs/below zero": with_outputs(loss=-1.0),
    "outputs/infinite": with_outputs(loss=np.inf),
    "outputs/all members": with_outputs(member=1),
    "outputs/perhaps a member": with_outputs(member="maybe"),
    "outputs/one class": with_outputs(label=1),
    "outputs/record twice": with_outputs(record=[0, 0, *range(298)]),
    "outputs/loss and margin": with_outputs(margin=0.0),
    "outputs/probability of one class": lambda f: outputs(f, said_of().drop(columns="loss").assign(probability_0=1.0)),
    "outputs/sums of two": lambda f: outputs(f, said_of().drop(columns="loss").assign(probability_0=1.0, probability_1=1.0)),
    "outputs/class without a column": lambda f: outputs(f, said_of(label=[5, 1] * 150).drop(columns="loss").assign(probability_0=0.5, probability_1=0.5)),
    "outputs/a model for each line": with_outputs(model=range(300), record=range(300)),
    "outputs/all different": lambda f: outputs(f, said_of(4000, model=range(4000), query=range(4000))),
    "outputs/ten members": lambda f: outputs(f, said_of(20)),
    "outputs/npz of objects": lambda f: (np.savez(f / "o.npz", label=np.array([{}] * 300, object), loss=np.zeros(300)), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz of one number": lambda f: (np.savez(f / "o.npz", label=np.array(1), loss=np.array(1.0)), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz member of one number": lambda f: (
        np.savez(f / "o.npz", label=np.arange(300) % 2, loss=np.zeros(300), member=np.array(1)), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz of texts": lambda f: (
        np.savez(f / "o.npz", label=np.arange(300) % 2, loss=np.array(["a"] * 300), member=np.arange(300) % 2), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz complex": lambda f: (
        np.savez(f / "o.npz", label=np.arange(300) % 2, loss=np.zeros(300, complex), member=np.arange(300) % 2), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz of nothing": lambda f: (
        np.savez(f / "o.npz", label=np.arange(0), loss=np.zeros(0), member=np.arange(0)), audited(f, "--outputs=o.npz"))[-1],
    "outputs/npz five axes": lambda f: (
        np.savez(f / "o.npz", label=np.arange(300) % 2, loss=np.zeros((1, 1, 1, 1, 300)), member=np.arange(300) % 2), audited(f, "--outputs=o.npz"))[-1],
    "outputs/references are none": lambda f: (said_of().to_csv(f / "o.csv"), audited(f, "--outputs=o.csv", "--references=r.csv"))[-1],
    "outputs/references of others": lambda f: (
        said_of().to_csv(f / "o.csv", index=False), said_of(record=range(300, 600)).to_csv(f / "r.csv", index=False),
        audited(f, "--outputs=o.csv", "--references=r.csv"))[-1],
    "outputs/shadows are the target": lambda f: (said_of().to_csv(f / "o.csv", index=False), audited(f, "--outputs=o.csv", "--shadows=o.csv"))[-1],
    "outputs/nothing given": lambda f: audited(f),
    "outputs/and a model": lambda f: (said_of().to_csv(f / "o.csv", index=False), audited(f, "--outputs=o.csv", "--model=m.onnx"))[-1],
    # ------------------------------------------------------------------ models
    "onnx/empty": lambda f: onnx(f, b""),
    "onnx/noise": lambda f: onnx(f, bytes(range(256)) * 40),
    "onnx/folder": lambda f: ((f / "m.onnx").mkdir(), modeled(f, "--model=m.onnx"))[-1],
    "onnx/loop of links": lambda f: ((f / "m.onnx").symlink_to("m.onnx"), modeled(f, "--model=m.onnx"))[-1],
    "onnx/pipe": lambda f: (os.mkfifo(f / "m.onnx"), modeled(f, "--model=m.onnx"))[-1],
    "onnx/own operator": lambda f: onnx(f, graph=lambda: made_graph(lambda h: [h.make_node("Evil", ["x"], ["z"], domain="evil")], opset="evil")),
    "onnx/unknown operator": lambda f: onnx(f, graph=lambda: made_graph(lambda h: [h.make_node("NoSuch", ["x"], ["z"])])),
    "onnx/weights elsewhere": lambda f: onnx(f, graph=lambda: outside_weights("no_such.bin")),
    "onnx/weights lead out": lambda f: onnx(f, graph=lambda: outside_weights("../../../../../../etc/passwd")),
    "onnx/weights absolute": lambda f: onnx(f, graph=lambda: outside_weights("/etc/passwd")),
    "onnx/an exabyte": lambda f: onnx(f, graph=swelling),
    "onnx/endless": lambda f: onnx(f, graph=endless),
    "onnx/two inputs": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Add", ["x", "w"], ["z"])], inputs=(("x", 1, (None, 2)), ("w", 1, (None, 2))))),
    "onnx/texts as input": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Identity", ["x"], ["z"])], inputs=(("x", 8, (None, 2)),), outputs=(("z", 8, (None, 2)),))),
    "onnx/whole numbers out": lambda f: onnx(f, graph=lambda: made_graph(lambda h: [h.make_node("Cast", ["x"], ["z"], to=7)], outputs=(("z", 7, (None, 2)),))),
    "onnx/one number out": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("ReduceSum", ["x"], ["z"], keepdims=0)], outputs=(("z", 1, ()),))),
    "onnx/a row for all": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("ReduceMean", ["x"], ["z"], axes=[0], keepdims=1)], outputs=(("z", 1, (1, 2)),))),
    "onnx/batch of none": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Identity", ["x"], ["z"])], inputs=(("x", 1, (0, 2)),), outputs=(("z", 1, (0, 2)),))),
    "onnx/not a number out": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Sub", ["x", "x"], ["o"]), h.make_node("Div", ["o", "o"], ["z"])])),
    "onnx/three axes in": lambda f: onnx(f, graph=lambda: made_graph(
        lambda h: [h.make_node("Identity", ["x"], ["z"])], inputs=(("x", 1, (None, 2, 2)),), outputs=(("z", 1, (None, 2, 2)),))),
    "onnx/no node": lambda f: onnx(f, graph=lambda: made_graph(lambda h: [], outputs=())),
    "weights/empty": lambda f: weights(f, b""),
    "weights/header lies": lambda f: weights(f, header("{}", 2**60)),
    "weights/header no json": lambda f: weights(f, header("hello")),
    "weights/header deep": lambda f: weights(f, header("[" * 100_000)),
    "weights/offsets beyond": lambda f: weights(f, header('{"out.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 1600000]}}')),
    "weights/shape lies": lambda f: weights(f, header('{"out.weight": {"dtype": "F32", "shape": [9999999999, 9999999999], "data_offsets": [0, 16]}}') + b"\0" * 16),
    "weights/another shape": lambda f: weights(f, header('{"out.weight": {"dtype": "F32", "shape": [1, 4], "data_offsets": [0, 16]}}') + b"\0" * 16),
    "weights/pickle": lambda f: weights(f, pickled(), "w.pt"),
    "weights/zip of nothing": lambda f: weights(f, b"PK\x05\x06" + b"\0" * 18, "w.pt"),
    "weights/number": lambda f: weights(f, _saved(5), "w.pt"),
    "weights/list": lambda f: weights(f, _saved([1]), "w.pt"),
    "weights/keys of numbers": lambda f: weights(f, _saved({1: 2}), "w.pt"),
    "weights/of system": lambda f: weights(f, b"", model="os:system"),
    "weights/two colons": lambda f: weights(f, b"", model="brk2:Net:x"),
    "weights/of a layer": lambda f: weights(f, b"", model="torch.nn:Linear"),
    "weights/of nothing": lambda f: weights(f, b"", model=":"),
    "model/references unknown": lambda f: (onnx(f, graph=_identity), modeled(f, "--model=m.onnx", "--reference-model=resnet9000"))[-1],
    "model/references of system": lambda f: (onnx(f, graph=_identity), modeled(f, "--model=m.onnx", "--reference-model=os:system"))[-1],
    "members/unknown column": lambda f: (onnx(f, graph=_identity), audited(f, "--model=m.onnx", "--data=d.csv", "--label=y", "--members=who"))[-1],
    **{f"members/{name}": (lambda data, end: lambda f: (onnx(f, graph=_identity), (f / f"l{end}").write_bytes(data), audited(
        f, "--model=m.onnx", "--data=d.csv", "--label=y", f"--members=l{end}"))[-1])(data, end) for name, data, end in [
        ("empty", b"", ".txt"), ("bom alone", b"\xef\xbb\xbf", ".txt"), ("utf16", "1\n2\n".encode("utf-16"), ".txt"), ("texts", b"a\nb\n", ".txt"),
        ("below zero", b"-1\n-2\n", ".txt"), ("twice", b"1\n1\n", ".txt"), ("beyond", b"99999999999999999999\n", ".txt"), ("nul", b"\0\0\0", ".txt"),
        ("one line of 5 MB", b"1" * 5_000_000, ".txt"), ("npy of objects", npy(np.array([1, 2])).replace(b"<i8", b"|O8"), ".npy"),
        ("npy empty", b"", ".npy"), ("npy lies", npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999,), }\n"), ".npy"),
        ("npy of floats", npy(np.array([0.5, 1.5])), ".npy"), ("npy of axes", npy(np.zeros((3, 3), np.int64)), ".npy"),
    ]},
    # ------------------------------------------------------------------ a training function
    **{f"training/{' '.join(words)}": (lambda words: lambda f: trained(f, *words))(words) for words in [
        ("--epsilon=nan",), ("--epsilon=inf",), ("--epsilon=-1",), ("--epsilon=0",), ("--epsilon=x",), ("--delta=0",), ("--delta=1",), ("--delta=2",), ("--delta=nan",),
        ("--models=0",), ("--models=-1",), ("--models=1",), ("--models=1000000000000",), ("--canaries=0",), ("--canaries=-1",), ("--canaries=51",),
        ("--canaries=1000000000000",), ("--records=0",), ("--records=-3",), ("--records=1",), ("--records=100000",), ("--seed=-1",), ("--seed=1.5",),
        ("--seed=" + "9" * 5000,), ("--canary=yellow",), ("--claim=none",), ("--data=no.npz",), ("--data=.",), ("--data=/dev/zero",), ("--data=a\0b.npz",), ("--surprise=1",),
    ]},
    **{f"training/TRAIN={train}": (lambda train: lambda f: trained(f, train=train))(train) for train in
       ("", ":", "brk3", "brk3:", ":train", "brk3:nothing", "no_such_module:train", "brk3:train:train", "..brk3:train", "os:environ", "brk3:np", "bad name:x", "é:é")},
    **{f"training/returns {value[:30]}": (lambda value: lambda f: trained(f, text=TRAIN % value))(value) for value in (
        "None", "'a'", "np.zeros((len(r), 10)) * np.nan", "np.zeros(3)", "[['a'] * 10] * len(r)", "1/0", "exit()", "np.zeros((len(r), 10), complex) + 1j", "r.nothing",
        "np.zeros((len(r), 10), object)", "{}", "np.zeros((len(r), 1))")},
    "training/syntax": lambda f: trained(f, text="def (:\n"),
    "training/leaves": lambda f: trained(f, text="import sys\nsys.exit(0)\n"),
    "training/utf16": lambda f: ((f / "u16.py").write_bytes((TRAIN % "1").encode("utf-16")), trained(f, train="u16:train"))[-1],
    "training/takes nothing": lambda f: trained(f, text="def train():\n    return None\n"),
    "training/data empty": trained_file(b""),
    "training/data cut": trained_file(b"PK\x03\x04" + b"\0" * 40),
    "training/data one array": trained_file(npy(np.zeros((100, 2)))),
    "training/data a csv": trained_file(csv_text().encode(), "t.csv"),
    "training/data of objects": trained_on(x=np.array([[1, "a"]] * 100, object), y=np.arange(100) % 2),
    "training/data of texts": trained_on(x=np.full((100, 2), "a"), y=np.arange(100) % 2),
    "training/labels of texts": trained_on(x=np.random.rand(100, 2), y=np.array(["a", "b"] * 50)),
    "training/labels not numbers": trained_on(x=np.random.rand(100, 2), y=np.full(100, np.nan)),
    "training/labels below zero": trained_on(x=np.random.rand(100, 2), y=-np.arange(100)),
    "training/labels huge": trained_on(x=np.random.rand(100, 2), y=np.arange(100) * 10**15),
    "training/data complex": trained_on(x=np.zeros((100, 2), complex), y=np.arange(100) % 2),
    "training/data of one number": trained_on(x=np.array(1.0), y=np.array(1)),
    "training/data no records": trained_on(x=np.zeros((0, 2)), y=np.zeros(0)),
    "training/one class": trained_on(x=np.random.rand(100, 2), y=np.zeros(100)),
    "training/data without features": trained_on(x=np.zeros((100, 0)), y=np.arange(100) % 2),
    **{f"training/verdict over {name}": (lambda name, data: lambda f: kept(f, name, data))(name, data) for name, data in {
        "a program": b"def train(x, y, seed):\n", "an empty file": b"", "data": b"\x93NUMPY\0", "more than a verdict": b"error\nof mine\n"}.items()},
    "training/verdict is a folder": lambda f: ((f / "v").mkdir(), trained(f, "--verdict=v"))[-1],
    "training/verdict below a file": lambda f: ((f / "v").write_text("x"), trained(f, "--verdict=v/w"))[-1],
    # ------------------------------------------------------------------ variables of make
    **{f"make/{target} {' '.join(f'{name}={value}' for name, value in words.items())}": (
        lambda target, words: lambda f: given.made(f, target, **words))(target, words) for target, words in (
        ("share", {"STUDY": "results", "TO": "shared", "UNDEFENDED": "no"}),
        ("share", {"STUDY": "results", "TO": "shared", "UNDEFENDED": "Yes"}),
        ("audit-training", {"TRAIN": "a:b", "EPSILON": "1", "BEYOND_REACH": "no"}),
        ("audit-training", {"TRAIN": "a:b", "EPSLION": "1"}),
        ("new-study", {"NAME": "a", "DATA": "d.csv", "PERSN": "patient"}),
        ("new-study", {"NAME": "a", "DATA": "d.csv", "name": "b"}),
        ("new-study", {"NAME": "a", "DATA": "d.csv", "GIVEN": "DATA"}),
        ("new-study", {"NAME": "a", "DATA": "d.csv", "SEED": "$(shell touch ran)5"}),
        ("audit-model", {"NAME": "a", "OUTPUTS": "d.csv", "REFRENCES": "b"}),
        ("release", {"STUDY": "quickstart", "MODEL": "20"}),
        ("release", {"STUDY": "quickstart", "KEEP": "1"}),
    )},
    # ------------------------------------------------------------------ results to share
    "share/nothing there": lambda f: shared(f, "./results", "shared"),
    "share/results is a file": lambda f: ((f / "results").write_text("x"), shared(f, "./results", "shared"))[-1],
    "share/to a file": lambda f: (results(f), (f / "shared").write_text("x"), shared(f, "./results", "shared"))[-1],
    "share/below a file": lambda f: (results(f), (f / "g").write_text("x"), shared(f, "./results", "g/shared"))[-1],
    "share/to a loop": lambda f: (results(f), (f / "shared").symlink_to("shared"), shared(f, "./results", "shared"))[-1],
    "share/into itself": lambda f: (results(f), shared(f, "./results", "results"))[-1],
    "share/below itself": lambda f: (results(f), shared(f, "./results", "results/shared"))[-1],
    "share/null": lambda f: (results(f), shared(f, "./results", "a\0b"))[-1],
    "share/a model that is none": lambda f: (results(f), (f / "results" / "target.safetensors").write_bytes(b"x"), shared(f, "./results", "shared"))[-1],
    "share/metrics that are none": lambda f: (results(f), (f / "results" / "metrics.parquet").write_bytes(b""), shared(f, "./results", "shared"))[-1],
    # ------------------------------------------------------------------ the privacy command
    **{f"privacy/{words}": (lambda words: lambda f: given.asked(words))(words) for words in (
        "nonsense", "sigma", "sigma --epsilon", "sigma --epsilon 1 --epsilon", "--version", "sigma --epsilon 1 --epochs 1 --batch-size 1 --dataset-size 1 extra",
        "sigma --epsilon ١ --epochs 10 --batch-size 10 --dataset-size 100 --delta ٢",
        "sigma --epsilon 1 --epochs 10 --batch-size 1000 --dataset-size 100",
        "sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --delta 0",
        "sigma --epsilon 1 --epochs 10 --batch-size 10 --dataset-size 100 --delta 1",
        "sigma --epsilon 1 --epochs 1e3 --batch-size 10 --dataset-size 100",
        "sigma --advantage 0 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --advantage 1 --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 10 --grid 5 --seed x --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --tpr 0.05 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --tpr 0.001 --fpr 0.05 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --precision 0.1 --prior 0.5 --epochs 10 --batch-size 10 --dataset-size 100",
        "sigma --epsilon 1 --fpr 0.1 --prior 0.5 --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --noise-multiplier 0 --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --noise-multiplier 1e-9 --epochs 10 --batch-size 10 --dataset-size 100",
        "epsilon --kappa 1 --epochs 10 --batch-size 10 --dataset-size 100",
        "risk --kappa 1 --blocks 0x10 --epochs 10 --batch-size 10 --dataset-size 100",
        "risk --noise-multiplier 1 --sampler cyclic --neighbors sideways --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 0 --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 10 --grid 0 --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 10 --grid -5 --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 10 --grid 5 --seed -1 --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 1e9 --grid 5 --seed 1 --epochs 10 --batch-size 10 --dataset-size 100",
        f"select --noise-multiplier 1 --mean 10 --grid {'9' * 5000} --epochs 10 --batch-size 10 --dataset-size 100",
        "select --noise-multiplier 1 --mean 10 --grid 99999999999999999999 --epochs 10 --batch-size 10 --dataset-size 100",
    )},
}  # fmt: skip
MAY: dict[str, Input] = {
    "csv/numbers in arabic": content(csv_text(a=[f"٣{i}" for i in range(300)]).encode()),
    "share/figure that is none": lambda f: (
        results(f), (f / "results" / "figures" / "a.png").write_bytes(b"csv=" + b"0" * 64), shared(f, "./results", "shared"))[-1],
    "csv/nul bytes": content(csv_text(a="x\0y").encode()),
    "study/components more than features": dataset(projection={"components": 65}),
    "file/study crlf": lambda f: given.study(f, TEXT.replace("\n", "\r\n")),
    "file/study cr": lambda f: given.study(f, TEXT.replace("\n", "\r")),
    "file/study nel": lambda f: given.study(f, TEXT.replace("\n", "\x85")),
    "file/study bidirectional title": lambda f: given.study(f, {"title": "a\u202eb"}),
    "csv/crlf": content(csv_text().replace("\n", "\r\n").encode()),
    "csv/cr": content(csv_text().replace("\n", "\r").encode()),
    "csv/bom": content(b"\xef\xbb\xbf" + csv_text().encode()),
    "csv/100,000 columns": lambda f: given.table(f, text=",".join(["y", *(f"c{i}" for i in range(100_000))]) + "\n" + "".join(
        f"{i % 2}," + ",".join(["1"] * 100_000) + "\n" for i in range(4))),
    "csv/hexadecimal": content(csv_text(a=[hex(i) for i in range(90)] * 3 + ["0x1"] * 30).encode()),
    "csv/booleans": content(csv_text(a=["TRUE", "FALSE"] * 150).encode()),
    "csv/gzip": content(gzip.compress(csv_text().encode()), "d.csv.gz"),
    "parquet/decimal": column(lambda pa: pa.array(range(300)).cast(pa.decimal128(38, 2))),
    "parquet/dictionary": column(lambda pa: pa.array(["a", "b", None] * 100).dictionary_encode()),
    "parquet/half floats": column(lambda pa: pa.array(np.ones(300, np.float16))),
    "parquet/nullable booleans": parquet_of(lambda pa, c: pa.table(c | {"c": pa.array([True, None, False] * 100)}), "--missing=impute"),
    "parquet/unsigned": column(lambda pa: pa.array([2**64 - 1] * 300, pa.uint64())),
    "npz/big endian": lambda f: npz(f, x=np.random.rand(300, 2).astype(">f8"), y=(np.arange(300) % 2).astype(">i4")),
    "npz/fortran": lambda f: npz(f, x=np.asfortranarray(np.random.rand(300, 2)), y=np.arange(300) % 2),
    "npz/long doubles": lambda f: npz(f, x=np.random.rand(300, 2).astype(np.longdouble), y=np.arange(300) % 2),
    "npz/labels below zero": lambda f: npz(f, x=np.random.rand(300, 2), y=np.where(np.arange(300) % 2, -1, 1)),
    "images/moving": lambda f: (write_files(f / "imgs", PICTURES | {"a/x.gif": _moving()}), given.data(f, "imgs", "--size=4x4"))[-1],
    "images/class names alike in unicode": lambda f: images(f, classes=("e\u0301", "\u00e9")),
    "images/loop of folders": lambda f: (write_files(f / "imgs", PICTURES), (f / "imgs" / "a" / "up").symlink_to(".."), given.data(f, "imgs"))[-1],
    "zip/that is a tar": lambda f: ((f / "d.tar").write_bytes(b""), tarred(f, _pictures, "e.tar"), (f / "e.tar").rename(f / "d.zip"), given.data(f, "d.zip"))[-1],
    "tar/that is a zip": lambda f: (zipped(f, PICTURES), (f / "d.zip").rename(f / "e.tar"), given.data(f, "e.tar"))[-1],
    "plugin/empty": plugin_file(b""),
    "plugin/bom": plugin_file(b"\xef\xbb\xbf" + SHOWN.encode()),
    "plugin/crlf": plugin_file(SHOWN.replace("\n", "\r\n").encode()),
    "plugin/loop": plugin_at(lambda file: file.symlink_to("plug.py")),
    "plugin/dangling": plugin_at(lambda file: file.symlink_to("nowhere")),
    "plugin/pipe": plugin_at(os.mkfifo),
    "plugin/star arguments": plugin_file(b"ATTACK = {'family': 'membership'}\ndef score(*a, **k): ...\n"),
    "outputs/crlf": lambda f: outputs(f, content=said_of().to_csv(index=False).replace("\n", "\r\n").encode()),
    "outputs/labels in arabic": with_outputs(label=["٣", "٤"] * 150),
    "onnx/probabilities": lambda f: onnx(f, graph=lambda: made_graph(lambda h: [h.make_node("Softmax", ["x"], ["z"])])),
    "training/takes all": lambda f: trained(f, "--beyond-reach"),
    "config/data_dir is a file": lambda f: ((f / "g").write_text("x"), given.config(f, {"data_dir": str(f / "g")}))[-1],
    "config/plugins the root": configured(plugins=["/"]),
    "config/checkpoint_seconds=1e18": configured(checkpoint_seconds=10**18),
}  # fmt: skip


def _entry(name: str, **fields: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(entry, key, value)
    return entry


def _below_zero() -> bytes:
    """A header whose size is −512 in GNU's base 256, as Python would not write it: the next header is this one."""
    block = bytearray(_entry("a/x.png").tobuf())
    block[124:136] = b"\xff" * 10 + b"\xfe\x00"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + b"\0" * 1024


def _saved(value: object) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _identity() -> bytes:
    return made_graph(lambda h: [h.make_node("Identity", ["x"], ["z"])])


def _moving() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 100, 200)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def _pictures(archive: tarfile.TarFile) -> None:
    for name, picture in PICTURES.items():
        archive.addfile(_entry(name, size=len(picture)), io.BytesIO(picture))
