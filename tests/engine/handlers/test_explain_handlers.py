"""Explanations as the window gets them: predictions, facts, refusals, and nothing changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.handlers import explain as handler
from engine.operations.explain.predict import Predictor
from engine.operations.explain.steps import Step
from engine.protocol import (
    MAX_SNAPSHOT_BYTES,
    ErrorSnapshot,
    ExplainCommand,
    ExplanationSnapshot,
    RunCellCommand,
    Snapshot,
    encode_snapshot,
)
from engine.server.session import Session

CELL = """
x = torch.arange(12.0).view(3, 4)
w = torch.ones(3, requires_grad=True)
big = torch.zeros(1).expand(1 << 20, 1 << 20)
long = torch.arange(20_000.0)
"""


class Console:
    def __init__(self) -> None:
        self.received: list[Snapshot] = []
        self.session = Session(self.received.append)
        self.session.handle(RunCellCommand(source=CELL))

    @property
    def variables(self) -> dict[str, object]:
        namespace = self.session.lab.console.namespace
        assert namespace is not None
        return namespace.variables

    def explain(self, source: str, run: bool = False) -> ExplanationSnapshot:
        self.received.clear()
        self.session.handle(ExplainCommand(source=source, run=run))
        (answer,) = self.received
        assert isinstance(answer, ExplanationSnapshot), answer
        assert len(encode_snapshot(answer)) < MAX_SNAPSHOT_BYTES
        return answer


@pytest.fixture(scope="module")
def console() -> Console:
    return Console()


def test_a_refusal_that_was_left_open_is_told_beside_what_was_said(console: Console) -> None:
    far = torch.zeros((1 << 20) + 1, dtype=torch.int64)
    far[7] = 9
    console.variables["far"] = far
    (fact,) = console.explain("x[far]", run=True).steps[-1].facts
    assert fact.predicted.startswith("runs, unless an index lies outside dim 0")
    assert fact.actual.startswith("is refused: IndexError") and fact.agrees
    del console.variables["far"]


def test_each_operation_is_told_before_it_runs(console: Console) -> None:
    answer = console.explain("y = x.T[1:].reshape(-1)")
    assert [step.operation for step in answer.steps] == ["T", "__getitem__", "reshape"]
    assert [step.kind for step in answer.steps] == ["view", "view", "copy"]
    turned, part, flat = answer.steps
    x = torch.arange(12.0).view(3, 4)
    assert (turned.results[0].shape, turned.results[0].stride) == (x.T.shape, x.T.stride())
    assert part.results[0].storage_offset == x.T[1:].storage_offset() == 1
    assert part.operands == ("x.T",) and part.shares_with == ("x", "x.T")
    assert flat.results[0].shape == (9,) and flat.shares_with == ()
    assert flat.results[0].dtype == "float32" and flat.results[0].device == "cpu"
    assert flat.reasoning and flat.why
    assert not answer.ran and all(step.facts == () for step in answer.steps)
    assert "y" not in console.variables


def test_running_holds_predictions_against_facts(console: Console) -> None:
    answer = console.explain("x.T[1:].reshape(-1)", run=True)
    assert answer.ran
    for step in answer.steps:
        assert all(fact.agrees and fact.predicted == fact.actual for fact in step.facts)
    facts = {fact.name: fact.actual for fact in answer.steps[1].facts}
    layout = ["shape", "stride", "offset", "dtype", "device"]
    assert list(facts) == ["kind", *layout, "shares with"]
    (parts,) = console.explain("x.split(1)", run=True).steps
    assert [fact.name for fact in parts.facts] == ["kind", "results", *layout, "shares with"]
    assert parts.facts[1].actual == "3"
    assert facts["shape"] == "(3, 3)" and facts["stride"] == "(1, 4)" and facts["offset"] == "1"
    assert facts["kind"] == "view" and facts["shares with"] == "x, x.T"


def test_a_wrong_prediction_is_shown(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Predictor.predict

    def wrong_predict(self: Predictor, step: Step) -> object:
        ran = right(self, step)
        assert step.outcome is not None
        layout = replace(step.outcome.result, shape=(2, 6), stride=(6, 1), offset=3)
        step.outcome = replace(step.outcome, results=(layout,))
        return ran

    monkeypatch.setattr(Predictor, "predict", wrong_predict)
    (step,) = console.explain("x.detach()", run=True).steps
    wrong = {fact.name: (fact.predicted, fact.actual) for fact in step.facts if not fact.agrees}
    assert wrong == {
        "shape": ("(2, 6)", "(3, 4)"),
        "stride": ("(6, 1)", "(4, 1)"),
        "offset": ("3", "0"),
    }


@pytest.mark.parametrize(
    "source", ["x.T.view(-1)", "x + torch.ones(3)", "w += 1", "torch.cat([x, x.T])", "x[5]"]
)
def test_a_refusal_is_told_with_what_helps(console: Console, source: str) -> None:
    (*_, step) = console.explain(source).steps
    assert step.kind == "refused" and step.refusal and step.hint and step.error == ""
    (*_, step) = console.explain(source, run=True).steps
    assert [fact.agrees for fact in step.facts] == [True]
    with pytest.raises((RuntimeError, IndexError)) as raised:
        exec(source, dict(console.variables))
    assert step.error == f"{raised.type.__name__}: {raised.value}"


@pytest.mark.parametrize("source", ["x[0] += 1", "x.t_()", "x.zero_()", "x += x", "x * 2"])
def test_the_console_stays_as_it_was(console: Console, source: str) -> None:
    x = console.variables["x"]
    assert isinstance(x, torch.Tensor)
    before, version, random = x.clone(), x._version, torch.get_rng_state()
    answer = console.explain(source, run=True)
    assert answer.ran and all(fact.agrees for step in answer.steps for fact in step.facts)
    assert console.variables["x"] is x and x.equal(before) and x._version == version
    assert x.shape == (3, 4) and torch.get_rng_state().equal(random)


def test_the_users_grad_mode_decides(console: Console) -> None:
    assert console.explain("w.add_(1)").steps[0].kind == "refused"
    console.session.handle(RunCellCommand(source="_ = torch.set_grad_enabled(False)"))
    try:
        (step,) = console.explain("w.add_(1)", run=True).steps
        assert step.kind == "in place" and all(fact.agrees for fact in step.facts)
    finally:
        console.session.handle(RunCellCommand(source="_ = torch.set_grad_enabled(True)"))


@pytest.mark.parametrize("source", ["", "x.", "nothing + 1", "x", "x; x", "x.vieww(3)"])
def test_a_line_that_cannot_be_read_is_a_problem(console: Console, source: str) -> None:
    answer = console.explain(source)
    assert answer.problem and answer.hint and not answer.steps and not answer.note


@pytest.mark.parametrize("source", ["x.tolist()", "torch.save(x, 'f')"])
def test_what_has_no_rule_is_a_note(console: Console, source: str) -> None:
    answer = console.explain(source)
    assert answer.note and not answer.problem and not answer.steps


def test_large_tensors_are_predicted_and_not_computed(console: Console) -> None:
    answer = console.explain("big + 1", run=True)
    assert answer.steps[0].results[0].shape == (1 << 20, 1 << 20)
    assert "too large" in answer.problem and answer.hint and not answer.ran


def test_many_results_are_counted(console: Console) -> None:
    (step,) = console.explain("long.unbind()", run=True).steps
    assert step.result_count == 20_000 and step.many and 0 < len(step.results) < 100
    assert all(fact.agrees for fact in step.facts)
    assert dict((f.name, f.actual) for f in step.facts)["results"] == "20000"


def test_no_error_escapes(console: Console) -> None:
    console.received.clear()
    for source in ["x[" * 200, "(" * 500, "x" * 300_000, "\0", "x +\n", "🦊", "x.view(10**400)"]:
        console.session.handle(ExplainCommand(source=source, run=True))
    assert not [s for s in console.received if isinstance(s, ErrorSnapshot)]
    assert all(len(encode_snapshot(s)) < MAX_SNAPSHOT_BYTES for s in console.received[:2])


def test_of_many_operations_the_first_are_told(console: Console, monkeypatch) -> None:
    monkeypatch.setattr(handler, "MAX_STEPS", 3)
    assert len(console.explain("x.T.T.T").steps) == 3 and not console.explain("x.T.T.T").problem
    answer = console.explain("x.T.T.T.T")
    assert [step.code for step in answer.steps] == ["x.T", "x.T.T", "x.T.T.T"]
    assert answer.problem == "Only the first 3 of 4 operations are shown."
    wrong = console.explain("(big + 1).T.T.T", run=True)
    assert len(wrong.steps) == 3 and "too large" in wrong.problem  # it comes before that


def test_the_rule_is_told_of_a_refusal_too(console: Console, monkeypatch) -> None:
    (*_, step) = console.explain("x.T.view(2, -1)").steps
    assert step.reasoning[:2] == (
        "Dim 0: 4 elements with stride 1.",
        "Dim 1: 3 elements with stride 4.",
    )
    monkeypatch.setattr(handler, "MAX_LAYOUTS", 1)
    assert console.explain("x.T.view(2, -1)").steps[-1].reasoning == step.reasoning[:1]
    assert console.explain("x[1:, ::2]").steps[-1].reasoning == ("1:: offset + 1·4, stride 4·1",)


def test_of_many_tensors_the_first_are_told(console: Console, monkeypatch) -> None:
    def told() -> tuple:
        (step,) = console.explain("x.split(1)", run=True).steps
        facts = {fact.name: (fact.predicted, fact.actual) for fact in step.facts}
        return len(step.results), len(step.actual), step.result_count, facts["offset"]

    assert told() == (3, 3, 3, ("0; 4; 8", "0; 4; 8"))
    monkeypatch.setattr(handler, "MAX_LAYOUTS", 3)
    assert told() == (3, 3, 3, ("0; 4; 8", "0; 4; 8"))
    monkeypatch.setattr(handler, "MAX_LAYOUTS", 2)
    assert told() == (2, 2, 3, ("0; 4; ...", "0; 4; ..."))
    (step,) = console.explain("torch.cat([x, x[:1], x[1:]])").steps[-1:]
    assert step.operands == ("x", "x[:1]") and len(step.layouts) == 2
    assert step.layouts[0].shape == (3, 4) and step.layouts[0].dtype == "float32"


def test_long_texts_are_cut(console: Console, monkeypatch) -> None:
    monkeypatch.setattr(handler, "MAX_TEXT", 12)
    (step,) = console.explain("x.reshape(-1)").steps
    assert step.code == "x.reshape(-…" and len(step.code) == 12
    assert console.explain("x.flatten()").steps[0].code == "x.flatten()"  # 11 letters
    assert console.explain("x.squeeze(0)").steps[0].code == "x.squeeze(0)"


def test_the_operands_of_a_refusal_are_drawn_before_and_after_it_runs(console: Console) -> None:
    (step,) = console.explain("x @ x").steps
    assert step.failed is not None and step.actual == () and step.shares_with == ()
    assert step.refusal.startswith("RuntimeError: ")
    (ran,) = console.explain("x @ x", run=True).steps
    assert ran.failed is not None and ran.error.startswith("RuntimeError: ")
    (fact,) = ran.facts
    assert (fact.name, fact.predicted) == ("torch", "is refused")
    assert fact.actual == f"is refused: {ran.error}"
    for run in (False, True):
        (step,) = console.explain("x.T", run=run).steps
        assert step.failed is None and step.refusal == step.hint == ""
