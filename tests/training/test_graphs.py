"""Steps replayed from captured graphs: the same bytes as without, and nothing in them that a capture must not meet.

A machine without a GPU captures nothing, so two stand-ins serve here: work that is done again in place of a replayed
graph, and tensors with shapes and a device but no values, on which a wait for a result or a mix of devices is an error.
What needs a GPU is in ``test_cuda.py``.
"""

from types import SimpleNamespace

import pytest
import torch
from small import SETTINGS, SHAPES, data_of, layers_of, started, subsets_of
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from dp_leakage.common import captures
from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import activation_floats
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import graphs, model_batches, trainer
from dp_leakage.training.gradients import add_examples, fill_gradient, lay_out, on_device, sent
from dp_leakage.training.optimizers import Optimizer, slots
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.watch import WhiteBoxObserver

GAUSSIAN = [Mechanism(sampler, noise_multiplier=0.5) for sampler in ("shuffle", "poisson", "wor")]
BY_ROW = Mechanism("poisson", bound="normalize", noise="vmf", kappa=5.0, block="row")
CAPTURABLE = [None, *GAUSSIAN, Mechanism(bound="normalize", noise="none"), BY_ROW]
names = {"ids": lambda m: "plain" if m is None else f"{m.sampler} {m.bound} {m.noise}"}
NO_KERNELS = "lazy"  # a device of which builds of PyTorch have no kernels, so that only shapes are computed


def replaying(monkeypatch, captures: list) -> None:
    """All trainings replay; what would be captured is counted, and its replay does the work again."""

    def capture(work):
        captures.append(work)
        return work

    monkeypatch.setattr(trainer, "gradient_step", lambda program: graphs.Replayed(program, capture))


OPTIMIZERS = {
    "sgd": {"optimizer": "sgd"},
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "final_learning_rate": 0.001},
    "adam": {"optimizer": "adam", "l2": 0.1, "final_learning_rate": 0.001, "average_epochs": 2},
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("mechanism", CAPTURABLE, **names)
def test_replayed_steps_give_the_same_bytes(mechanism, optimizer, monkeypatch):
    x, y = data_of("mlp")
    layers, subsets = layers_of("mlp", dropout=0.3), subsets_of(40, 3, 30)
    settings = TrainingSettings(learning_rate=0.01, epochs=3, batch_size=8, **optimizer)
    eager, _ = trainer.train(layers, x, y, subsets, [1, 2, 3], settings, mechanism)
    captures = []
    replaying(monkeypatch, captures)
    monkeypatch.setattr(graphs, "TOGETHER", 3)  # of an epoch's four steps
    replayed, _ = trainer.train(layers, x, y, subsets, [1, 2, 3], settings, mechanism)
    for name, value in eager.parameters.items():
        assert torch.equal(value, replayed.parameters[name]), name
    if mechanism is None or mechanism.sampler == "shuffle":
        # Whole batches, and the last one of an epoch, which is padded: that adds weights where there are none.
        assert len(captures) == (1 if mechanism is None else 2)
    if mechanism is not None and mechanism.sampler == "wor":
        assert len(captures) == 1


def test_an_empty_batch_of_all_models_is_not_captured(monkeypatch):
    x, y = data_of("mlp")
    captures = []
    training = trainer.start(layers_of("mlp"), x, y, subsets_of(40, 3, 30), [1, 2, 3], SETTINGS, GAUSSIAN[1])
    step = graphs.Replayed(training.program, lambda work: captures.append(work) or work)
    nothing = [torch.empty(0, dtype=torch.int64)]
    with torch.inference_mode():
        step([nothing] * 3)
        assert not captures
        step([nothing, [torch.arange(3)], nothing])
    assert len(captures) == 1


def test_a_replay_is_the_whole_step_but_under_a_watch_only_its_passes(monkeypatch):
    """A replay that does nothing leaves the parameters where the first step, which is not replayed, took them."""
    monkeypatch.setattr(trainer, "gradient_step", lambda program: graphs.Replayed(program, lambda _: lambda: None))
    x, y = data_of("mlp")
    for watch, stays in (
        (None, True),
        (WhiteBoxObserver(39, torch.tensor([38]), torch.tensor([39]), torch.tensor([0])), False),
    ):
        training = trainer.start(
            layers_of("mlp"), x, y, subsets_of(40, 3), [1, 2, 3], SETTINGS, Mechanism("wor"), watch=watch
        )
        with torch.inference_mode():
            step = trainer.steps(training)
            next(step)
            first = training.parameters.clone()
            next(step)
        assert torch.equal(training.parameters, first) == stays


