"""Engines that keep what models say, not the models: of models that exist already, and of other libraries' estimators.

Each module has ``answers(settings, data, subsets, seeds)`` → `Answers`, what K models say of all records; step
``train`` writes it where other engines write parameters. Importing this costs nothing.
"""

ENGINES = {
    "outputs": "dp_leakage.engines.outputs",
    "onnx": "dp_leakage.engines.onnx",
    "module": "dp_leakage.engines.module",
    "estimator": "dp_leakage.engines.estimator",
}
GIVEN = ("outputs", "onnx", "module")  # of models that exist already
# Keys of an architecture that are files of the user's, by engine.
FILES = {"outputs": ("name", "of"), "onnx": ("name",), "module": ("weights",), "estimator": ()}
