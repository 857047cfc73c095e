"""The command line as a user meets it: exit codes, messages, reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

from app import cli
from app.commands import conversation, doctor
from engine.project import files
from engine.project.document import Project
from engine.system.program import version
from tests import forking
from tests.scripts import run_script

ROOT = Path(__file__).parents[3]
MLP = ROOT / "assets" / "templates" / "mlp.tlab"
LENET = ROOT / "assets" / "templates" / "lenet.tlab"

pytestmark = pytest.mark.usefixtures("forked_processes")


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def exec_report(tmp_path, capsys):
    """Run source by `exec`; gives (exit code, report, captured output)."""

    def run_source(source: str | bytes):
        file, out = tmp_path / "code.py", tmp_path / "report.json"
        file.write_bytes(source if isinstance(source, bytes) else source.encode())
        code = run("exec", file, "--json", out)
        return code, json.loads(out.read_text()), capsys.readouterr()

    return run_source


# -- exec ----------------------------------------------------------------------------------------


def test_exec_reports_ok_stdout_error_and_tensors(exec_report):
    code, report, captured = exec_report(
        "base = torch.arange(6.0)\nview = base[2:].reshape(2, 2)\n"
        "w = torch.tensor([1.0, float('nan')], requires_grad=True)\n"
        "loss = (w * 3).sum()\nloss.backward()\nprint('done')\nnot_a_tensor = 3\n"
    )
    assert code == 0
    assert list(report) == ["ok", "stdout", "error", "tensors"]
    assert (report["ok"], report["stdout"], report["error"]) == (True, "done\n", None)
    assert captured.out == "done\n"
    assert list(report["tensors"]) == ["base", "view", "w", "loss"]
    view, w, loss = (report["tensors"][name] for name in ("view", "w", "loss"))
    assert view == {
        "shape": [2, 2], "dtype": "torch.float32", "device": "cpu", "stride": [2, 1],
        "storage_offset": 2, "is_contiguous": True, "requires_grad": False, "is_leaf": True,
        "grad_fn": None, "version": 0, "storage_id": report["tensors"]["base"]["storage_id"],
        "values": [[2.0, 3.0], [4.0, 5.0]], "grad": None,
    }  # fmt: skip
    assert (w["values"], w["grad"]) == ([1.0, "nan"], [3.0, 3.0])
    assert (loss["grad_fn"], loss["is_leaf"], loss["values"]) == ("SumBackward0", False, "nan")


def test_exec_of_code_that_raises_reports_the_line_and_what_came_before(exec_report):
    code, report, captured = exec_report("x = torch.ones(2)\nprint('a')\nx @ torch.ones(3)\n")
    assert code == 1
    assert (report["ok"], report["stdout"]) == (False, "a\n")
    assert list(report["error"]) == ["type", "message", "line"]
    assert (report["error"]["type"], report["error"]["line"]) == ("RuntimeError", 3)
    assert report["tensors"]["x"]["values"] == [1.0, 1.0]
    assert "x @ torch.ones(3)" in captured.err


@pytest.mark.parametrize(
    ("source", "type_", "line"),
    [
        ("x = 1\ny = (", "SyntaxError", 2),
        ("raise SystemExit(4)", "SystemExit", 1),
        (b"x = 1\ny = '\xff'\n", "UnicodeDecodeError", 2),
        (b"# coding: no-such-code\n", "SyntaxError", None),
        ("import os\nprint('x')\nos._exit(0)", "EngineExit", None),
    ],
)
def test_exec_writes_its_report_whatever_the_code_does(exec_report, source, type_, line):
    code, report, captured = exec_report(source)
    assert code == 1
    assert report["ok"] is False
    assert (report["error"]["type"], report["error"]["line"]) == (type_, line)
    assert report["error"]["message"]
    assert captured.err


def test_exec_of_a_latin_1_file_that_says_so(exec_report):
    code, report, _ = exec_report("# coding: latin-1\nprint('ü')\n".encode("latin-1"))
    assert (code, report["stdout"]) == (0, "ü\n")


def test_exec_carries_more_than_one_message_can_hold(exec_report):
    code, report, _ = exec_report(
        "for i in range(400): globals()[f't{i}'] = torch.full((1000,), i / 3)\nprint('x' * 10**6)\n"
    )
    assert code == 0
    assert len(report["stdout"]) == 10**6 + 1
    assert len(report["tensors"]) == 400
    assert report["tensors"]["t399"]["values"] == torch.full((1000,), 133.0).tolist()


def test_exec_keeps_the_current_folder_as_python_does(exec_report, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "beside.py").write_text("VALUE = 3.0\n")
    monkeypatch.chdir(elsewhere)
    code, report, _ = exec_report(
        "import os, beside\nprint(os.getcwd())\nopen('written', 'w').close()\n"
        "x = torch.tensor(beside.VALUE)\n"
    )
    assert (code, report["stdout"]) == (0, f"{elsewhere}\n")
    assert report["tensors"]["x"]["values"] == 3.0
    assert (elsewhere / "written").exists()


def test_exec_does_not_run_the_file_again_in_workers(exec_report):
    code, report, captured = exec_report(
        "from torch.utils.data import DataLoader, Dataset\n"
        "print('the file runs')\n"
        "class Squares(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return torch.tensor(i * i)\n"
        "total = sum(batch.sum() for batch in DataLoader(Squares(), 2, num_workers=2))\n"
    )
    assert (code, report["stdout"]) == (0, "the file runs\n"), captured.err
    assert report["tensors"]["total"]["values"] == 14


def test_exec_names_a_file_that_is_not_there(tmp_path, capsys):
    assert run("exec", tmp_path / "no.py", "--json", tmp_path / "o.json") == 2
    assert "no.py: No such file" in capsys.readouterr().err
    (tmp_path / "a.py").touch()
    assert run("exec", tmp_path / "a.py", "--json", tmp_path / "none" / "o.json") == 2
    assert "--json" in capsys.readouterr().err


SPAWNING = """
import torch.multiprocessing