def test_a_replay_is_only_the_passes_where_noise_must_see_the_whole_sum(monkeypatch):
    """Noise that a capture took in would be the same in every step."""
    monkeypatch.setattr(trainer, "gradient_step", lambda program: graphs.Replayed(program, lambda work: lambda: None))
    training = started(layers_of("mlp"), *data_of("mlp"), subsets_of(40, 3), [1, 2, 3], Mechanism("wor"))
    seen = []

    class Late(type(training.program.noise)):
        def finish(self):
            seen.append(len(seen))

    training.program.noise.__class__ = Late
    with torch.inference_mode():
        steps = trainer.steps(training)
        for _ in range(3):
            next(steps)
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_rate_of_a_captured_step_is_a_tensor_that_stays_in_its_place(optimizer):
    settings = TrainingSettings(learning_rate=0.5, epochs=3, **optimizer)
    generator, moved = torch.Generator().manual_seed(1), []
    steps = torch.randn(6, 3, 32, generator=generator)
    for own in (0.0, torch.zeros(())):
        flat, gradient = torch.ones(3, 32), torch.empty(3, 32)
        chosen = Optimizer(settings, flat, gradient, slots(settings, flat))
        chosen.rate = own
        for step, drawn in enumerate(steps):
            gradient.copy_(drawn)
            chosen.set_rate(settings.rate(step // 2))
            chosen.step()
        assert chosen.rate is own or isinstance(own, float)
        moved.append(flat)
    torch.testing.assert_close(*moved)


class Calls(TorchDispatchMode):
    """Counts what runs on the device: all calls but those that only look at memory in another way."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, kind, types, arguments=(), named=None):
        found = kind(*arguments, **(named or {}))
        if not kind.is_view and kind.namespace == "aten":
            self.names.append(kind.overloadpacket.__name__)
        return found


def test_two_calls_are_made_beside_a_replay(monkeypatch):
    """One copies the rows and one the noise, which were drawn and sent before."""
    monkeypatch.setattr(trainer, "gradient_step", lambda program: graphs.Replayed(program, lambda _: lambda: None))
    training = started(layers_of("mlp"), *data_of("mlp"), subsets_of(40, 3), [1, 2, 3], GAUSSIAN[2], l2=0.1)
    training.program.noise.ahead = 5  # as on a GPU
    with torch.inference_mode():
        step = trainer.steps(training)
        next(step)
        for _ in range(3):
            with Calls() as calls:
                next(step)
            assert calls.names == ["copy_", "copy_"]


def test_padding_to_few_shapes_moves_no_parameter_by_more_than_rounding(monkeypatch):
    x, y = data_of("mlp", dtype=torch.float64)
    arguments = layers_of("mlp"), x, y, subsets_of(40, 3, 30), [1, 2, 3]
    settings, mechanism = TrainingSettings("sgd", 0.1, epochs=20, batch_size=8), GAUSSIAN[1]
    tight, _ = trainer.train(*arguments, settings, mechanism)
    captures = []
    replaying(monkeypatch, captures)
    cut = trainer.cut
    monkeypatch.setattr(trainer, "cut", lambda *given: cut(*given)._replace(multiple=model_batches.RAGGED_MULTIPLE))
    padded, _ = trainer.train(*arguments, settings, mechanism)
    for name, value in tight.parameters.items():
        torch.testing.assert_close(value, padded.parameters[name])
    assert len(captures) <= 2  # 80 Poisson batches of mean size 8, next to none of which is above 32


def started_without_values(name, mechanism, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=2**33))
    stream = trainer.stream
    monkeypatch.setattr(trainer, "stream", lambda seed, role, device="cpu": stream(seed, role))
    layers = layers_of(name, **({} if name == "mixed" else {"dropout": 0.3}))
    data = data_of(name), subsets_of(40, 3)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        return mode, trainer.start(layers, *data[0], data[1], range(3), SETTINGS, mechanism, device=NO_KERNELS)


@pytest.mark.parametrize("mechanism", CAPTURABLE, **names)
@pytest.mark.parametrize("name", [name for name in SHAPES if name != "module"])
def test_a_capturable_step_stays_on_its_device_and_waits_for_nothing(name, mechanism, monkeypatch):
    mode, training = started_without_values(name, mechanism, monkeypatch)
    program = training.program
    assert graphs.capturable(mechanism)
    assert len(program.model_batches) == 1  # off the CPU all models go together
    with mode, torch.inference_mode():
        laid = lay_out(program, [[torch.arange(size)] for size in (8, 8, 5)])
        (examples,) = on_device([laid], program.x.device)
        assert all(tensor.device.type == NO_KERNELS for tensor in examples[0])
        program.noise.add(0)
        add_examples(program, examples)
        training.finish_step()


def test_on_a_gpu_only_what_is_captured_is_padded(monkeypatch):
    monkeypatch.setattr(model_batches, "model_batch_size", lambda *_: 3)
    monkeypatch.setattr(model_batches, "pass_bytes", lambda device: model_batches.PASS_BYTES)
    layers = layers_of("mlp")
    parameters = SimpleNamespace(device=torch.device(NO_KERNELS))
    directional = Mechanism("poisson", bound="normalize", noise="vmf", kappa=5.0)
    kinds = zip((None, *GAUSSIAN, directional, BY_ROW), (0, 0, 1, 0, 1, 1), strict=True)
    multiples = [model_batches.cut(layers, parameters, kind, 8, (12,), deviation).multiple for kind, deviation in kinds]
    assert multiples == [1, 1, model_batches.RAGGED_MULTIPLE, 1, 1, model_batches.RAGGED_MULTIPLE]
    wide = [model_batches.cut(layers, parameters, kind, 64, (12,), 8).multiple for kind in (GAUSSIAN[1], BY_ROW)]
    assert wide == [model_batches.RAGGED_MULTIPLE, 128]  # nearly all batches have one shape


@pytest.mark.parametrize(
    ("records", "models", "width"),
    [(1000, 1, 1000), (100, 7, 1000), (8000, 1, 1000)],
    ids=["a batch fills it", "several models", "a batch is cut"],
)
def test_a_pass_on_a_gpu_takes_the_memory_that_it_may(monkeypatch, records, models, width):
    layers, device = layers_of("softmax_regression"), torch.device(NO_KERNELS)
    each = 4 * (activation_floats(layers, (12,)) + sum(layer.formed_floats for layer in layers))
    monkeypatch.setattr(model_batches, "pass_bytes", lambda _: 1000 * each)
    parameters = SimpleNamespace(device=device, element_size=lambda: 4)
    found = model_batches.cut(layers, parameters, None, records, (12,), 0.0)
    assert (found.models, found.width) == (models, width)


def test_only_pinned_memory_is_copied_to_a_gpu_and_nobody_waits():
    done = []

    class Tensor:
        def pin_memory(self):
            done.append("pinned")
            return self

        def to(self, device, non_blocking):
            done.append((device.type, non_blocking))

    sent(Tensor(), torch.device("cuda"))
    sent(Tensor(), torch.device("cpu"))
    assert done == ["pinned", ("cuda", True), ("cpu", True)]


def test_the_stand_in_notices_a_wait(monkeypatch):
    mechanism = Mechanism("wor", bound="normalize", noise="vmf", kappa=50.0)
    mode, training = started_without_values("mlp", mechanism, monkeypatch)
    assert not graphs.capturable(mechanism)
    with mode, torch.inference_mode(), pytest.raises(DataDependentOutputException):
        fill_gradient(training.program, [[torch.arange(8)]] * 3)


@pytest.mark.parametrize(
    "mechanism",
    [
        Mechanism("class_poisson", unit="class", noise_multiplier=0.1),
        Mechanism(unit="batch", noise_multiplier=0.1),
        Mechanism(bound="my_bound", noise_multiplier=0.1),
    ],
    ids=["groups", "batch", "own bound"],
)
def test_other_steps_are_not_captured(mechanism):
    assert not graphs.capturable(mechanism)


def test_a_capture_knows_of_the_streams_that_its_passes_draw_from():
    for rate, count in ((0.0, 0), (0.3, 3)):
        x, y = data_of("mlp")
        training = trainer.start(layers_of("mlp", dropout=rate), x, y, subsets_of(40, 3), [1, 2, 3], SETTINGS, None)
        generators = graphs.pass_generators(training.program)
        assert generators == training.generators["dropout"][:count]


def test_where_a_capture_fails_training_ends_with_a_way_out(monkeypatch):
    def no_graph(*_, **__):
        raise RuntimeError("operation not permitted when stream is capturing")

    for name in ("graph_pool_handle", "Stream", "CUDAGraph"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "graph", no_graph)
    with pytest.raises(UserError, match=r"DP_LEAKAGE_NO_CUDA_GRAPHS=1 .* not permitted"):
        captures.cuda_capture([])(lambda: None)


def test_a_watched_training_is_padded_where_canaries_leave_their_batches(monkeypatch):
    """On a GPU; on a CPU its model batches keep the width of whole batches."""
    deviations = []
    cut = trainer.cut
    monkeypatch.setattr(trainer, "cut", lambda *given: deviations.append(given[-1]) or cut(*given))
    monkeypatch.setattr(WhiteBoxObserver, "begin", lambda *_: None)
    watch = WhiteBoxObserver(39, torch.tensor([38]), torch.tensor([39]), torch.tensor([0]))
    x, y = data_of("mlp")
    arguments = layers_of("mlp"), x, y, subsets_of(40, 3), [1, 2, 3], SETTINGS, Mechanism(noise_multiplier=0.5)
    for own in (None, watch):
        trainer.start(*arguments, watch=own)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=2**33))
    stream = trainer.stream
    monkeypatch.setattr(trainer, "stream", lambda seed, role, device="cpu": stream(seed, role))
    for own in (None, watch):
        with FakeTensorMode(allow_non_fake_inputs=True):
            trainer.start(*arguments, device=NO_KERNELS, watch=own)
    assert list(map(bool, deviations)) == [False, False, False, True]


def test_too_little_memory_for_a_graph_is_not_taken_for_a_capture_that_cannot_be(monkeypatch):
    def no_memory(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    for name in ("graph_pool_handle", "Stream", "CUDAGraph"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "graph", no_memory)
    with pytest.raises(torch.OutOfMemoryError):
        captures.cuda_capture([])(lambda: None)
