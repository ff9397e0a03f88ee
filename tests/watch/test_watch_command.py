"""`dp-leakage watch`: exit statuses, the page, the JSON, and what a script notices of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import dataloader
from watched import MADE, SCRIPTS, edited, same_bytes, unwatched

import dp_leakage.opacus
from dp_leakage.commands import main
from dp_leakage.options.watch import parser

IMAGE = str(SCRIPTS / "image.py")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_correct_script_ends_with_0_a_page_and_json(folder, capsys):
    assert main(["watch", "--to", "out", IMAGE, "--epochs", "1"]) == 0
    said = capsys.readouterr()
    assert "Train Epoch: 1" in said.out
    assert "watch: verdict: holds" in said.err
    told = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "holds"
    assert told["command"] == "image.py --epochs 1"
    (budget,) = told["budgets"]
    assert budget["epsilon"]["add_remove"] == pytest.approx(1.835, abs=0.01)  # dp-accounting's, for 23 steps
    assert budget["accounted"] >= budget["epsilon"]["add_remove"]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "Nothing that was seen contradicts the ε of this training." in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<h2>") == page.count("</h2>") >= 4


def test_a_refuted_script_ends_with_3_and_its_page_says_why(folder, capsys):
    silent = "optimizer.add_noise = lambda: [setattr(p, 'grad', p.summed_grad.clone()) for p in optimizer.params]"
    path = edited(folder, "image", [(MADE, f"    {silent}\n{MADE}")])
    assert main(["watch", str(path), "--epochs", "1"]) == 3
    assert "watch: refuted: All tensors got no noise in 23 of 23 steps." in capsys.readouterr().err
    page = (folder / "watched" / "report.html").read_text(encoding="utf-8")
    assert "The ε of this training does not hold." in page
    assert "All tensors got no noise in 23 of 23 steps." in page
    told = json.loads((folder / "watched" / "report.json").read_text(encoding="utf-8"))
    assert told["budgets"][0]["epsilon"]["zero_out"] == "inf"


def test_a_script_that_fails_keeps_its_own_status(folder, capsys):
    for text, status in (("raise ValueError('mine')", 1), ("import sys; sys.exit(7)", 7), ("exit('words')", 1)):
        (folder / "train.py").write_text(text, encoding="utf-8")
        assert main(["watch", "train.py"]) == status
    said = capsys.readouterr().err
    assert "ValueError: mine" in said
    assert "words" in said
    assert "runpy" not in said


def test_a_script_without_opacus_cannot_be_judged(folder, capsys):
    (folder / "train.py").write_text("print('hello')", encoding="utf-8")
    assert main(["watch", "train.py"]) == 2
    assert "No step of a private optimizer was seen" in capsys.readouterr().err


def test_a_script_sees_itself_and_its_words_as_python_shows_them(folder, capsys):
    (folder / "other.py").write_text("NAME = 'beside'", encoding="utf-8")
    text = "import sys, other\nprint(__name__, sys.argv, other.NAME, sys.modules['__main__'].__dict__ is globals())"
    (folder / "train.py").write_text(text, encoding="utf-8")
    before = list(sys.argv), list(sys.path)
    main(["watch", "train.py", "--help", "-x", "--delta", "3"])
    assert "__main__ ['train.py', '--help', '-x', '--delta', '3'] beside True" in capsys.readouterr().out
    assert (sys.argv, sys.path) == before


def test_words_before_the_script_are_the_commands_own():
    options = parser().parse_args(["--delta", "1e-6", "--to=x", "train.py", "--delta", "2", "--to", "y"])
    assert (options.delta, options.to, options.script) == (1e-6, "x", "train.py")
    assert options.arguments == ["--delta", "2", "--to", "y"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.py"], "nothing.py is not a file; name the Python script to run"),
        (["--to", "file", IMAGE], "--to file is not a folder"),
    ],
)
def test_wrong_words_are_refused_before_anything_runs(words, sentence, folder, capsys):
    (folder / "file").touch()
    assert main(["watch", *words]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_report_that_is_not_of_watch_is_never_written_over(name, folder, capsys):
    (folder / "train.py").write_text("print('hello')", encoding="utf-8")
    (folder / "mine").mkdir()
    (folder / "mine" / name).write_text("<title>My study</title>", encoding="utf-8")
    assert main(["watch", "--to", "mine", "train.py"]) == 1
    said = capsys.readouterr()
    assert f"--to mine: {name} exists and is not a report of watch" in said.err
    assert "hello" not in said.out
    assert [path.read_text(encoding="utf-8") for path in (folder / "mine").iterdir()] == ["<title>My study</title>"]
    for _ in range(2):  # its own is renewed
        assert main(["watch", "train.py"]) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name the script to run"),
        (["--dleta", "1e-5", IMAGE], "unknown option --dleta; did you mean '--delta'?"),
        (["--delta", "2", IMAGE], "'2' is not valid; it must be a number above 0 and below 1"),
    ],
)
def test_wrong_options_are_refused(words, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["watch", *words])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_help_imports_no_library():
    code = (
        "import sys; from dp_leakage.commands import main\n"
        "try: main(['watch', '--help'])\n"
        "except SystemExit: pass\n"
        "print({'torch', 'numpy', 'opacus', 'scipy'} & {*sys.modules})"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "example:\n  dp-leakage watch train.py --epochs 3\n" in said
    assert said.endswith("set()\n")


def test_a_watched_run_writes_the_same_weights_and_leaves_nothing_behind(folder):
    seams = [
        (nn.Module, "__call__"),
        (PrivacyEngine, "make_private"),
        (DPOptimizer, "pre_step"),
        (DPOptimizer, "__init__"),
        (dataloader._BaseDataLoaderIter, "__next__"),
        (torch, "manual_seed"),
    ]
    unwatched(IMAGE, ["--epochs", "1", "--save", "plain.pt"])
    before = [vars(owner)[name] for owner, name in seams]
    assert main(["watch", IMAGE, "--epochs", "1", "--save", "watched.pt"]) == 0
    assert same_bytes("plain.pt", "watched.pt")
    assert [vars(owner)[name] for owner, name in seams] == before


def test_a_fault_of_the_watch_is_a_sentence_and_the_training_goes_on(folder, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("planted")

    unwatched(IMAGE, ["--epochs", "1", "--save", "plain.pt"])
    for name in ("_enters", "_draws", "_forwards", "_measures", "_made_private"):
        with monkeypatch.context() as patched:
            patched.setattr(dp_leakage.opacus.observer.Observer, name, broken)
            assert main(["watch", IMAGE, "--epochs", "1", "--save", "watched.pt"]) == 2
        assert "RuntimeError: planted" in capsys.readouterr().err
        assert same_bytes("plain.pt", "watched.pt")


def test_a_test_of_ones_own_can_ask_for_a_private_training(folder):
    def train(optimizes):
        torch.manual_seed(1)
        data = torch.utils.data.TensorDataset(torch.randn(200, 5), torch.randint(0, 2, (200,)))
        model = nn.Linear(5, 2)
        loader = torch.utils.data.DataLoader(data, batch_size=20)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=2.0, max_grad_norm=1.0
        )
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizes(optimizer)
        return engine.get_epsilon(1e-5)

    assert dp_leakage.opacus.assert_private(lambda: train(lambda optimizer: optimizer.step()), epsilon=4) > 0
    with pytest.raises(AssertionError, match=r"ε of what ran is .* more than 0.1"):
        dp_leakage.opacus.assert_private(lambda: train(lambda optimizer: optimizer.step()), epsilon=0.1)

    def silent(optimizer):
        optimizer.add_noise = lambda: [setattr(p, "grad", p.summed_grad.clone()) for p in optimizer.params]
        optimizer.step()

    # On twelve numbers missing noise shows all the same.
    with pytest.raises(AssertionError, match="refuted: All tensors got no noise in 10 of 10 steps"):
        dp_leakage.opacus.assert_private(lambda: train(silent))


def test_the_command_ends_a_process_with_its_status(folder):
    environment = os.environ | {"PYTHONPATH": str(Path(dp_leakage.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    (folder / "train.py").write_text("import sys; sys.exit(5)", encoding="utf-8")
    command = [sys.executable, "-m", "dp_leakage", "watch", "train.py"]
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 5
