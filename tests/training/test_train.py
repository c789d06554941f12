"""The stage as a whole: what it writes, says and refuses."""

import json
import warnings

import pytest
import torch
from full_disk import error_on_full_disk
from tiny_data import make_data
from tiny_run import Run, preset

from manymatch.config.preset import Augmentation, Training
from manymatch.model.checkpoint import FILES, load_model
from manymatch.training import loop
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.run_context import deterministic, quiet
from manymatch.training.validation import validate
from manymatch.util.errors import ConfigError, DataError, DivergenceError


def test_model_folder_holds_the_best_epoch(new_run, tiny):
    run = new_run("run")
    run.train(preset(weight_average=0.0, precision="32-true"))
    assert {path.name for path in run.model.iterdir()} == {*FILES}
    method, run_preset, vocabulary = load_model(run.model)
    assert run_preset == preset(weight_average=0.0, precision="32-true")
    facts = json.loads((run.model / "model.json").read_text())
    split = ValidationBatches(Data(tiny.shards, vocabulary), 4, method.read_graph)
    result = validate(method, split, torch.device("cpu"))
    assert result["rsum"] == pytest.approx(facts["rsum"])
    assert result["rsum"] == max(curve(run, "validation/rsum"))
    assert facts["epoch"] == 1 + curve(run, "validation/rsum").index(facts["rsum"])
    assert facts["precision_of"] == {"images": 16, "right": "own"}


def curve(run, name):
    lines = (run.curves / "plots" / "metrics" / f"{name}.tsv").read_text().splitlines()
    steps, values = zip(*(line.split("\t") for line in lines[1:]), strict=True)
    assert [int(step) for step in steps] == list(range(len(steps)))
    return [float(value) for value in values]


@pytest.mark.parametrize(("asked", "used"), [("32-true", "32-true"), ("16-mixed", "bf16-mixed")])
def test_training_learns_in_every_precision(asked, used, new_run):
    """The model says in which precision it was trained."""
    run = new_run("run")
    run.train(preset(precision=asked, epochs=6))
    losses, rsums = curve(run, "train/loss"), curve(run, "validation/rsum")
    assert losses[-1] < losses[0] / 1.5 and rsums[-1] > rsums[0] + 50
    terms = zip(curve(run, "train/texts"), curve(run, "train/spread"), strict=True)
    assert [sum(pair) for pair in terms] == pytest.approx(losses)
    assert json.loads((run.model / "model.json").read_text())["trained_in"] == used
    method = load_model(run.model)[0]
    assert method.precision == asked  # in which it embeds
    dtypes = {value.dtype for value in method.state_dict().values()}
    assert dtypes == {torch.float32, torch.int64}


def test_the_seed_decides_everything(new_run):
    outputs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.rand(3)  # the state outside does not matter
        run = new_run(name)
        run.train(preset(epochs=2).model_copy(update={"seed": seed}))
        outputs.append(run.outputs())
    assert outputs[0] == outputs[1]
    assert outputs[0]["model/model.safetensors"] != outputs[2]["model/model.safetensors"]


def test_gradients_are_clipped_only_where_the_preset_says_so(new_run):
    outputs = {}
    for norm in (None, 1e6, 1e-3):
        run = new_run(str(norm))
        run.train(preset(epochs=1, clip_norm=norm))
        outputs[norm] = run.outputs()["model/model.safetensors"]
    assert outputs[None] == outputs[1e6] != outputs[1e-3]


@pytest.fixture
def rsums(monkeypatch):
    """Let validation find the given rsums, one an epoch."""

    def result(*values):
        values_left = iter(values)
        monkeypatch.setattr(
            "manymatch.training.loop.validate", lambda *_: {"rsum": next(values_left)}
        )

    return result


def test_of_equal_epochs_the_earlier_is_kept_and_patience_ends_training(tmp_path, rsums):
    """The test split is never opened: choices that saw it would spoil its results."""
    data = make_data(tmp_path, width=8)
    for shard in data.write_shards().glob("test-*"):
        shard.unlink()
    run, two = Run(tmp_path / "run", data), Run(tmp_path / "two", data)
    rsums(1.0, 3.0, 2.0, 3.0, 9.0)
    run.train(preset(epochs=10, patience=2))
    assert curve(run, "validation/rsum") == [1.0, 3.0, 2.0, 3.0]
    assert json.loads((run.model / "model.json").read_text())["epoch"] == 2
    rsums(1.0, 3.0, 2.5, 1.0)
    two.train(preset(epochs=10, patience=2))
    weights = "model/model.safetensors"
    assert run.outputs()[weights] == two.outputs()[weights]


