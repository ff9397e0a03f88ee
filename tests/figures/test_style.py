"""Every series looks like itself, and the same figure is the same bytes."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from dp_leakage.figures import draw
from dp_leakage.figures.files import further_notes, read_figure, write_figure
from dp_leakage.figures.style import canvas, encode, finish
from dp_leakage.table.looks import LOOKS, Series, look, order
from dp_leakage.table.numbers import number
from dp_leakage.table.words import mechanism_name, name


def test_importing_the_registry_loads_neither_matplotlib_nor_pandas() -> None:
    code = "import sys, dp_leakage.figures; print({'matplotlib', 'pandas', 'numpy', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_no_two_series_look_alike_even_in_black_and_white() -> None:
    looks = list(LOOKS.values())
    assert len({one.label for one in looks}) == len(looks)
    for one, other in combinations(looks, 2):
        assert one.color != other.color or one.marker != other.marker
        assert (one.marker, one.dashes) != (other.marker, other.dashes)


def test_the_accountants_of_one_figure_keep_apart_for_color_blind_eyes() -> None:
    """Simulated deuteranopia and protanopia (Viénot 1999, linear RGB): the four main series stay ΔRGB ≥ 0.1 apart."""
    import numpy as np
    from matplotlib.colors import to_rgb

    simulate = {
        "deuteranopia": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
        "protanopia": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    }
    main = [LOOKS["gaussian", accountant].color for accountant in ("naive", "advanced", "zcdp", "rdp")]
    for matrix in simulate.values():
        seen = [np.array(matrix) @ np.array(to_rgb(color)) ** 2.2 for color in main]
        assert min(float(np.abs(a - b).max()) for a, b in combinations(seen, 2)) > 0.1


def test_a_series_of_a_plugin_has_a_look_of_its_own_that_stays() -> None:
    one = look(Series("laplace", "my_accountant", "example"))
    assert one == look(Series("laplace", "my_accountant", "example"))
    assert one.label == "laplace, my accountant"
    assert order(Series("laplace", "my_accountant")) > order(Series("gaussian", "rdp"))


def test_labels_say_the_unit_block_and_bound_where_they_are_not_the_usual_ones() -> None:
    assert look(Series("gaussian", "naive", "example", "whole")).label == "DP-SGD, naive composition"
    assert look(Series("gaussian", "naive", "batch", "whole")).label == "DP-SGD, naive composition, batch clipping"
    assert look(Series("vmf", "vmf_pure", "example", "row")).label == "VMF, pure, by row"
    assert look(Series("subclass", "class_moments", "subclass", "whole")).label == "subclass"
    normalized = look(Series("gaussian", "rdp", "example", "whole", "normalize"))
    assert normalized.label == "DP-SGD, RDP, normalized"
    assert normalized.thin
    assert look(Series("vmf", "vmf_pure", "example", "row", "normalize")).label == "VMF, pure, by row"


def test_another_unit_of_the_same_accountant_has_its_color_and_half_a_marker() -> None:
    usual, batch = (look(Series("gaussian", "naive", unit, "whole")) for unit in ("example", "batch"))
    assert (usual.color, usual.marker) == (batch.color, batch.marker)
    assert usual.line != batch.line
    assert order(Series("gaussian", "naive", "example", "whole")) < order(Series("gaussian", "naive", "batch", "whole"))


def test_numbers_and_names_are_written_for_readers() -> None:
    values = (1000, 0.05, 57169.3, float("inf"), float("nan"), 300000)
    assert [number(value) for value in values] == ["1000", "0.05", "57200", "∞", "–", "300000"]
    assert name("softmax_regression") == "softmax regression"


def test_a_model_that_is_called_as_a_mechanism_is_keeps_its_own_name() -> None:
    assert [name("tree"), mechanism_name("tree")] == ["tree", "DP-FTRL, tree"]
    assert [name("person"), mechanism_name("gaussian")] == ["person", "Gaussian"]


def test_the_same_figure_is_the_same_bytes_in_any_process_and_under_any_matplotlibrc(
    quick: pd.DataFrame, tmp_path
) -> None:
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "savefig.dpi": 30, "text.usetex": False}):
        figure, _ = draw("leakage", quick, {"model": "mlp", "attack": "yeom"})
        here = {form: encode(figure, form) for form in ("pdf", "png")}
    again, _ = draw("leakage", quick, {"model": "mlp", "attack": "yeom"})
    assert {form: encode(again, form) for form in here} == here
    quick.to_parquet(tmp_path / "metrics.parquet")
    code = (
        "import pandas as pd\nfrom pathlib import Path\nfrom dp_leakage.figures import draw\n"
        "from dp_leakage.figures.style import encode\n"
        "figure, _ = draw('leakage', pd.read_parquet('metrics.parquet'), {'model': 'mlp', 'attack': 'yeom'})\n"
        "[Path('figure.' + form).write_bytes(encode(figure, form)) for form in ('pdf', 'png')]"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "0"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)
    assert {form: (tmp_path / f"figure.{form}").read_bytes() for form in here} == here


def test_files_carry_no_date_and_no_version(quick: pd.DataFrame, tmp_path) -> None:
    figure, _ = draw("accuracy_loss", quick, {"model": "mlp"})
    for form in ("pdf", "png", "svg"):
        (tmp_path / f"figure.{form}").write_bytes(encode(figure, form))
        written = (tmp_path / f"figure.{form}").read_bytes()
        for word in (b"CreationDate", b"Software", b"<dc:date>", mpl.__version__.encode() + b","):
            assert word not in written


def test_at_most_two_lines_of_notes_stand_under_a_figure_and_a_report_adds_the_others(tmp_path: Path) -> None:
    figure, _ = canvas(1, 1)
    said = [f"Note {number}: {'words ' * 12}." for number in range(5)]
    finish(figure, [], said)
    drawn, files = figure.get_supxlabel(), [tmp_path / f"fig.{form}" for form in ("pdf", "png", "csv")]
    assert drawn.count("\n") < 2
    write_figure(figure, pd.DataFrame({"a": [1]}), *files, "0" * 8)
    assert " ".join(drawn.split() + further_notes(read_figure(*files)).split()) == " ".join(" ".join(said).split())
    short, _ = canvas(1, 1)
    assert further_notes(encode(finish(short, [], said[:1]), "png")) == ""


def test_a_note_of_three_lines_is_not_cut_in_two() -> None:
    figure, _ = canvas(1, 1)
    long = "word " * 80
    assert not finish(figure, [], [long]).get_supxlabel()
    assert figure.get_label() == long


def test_noise_on_other_blocks_is_told_apart_in_black_and_white() -> None:
    marks = [look(Series("vmf", "vmf_rdp", "example", block)).mark for block in ("whole", "row", "layer", "sum")]
    assert all(one != other for one, other in combinations(marks, 2))


def test_a_title_stands_above_a_figure_that_needs_no_legend() -> None:
    figure, _ = canvas(1, 1)
    finish(figure, [], title="All against all")
    assert [legend.get_title().get_text() for legend in figure.legends] == ["All against all"]
    plain, _ = canvas(1, 1)
    assert not finish(plain, []).legends


def test_a_name_that_begins_with_a_known_one_is_written_like_it():
    assert name("fashion_mnist_scattering") == "Fashion-MNIST scattering"
    assert name("mnist_r") == "MNIST r"
    assert name("fashion_mnist_shokri") == "Fashion-MNIST (split of Shokri's attack)"
    assert name("my_own_table") == "my own table"
    assert name("") == ""