def work(rank):
    print(f"rank {rank}")

if __name__ == "__main__":
    x = torch.ones(1)
    torch.multiprocessing.spawn(work, nprocs=2)
    print("hanging", flush=True)
    while True:
        pass
"""


def test_the_program_shows_what_spawned_ranks_print_and_ends_at_control_c(interruptible, tmp_path):
    out, file = tmp_path / "report.json", tmp_path / "hang.py"
    file.write_text(SPAWNING)
    program = subprocess.Popen(
        [sys.executable, "tensorlab.py", "exec", str(file), "--json", str(out)],
        executable=sys.executable,  # not forked: it is started as by a user, and so are the ranks
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    with program:
        assert program.stdout is not None
        told = [program.stdout.readline() for _ in range(3)]
        assert sorted(told) == ["hanging\n", "rank 0\n", "rank 1\n"]
        os.killpg(program.pid, signal.SIGINT)  # as the terminal does: to the engine as well
        _, errors = program.communicate(timeout=120)
    assert program.returncode == 1
    report = json.loads(out.read_text())
    assert report["error"]["type"] == "KeyboardInterrupt"
    assert sorted(report["stdout"].splitlines(keepends=True)) == sorted(told)
    assert report["tensors"]["x"]["values"] == [1.0]
    assert "KeyboardInterrupt" in errors


def test_code_that_ignores_control_c_is_killed_at_the_second(
    interruptible, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(conversation, "PATIENCE_S", 0.0)
    file, out = tmp_path / "stubborn.py", tmp_path / "report.json"
    file.write_text(
        "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        f"os.kill({os.getpid()}, signal.SIGINT)\nwhile True:\n    pass\n"
    )
    assert run("exec", file, "--json", out) == 1
    report = json.loads(out.read_text())
    assert report["error"]["type"] == "EngineExit"
    assert "did not answer to Stop" in report["error"]["message"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- train and export ----------------------------------------------------------------------------


def test_train_writes_weights_that_plain_torch_loads_and_export_converts_them(tmp_path, capsys):
    weights = tmp_path / "weights.pt"
    assert run("train", MLP, "--epochs", 3, "--seed", 1, "--out", weights, "--json") == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert (report["state"], report["epochs"], report["seed"]) == ("finished", 3, 1)
    assert 0.5 < report["val_accuracy"] <= 1.0
    assert report["weights"]["max_abs_error"] == 0.0
    assert len(captured.err.splitlines()) == 3
    state = torch.load(weights, weights_only=True)
    assert list(state) == report["weights"]["keys"]

    converted = tmp_path / "weights.safetensors"
    assert run("export", MLP, "--weights", weights, "--out", converted) == 0
    assert "loaded back" in capsys.readouterr().out
    loaded = load_file(converted)
    assert all(torch.equal(loaded[key], state[key]) for key in state)

    code = tmp_path / "model.py"
    assert run("export", MLP, "--format", "py", "--out", code, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["verified"], report["max_abs_error"]) == ("py", True, 0.0)
    assert report["batch_sizes"] == [1, 2, 4, 5] and report["seconds"] > 0
    namespace: dict = {"__name__": "model"}
    exec(code.read_text(), namespace)
    namespace["Model"]().load_state_dict(state)

    assert run("export", LENET, "--weights", weights, "--out", converted) == 1
    assert "weights.pt" in capsys.readouterr().err


@pytest.mark.skipif(not forking.POSSIBLE, reason="forks the program")
def test_train_writes_a_script_that_gives_the_same_weights(tmp_path, capsys):
    out, script = tmp_path / "lab.pt", tmp_path / "train.py"
    assert run("train", MLP, "--epochs", 1, "--out", out, "--script", script) == 0
    again = tmp_path / "script.pt"
    run_script(script, "--out", str(again))
    expected, found = (torch.load(path, weights_only=True) for path in (out, again))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((MLP, "--script", "train.txt"), "the name must end in .py"),
        ((MLP, "--script", "none/train.py"), "the folder does not exist"),
        ((MLP, "--script", "train.py", "--resume"), "a script begins at the first step"),
    ],
)
def test_a_script_that_cannot_be_is_refused_before_training(arguments, words, capsys, monkeypatch,
                                                            tmp_path):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run("train", *arguments) == 2
    assert words in capsys.readouterr().err


def test_an_engine_that_dies_while_training_is_told_with_a_way_on_that_there_is(tmp_path):
    program = forking.Program(tmp_path, ["train", str(MLP), "--epochs", "100000"])
    assert program.errors.readline().startswith("epoch 1/100000")
    for process in psutil.Process(program.pid).children(recursive=True):
        process.kill()
    code, _, errors = program.end()
    assert code == 1
    assert "same command and --resume" in errors or "Train again: the run had" in errors
    assert "Restart the engine" not in errors


@pytest.mark.skipif(not forking.POSSIBLE, reason="forks the program")
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_training_keeps_what_was_learnt(tmp_path, ends):
    weights = tmp_path / "weights.pt"
    program = forking.Program(
        tmp_path, ["train", str(MLP), "--epochs", "100000", "--out", str(weights), "--json"]
    )
    assert program.errors.readline().startswith("epoch 1/100000")
    os.killpg(program.pid, ends)
    code, output, errors = program.end()
    assert code == 1
    assert json.loads(output)["state"] == "stopped"
    assert "stopped after" in errors and "Go on with --resume." in errors
    assert torch.load(weights, weights_only=True)


def train_report(capsys, *arguments: object) -> dict:
    assert run("train", *arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_training_begins_from_the_saved_weights_or_from_fresh_ones(tmp_path, capsys):
    project, beside = tmp_path / "net.tlab", tmp_path / "net.safetensors"
    project.write_bytes(MLP.read_bytes())
    first = train_report(capsys, project, "--epochs", 3, "--out", beside)
    assert first["begins"] == {"from": "fresh", "path": None, "step": 0}
    again = train_report(capsys, project, "--epochs", 1)
    assert again["begins"] == {"from": "weights", "path": str(beside), "step": 0}
    assert again["train_loss"] < first["train_loss"]  # it goes on from what three epochs gave
    fresh = train_report(capsys, project, "--epochs", 1, "--fresh")
    assert fresh["begins"]["from"] == "fresh"
    plain = train_report(capsys, MLP, "--epochs", 1)
    assert fresh["train_loss"] == plain["train_loss"] > again["train_loss"]
    assert run("train", project, "--epochs", 1) == 0
    assert "from the weights in net.safetensors" in capsys.readouterr().out


def test_weights_beside_the_project_that_do_not_fit_are_told(tmp_path, capsys):
    project = tmp_path / "net.tlab"
    project.write_bytes(MLP.read_bytes())
    save_file({"other.weight": torch.ones(2)}, tmp_path / "net.safetensors")
    assert run("train", project, "--epochs", 1) == 1
    errors = capsys.readouterr().err
    assert "net.safetensors" in errors and "add --fresh" in errors


def test_training_goes_on_from_the_last_checkpoint(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    assert run("train", MLP, "--epochs", 2, "--resume") == 1
    assert "there is no checkpoint of this model" in capsys.readouterr().err
    first = train_report(capsys, MLP, "--epochs", 2)
    resumed = train_report(capsys, MLP, "--epochs", 3, "--resume")
    assert resumed["begins"] == {
        "from": "checkpoint", "path": first["checkpoint"], "step": first["steps"],
    }  # fmt: skip
    whole = train_report(capsys, MLP, "--epochs", 3)
    assert (resumed["steps"], resumed["train_loss"]) == (whole["steps"], whole["train_loss"])
    assert run("train", MLP, "--resume", "--fresh") == 2


def test_a_model_that_does_not_fit_fails_and_names_the_block(tmp_path, capsys):
    text = MLP.read_text()
    assert '"in_features": 64' in text
    broken = tmp_path / "broken.tlab"
    broken.write_text(text.replace('"in_features": 64', '"in_features": 63', 1))
    assert run("train", broken) == 1
    errors = capsys.readouterr().err
    assert "broken.tlab" in errors
    assert "63" in errors and "64" in errors


@pytest.mark.parametrize("command", ["train", "export"])
def test_a_damaged_project_names_file_and_field(tmp_path, capsys, command):
    damaged = tmp_path / "damaged.tlab"
    damaged.write_text(files.dumps(Project()).replace('"batch_size": 64', '"batch_size": "x"'))
    before = damaged.read_bytes()
    out = ["--out", tmp_path / "w.pt"]
    assert run(command, damaged, *out) == 1
    errors = capsys.readouterr().err
    assert "damaged.tlab" in errors
    assert "training.batch_size" in errors
    assert damaged.read_bytes() == before


def test_the_weights_beside_a_project_are_exported(tmp_path, capsys):
    project = tmp_path / "net.tlab"
    project.write_bytes(MLP.read_bytes())
    assert run("export", project, "--out", tmp_path / "first.safetensors") == 0
    state = load_file(tmp_path / "first.safetensors")
    learnt = {key: tensor + 1 for key, tensor in state.items()}
    save_file(learnt, tmp_path / "net.safetensors")
    assert run("export", project, "--out", tmp_path / "second.pt") == 0
    written = torch.load(tmp_path / "second.pt", weights_only=True)
    assert all(torch.equal(written[key], learnt[key]) for key in learnt)


def test_a_cast_is_exported_as_a_folder_with_the_error_of_its_rounding(tmp_path, capsys):
    folder = tmp_path / "net"
    arguments = ("export", MLP, "--format", "hf", "--out", folder, "--dtype", "bfloat16", "--json")
    assert run(*arguments) == 0
    report = json.loads(capsys.readouterr().out)
    written = load_file(folder / "model.safetensors")
    assert run("export", MLP, "--out", tmp_path / "whole.pt") == 0
    state = torch.load(tmp_path / "whole.pt", weights_only=True)
    apart = [(value.double() - written[key].double()).abs() for key, value in state.items()]
    assert all(value.dtype == torch.bfloat16 for value in written.values())
    assert report["max_abs_error"] == max(value.max().item() for value in apart) > 0
    assert report["verified"] and report["sha256"] is None
    assert set(report["files"]) == {"net/config.json", "net/model.safetensors"}
    assert json.loads((folder / "config.json").read_text()) == {
        "architectures": ["Model"], "torch_dtype": "bfloat16"
    }  # fmt: skip
    (folder / "notes.txt").write_text("mine")
    assert run(*arguments) == 1
    assert "has other files: notes.txt" in capsys.readouterr().err
    assert (folder / "notes.txt").read_text() == "mine"


def test_names_that_are_no_utf_8_are_told(tmp_path, capsys):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff")
    Path(f"{odd}.py").write_text("x = 1")
    for arguments in (
        ("exec", f"{odd}.py"),
        ("exec", __file__, "--json", f"{odd}.json"),
        ("export", MLP, "--out", f"{odd}.pt"),
    ):
        assert run(*arguments) == 2
        assert "the name is not valid UTF-8. Rename it." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"loss": "nn.CrossEntropyLoss"', '"loss": "nn.Nothing"', "training.loss"),
        ('"seed": 0', f'"seed": {2**70}', "training.seed"),
        ('"epochs": 20', f'"epochs": {"9" * 5000}', "training.epochs"),
        ('"name": "Untitled"', r'"name": "\ud800"', "name"),
        ('"cells": []', f'"cells": {"[" * 500}{"]" * 500}', "nested too deeply"),
    ],
)
def test_a_hostile_project_is_told_in_one_line(old, new, field, tmp_path, capsys):
    text = files.dumps(Project())
    assert old in text
    hostile = tmp_path / "hostile.tlab"
    hostile.write_text(text.replace(old, new))
    assert run("train", hostile) == 1
    errors = capsys.readouterr().err
    assert "hostile.tlab" in errors and field in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("train", "no.tlab"), "no.tlab"),
        (("train", MLP, "--epochs", "0"), "--epochs"),
        (("train", MLP, "--epochs", "many"), "--epochs"),
        (("train", MLP, "--seed", "-1"), "--seed"),
        (("train", MLP, "--seed", str(2**32)), "--seed"),
        (("train", MLP, "--seed", "9" * 5000), "--seed"),
        (("train", MLP, "--epochs", "9" * 5000), "--epochs"),
        (("train", MLP, "--epochs", str(10**30)), "--epochs"),
        (("train", MLP, "--out", "weights.txt"), "--out weights.txt"),
        (("train", MLP, "--out", "no/folder/w.pt"), "--out no/folder/w.pt"),
        (("train", MLP, "--device", "cuda:99"), "--device"),
        (
            ("exec", __file__, "--json", "/dev/null"),
            "/dev/null: it is a device, not a regular file.",
        ),
        (("train", MLP, "--out", "nul\0.pt"), "no file can have this name"),
        (("train",), "SUBJECT"),
        (("export", MLP), "--out"),
        (("export", MLP, "--out", "w.h5"), "--out w.h5: the name must end in .pt or"),
        (("export", MLP, "--format", "h5", "--out", "w"), "--format"),
        (("export", MLP, "--opset", "9", "--out", "w.onnx"), "--opset"),
        (("export", MLP, "--dtype", "int8", "--out", "w.pt"), "--dtype"),
        (("export", MLP, "--weights", "no.pt", "--out", "w.pt"), "--weights no.pt"),
        (("tour", "--out", "tour"), "tour: there is no such command any more; `make run`"),
        (("no-such-command",), "no-such-command"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_bad_arguments_exit_with_2_and_are_named(arguments, named, capsys):
    assert run(*arguments) == 2
    assert named in capsys.readouterr().err


# -- help, version, doctor -----------------------------------------------------------------------


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.COMMANDS)])
def test_every_command_has_help(command, capsys):
    assert run(*command, "--help") == 0
    assert "usage: tensorlab" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "given"),
    [("train", "SUBJECT"), ("sweep", "SUBJECT"), ("export", "SUBJECT"), ("inspect", "FILE")],
)
def test_the_help_says_what_a_command_works_on(command, given, capsys):
    run(command, "--help")
    usage = capsys.readouterr().out.partition("\n\n")[0]
    assert f" {given}" in usage.replace(f"[{given}]", given)
    assert " FILE" in usage or given == "SUBJECT"


def test_the_main_help_lists_every_command(capsys):
    run("--help")
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)


def test_version_is_the_projects(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"tensorlab {version()}\n"


def test_doctor_reports_what_is_here(capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert run("doctor", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["torch"]["detail"].startswith(torch.__version__)
    assert checks["devices"]["detail"].startswith("cpu (")
    assert checks["display"]["verdict"] == "note"
    assert "work without one" in checks["display"]["remedy"]
    assert checks["Qt"]["verdict"] == "ok"
    assert checks["fonts"]["verdict"] == "ok"


@pytest.mark.parametrize("files", [[], ["broken.otf"]])
def test_doctor_names_fonts_that_are_not_there_or_broken(files, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_FONTS", tmp_path)
    for name in files:
        (tmp_path / name).write_text("no font")
    (check,) = (check for check in doctor._qt_and_fonts() if check.name == "fonts")
    assert check.verdict == "missing"
    assert str(tmp_path / files[0] if files else tmp_path) in check.detail


def test_doctor_fails_when_something_needed_is_missing(capsys, monkeypatch):
    lack = doctor.Check("fonts", "missing", "none", "install some")
    monkeypatch.setattr(doctor, "examine", lambda: [lack])
    assert run("doctor") == 1
    captured = capsys.readouterr()
    assert "✗ fonts: none\n    install some" in captured.out
    assert "missing: fonts" in captured.err


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("libxcb-icccm.so.4", "libxcb-icccm4"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libEGL.so.1", "libegl1"),
        ("libX11.so.6", "libx11-6"),
        ("libglib-2.0.so.0", "libglib2.0-0"),
        ("libdbus-1.so.3", "libdbus-1-3"),
    ],
)
def test_debian_packages_of_libraries(library, package):
    assert doctor.debian_package(library) == package
    assert f"{library} {package}\n" in (ROOT / ".ci" / "system").read_text()