def test_one_line_an_epoch_and_no_chatter(new_run, capfd, recwarn, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    new_run("run").train(preset())
    out, err = capfd.readouterr()
    assert out == ""
    first, *lines = err.splitlines()
    assert first.startswith("training on 1 x cpu, precision ")
    assert len(lines) == 5
    assert lines[0].startswith("epoch 1/4: loss ")
    assert not recwarn.list
    assert not list((tmp_path / "here").iterdir())


def test_without_dvclive_the_model_is_the_same(new_run, monkeypatch, capsys):
    with_curves, without = new_run("with"), new_run("without")
    with_curves.train(preset(epochs=2))
    monkeypatch.setattr("manymatch.training.curves.Live", None)
    without.train(preset(epochs=2))
    assert "no training curves: dvclive is missing" in capsys.readouterr().err
    assert not without.curves.exists()
    expected = with_curves.outputs().items()
    assert without.outputs() == {key: v for key, v in expected if key.startswith("model/")}


def test_runs_that_end_together(new_run, monkeypatch):
    """dvclive removes a file of the whole checkout when a run ends; another run may be first."""
    pytest.importorskip("dvclive")

    def gone():
        raise FileNotFoundError(".dvc/tmp/exps/run/DVCLIVE_STEP_COMPLETED")

    monkeypatch.setattr("dvclive.live.cleanup_dvclive_step_completed", gone)
    run = new_run("run")
    run.train(preset(epochs=2))
    assert run.model.exists()


@pytest.mark.parametrize("room", [500, 5000])
def test_full_disk_is_one_line(new_run, room, tmp_path, monkeypatch):
    """Room for nothing, and for the best weights but not the state."""
    monkeypatch.chdir(tmp_path)  # in a DVC repository, dvclive writes to DVC's database too
    run = new_run("run")
    error = error_on_full_disk(lambda: run.train(preset(epochs=2)), room)
    assert error.startswith(f"StorageError: {run.checkpoints}")
    assert not run.model.exists()
    assert not list(run.folder.rglob("*.partial"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"optimizer": {"lr": 1e30}},
            r"loss '\w+' is (inf|nan) in epoch 1, step 2 of 6. Lower",
        ),
        ({"parameter_groups": ({"match": "nothing", "lr_scale": 1},)}, "no parameter matches"),
        ({"devices": 2, "images_per_batch": 7}, "7 images cannot be divided equally among 2"),
    ],
)
def test_presets_that_cannot_work(new_run, settings, message):
    run = new_run("run")
    with pytest.raises((ConfigError, DivergenceError), match=message):
        run.train(preset(**settings))
    assert not run.model.exists()


@pytest.mark.parametrize(
    ("epoch", "step", "remedy"),
    [(0, 0, "No weight has changed yet"), (0, 2, "Lower"), (3, 0, "Lower")],
)
def test_the_first_loss_that_is_not_finite_is_named(epoch, step, remedy):
    values = torch.ones(4, 2)
    loop._refuse_divergence(["match", "kl"], values, epoch)
    values[step:, 1] = -torch.inf
    place = f"the loss 'kl' is -inf in epoch {epoch + 1}, step {step + 1} of 4. {remedy}"
    with pytest.raises(DivergenceError, match=place) as fault:
        loop._refuse_divergence(["match", "kl"], values, epoch)
    assert "\n" not in str(fault.value)


def test_shards_of_other_features_or_too_few_images_are_refused(new_run, tmp_path):
    drops = Augmentation(object_drop=0.5)
    with pytest.raises(ConfigError, match="object_drop: the method 'tiny' reads no scene graphs"):
        new_run("run").train(preset().model_copy(update={"augmentation": drops}))
    with pytest.raises(ConfigError, match=r"'resnet50', but .*'grid'. Run 'manymatch shards tiny"):
        new_run("run").train(preset().model_copy(update={"features": "resnet50"}))
    for name, sizes, fault in (
        ("none", {"train": 8}, "no split 'validation'"),
        ("one", {"train": 8, "validation": 1}, "one image in the split 'validation'. Valid.* two"),
        ("two", {"train": 1, "validation": 8}, "one image in the split 'train'. A training .* two"),
    ):
        (tmp_path / name).mkdir()
        data = make_data(tmp_path / name, sizes)
        data.write_shards()
        with pytest.raises(DataError, match=fault):
            Run(tmp_path / name / "run", data).train(preset())


def test_on_a_terminal_there_is_a_bar(new_run, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    new_run("run").train(preset(epochs=1))
    output = capsys.readouterr().err
    assert "\x1b[" in output and "epoch 1/1: loss" in output


@pytest.mark.parametrize("strict", [False, True])
def test_a_training_uses_the_fraction_and_algorithms_of_its_settings(new_run, monkeypatch, strict):
    """A CPU is always deterministic, so the training asks for the algorithms of a GPU."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    steps, flags = [], []

    def on_gpu(training, device, same_shapes=False):
        flags.append(training.deterministic)
        return deterministic(training, torch.device("cuda"), same_shapes)

    def counted(batches, title, total, passing):
        for batch in batches:
            yield batch
            steps.append(torch.are_deterministic_algorithms_enabled())

    monkeypatch.setattr("manymatch.training.train.deterministic", on_gpu)
    monkeypatch.setattr("manymatch.training.loop.track", counted)
    new_run("run").train(preset(epochs=1, images_per_batch=8, deterministic=strict, fraction=0.5))
    assert steps == [strict] * 3  # 24 of 48 images
    assert flags == [strict] * 2  # the second is for the shares of right results


@pytest.mark.parametrize("gpu", [False, True])
def test_the_same_bits_in_every_run_and_torchs_settings_as_they_were_afterwards(
    gpu, monkeypatch, capsys
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    device = torch.device("cuda" if gpu else "cpu")
    with quiet(), deterministic(Training(deterministic=gpu), device, same_shapes=True):
        for _ in range(2):
            warnings.warn("sum_cuda does not have a deterministic implementation", stacklevel=1)
            warnings.warn("advice", stacklevel=1)
        assert torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.benchmark
        assert torch.is_deterministic_algorithms_warn_only_enabled() == gpu
    said = capsys.readouterr().err.splitlines()
    assert len(said) == gpu and all("sum_cuda does not have" in line for line in said)
    with deterministic(Training(), torch.device("cuda"), same_shapes=True):
        assert torch.backends.cudnn.benchmark
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert torch.utils.deterministic.fill_uninitialized_memory
