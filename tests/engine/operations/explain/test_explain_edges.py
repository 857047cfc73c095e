"""Lines at the edge of what is explained: what is refused with a way, and what torch says else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from engine.operations.explain import NoRule, Refusal, Step, check, checking, read, stand_ins
from engine.operations.explain.layout import layout_of
from engine.operations.explain.operators import is_function, is_method
from engine.operations.explain.stand_ins import StandIns, copied_storage
from engine.system.errors import LabError

RUN_IT = "Run the line in the console"


def variables() -> dict[str, object]:
    return {
        "torch": torch,
        "x": torch.arange(12.0).reshape(3, 4),
        "y": torch.ones(4),
        "i": torch.tensor([[0, 2], [1, 1]]),
        "empty": torch.zeros(0, 3),
        "large": torch.zeros(1024, 1024),
        "meta": torch.zeros(2048, 2048, device="meta"),
        "lazy": nn.LazyLinear(2).weight,
        "sparse": torch.eye(3).to_sparse(),
        "results": (torch.ones(1, requires_grad=True) * 2).expand(3, 4),
        "half_seen": torch.zeros(1, dtype=torch.bool).expand(1 << 13, 1 << 13),
        "wide": torch.zeros(1).expand(1 << 13, 1 << 13),
    }


def last(line: str) -> Step:
    return read(line, variables())[-1]


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("wide[half_seen]", "how many are True must be counted first", RUN_IT),
        ("x.to_sparse()", "`to_sparse`, which does not give an ordinary tensor", RUN_IT),
        ("torch.is_tensor(x)", "no rule for calling `torch.is_tensor`", RUN_IT),
        ("x.tolist()", "no rule for `tolist`", RUN_IT),
        ("lazy + 1", "`lazy` has no shape yet: it is not initialised.", "Call its module with a"),
        ("sparse + 1", "`sparse` is not an ordinary strided tensor", RUN_IT),
        ("x.size(0)", "There is no operation on a tensor in this line.", "Write one operation"),
    ],
)
def test_a_line_without_a_rule_says_why_and_what_to_do(line: str, words: str, hint: str) -> None:
    with pytest.raises((NoRule, LabError)) as refused:
        read(line, variables())
    assert words in str(refused.value) and refused.value.hint.startswith(hint)


def test_without_dim_take_along_dim_reads_flat_lists() -> None:
    told = last("torch.take_along_dim(x, i)").outcome
    assert told is not None and told.result.shape == (4,)
    assert told.why == "without the argument dim, both are read as flat lists."
    refusal = last("torch.take_along_dim(x, i + 20)").refusal
    assert refusal is not None and "out of range" in str(refusal)
    assert last("torch.take_along_dim(x, i + 3, 1)").refusal is not None


def test_an_empty_tensor_is_unbound_into_none() -> None:
    told = last("empty.unbind()").outcome
    assert told is not None and (told.kind, told.results, told.many) == ("view", (), True)


def test_operands_that_do_not_broadcast_have_no_words_of_stretching() -> None:
    told = last("torch.kron(x[0, :2], y[:3])").outcome
    assert told is not None and told.result.shape == (6,)
    assert told.reasoning == ("float32 stays float32.",)


@pytest.mark.parametrize(
    "line", ["x.gather(1, i + 9)", "x.index_select(0, i[1] + 9)", "x.take(i + 11)"]
)
def test_an_index_out_of_range_is_refused_with_torchs_error_beside_our_words(line: str) -> None:
    refusal = last(line).refusal
    with pytest.raises((RuntimeError, IndexError)) as raised:
        eval(line, variables())
    assert refusal is not None and "is out of range: dim" in str(refusal)
    assert refusal.raises is type(raised.value) and refusal.said == str(raised.value)
    assert refusal.hint.startswith("Choose from ")


def test_numbers_lists_and_masks_are_read_as_an_index() -> None:
    known = {**variables(), "n": torch.tensor(1), "yes": torch.tensor(True), "r": torch.tensor(1.0)}
    for line in ("x[n]", "x[yes]", "x[[0, 2]]", "x[[]]", "x[n, [0, 1]]"):
        told = read(line, known)[-1].outcome
        given = eval(line, dict(known))
        assert told is not None and told.result.shape == tuple(given.shape), line
    assert read("x[r]", known)[-1].refusal is not None
    with pytest.raises((NoRule, LabError)):
        read("x[[0, 'a'], wide[0, :1]]", known)


def test_a_large_tensor_is_written_to_as_torch_would() -> None:
    told = last("large[0] = 3.5").outcome
    assert told is not None and told.kind == "in place"
    for line in ("large[5000] = 1", "large[0] = y"):
        refusal = last(line).refusal
        given = variables()
        with pytest.raises((RuntimeError, IndexError)):
            exec(line, given)
        assert refusal is not None and str(refusal)


def test_what_has_no_numbers_is_told_by_its_layout() -> None:
    for line, kind in (("meta + 1", "copy"), ("meta.add_(1)", "in place"), ("meta.T", "view")):
        told = last(line).outcome
        assert told is not None and told.kind == kind and told.result.device == "meta"


def test_sizes_that_are_those_of_another_tensor_are_named_in_the_refusal() -> None:
    for line in ("x.T.view_as(x.view(-1))", "x.T.view(12)", "x.T.view(size=(12,))"):
        refusal = last(line).refusal
        assert refusal is not None
        assert str(refusal).startswith("view() cannot copy, and no strides describe shape (12,)")
    assert "(6, 2)" in str(last("x.T.view(-1, 2)").refusal)


def test_several_elements_of_a_result_in_one_cell_are_not_written_as_torch_says() -> None:
    step = last("results.add_(1)")
    with pytest.raises(RuntimeError, match="refers to a single memory location") as raised:
        variables()["results"].add_(1)  # type: ignore[attr-defined]
    assert step.refusal is not None and step.refusal.said == str(raised.value)
    assert [fact.differs for fact in check([step])] == [()]
    assert last("results + 1").outcome is not None


def test_a_stand_in_is_a_leaf_a_view_of_one_or_a_result_as_its_tensor_is() -> None:
    leaf = torch.ones(3, 4, requires_grad=True)
    result = leaf * 2
    with torch.enable_grad():
        for t in (leaf, leaf[1], result, result.T, result[:, :1].expand(3, 4), leaf.detach()):
            made = StandIns(copied_storage).of(t)
            assert made is not t and torch.equal(made, t)
            assert made.data_ptr() != t.data_ptr() and made.stride() == t.stride()
            assert (made.requires_grad, made.is_leaf) == (t.requires_grad, t.is_leaf)
        for t in (leaf, leaf[1]):
            with pytest.raises(RuntimeError) as raised:
                t.add_(1)
            with pytest.raises(RuntimeError, match=str(raised.value)[:30]):
                StandIns(copied_storage).of(t).add_(1)
        assert StandIns(copied_storage).of(result).add_(1).requires_grad


def test_stand_ins_share_memory_as_their_tensors_do() -> None:
    t = torch.arange(12.0).reshape(3, 4)
    made = StandIns(copied_storage)
    row, again, other = made.of(t[1]), made.of(t), made.of(t.clone())
    assert row.untyped_storage().data_ptr() == again.untyped_storage().data_ptr()
    assert row.storage_offset() == 4 and made.of(t) is again
    assert other.untyped_storage().data_ptr() != again.untyped_storage().data_ptr()


def test_a_copy_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    t = torch.ones(4)
    monkeypatch.setattr(stand_ins, "MAX_COPIED_BYTES", 16)
    assert copied_storage(t).nbytes() == 16
    monkeypatch.setattr(stand_ins, "MAX_COPIED_BYTES", 15)
    with pytest.raises(LabError, match="too large to try an operation in place") as refused:
        copied_storage(t)
    assert refused.value.hint == "Run the line in the console."


def test_what_differs_from_torch_is_named() -> None:
    step = last("x + 1")
    outcome = step.outcome
    assert outcome is not None and [fact.differs for fact in check([step])] == [()]
    for changed, differs in (
        (replace(outcome, kind="view"), ("kind",)),
        (replace(outcome, results=outcome.results * 2), ("number of results",)),
        (replace(outcome, results=()), ("number of results",)),
        (replace(outcome, results=(replace(outcome.result, shape=(4, 3)),)), ("shape",)),
        (
            replace(outcome, results=(replace(outcome.result, offset=1, dtype=torch.int8),)),
            ("offset", "dtype"),
        ),
        (replace(outcome, results=(replace(outcome.result, stride=(1, 1)),)), ("stride",)),
        (replace(outcome, results=(replace(outcome.result, device="meta"),)), ("device",)),
    ):
        step.outcome = changed
        assert [fact.differs for fact in check([step])] == [differs]
    step.outcome, step.refusal = None, Refusal("It cannot be.")
    (fact,) = check([step])
    assert fact.differs == ("refusal",) and fact.error is None and fact.kind == "copy"


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("MAX_RESULT_BYTES", "The result has 48 bytes: too large to compute only to compare it."),
        ("MAX_WORK", "It takes 36 steps: too many to compute only to compare."),
    ],
)
def test_what_is_compared_has_a_bound(
    monkeypatch: pytest.MonkeyPatch, bound: str, words: str
) -> None:
    line = "x + 1" if bound == "MAX_RESULT_BYTES" else "x @ x.T"
    steps = read(line, variables())
    most = 48 if bound == "MAX_RESULT_BYTES" else 36
    monkeypatch.setattr(checking, bound, most)
    assert check(steps)[-1].differs == ()
    monkeypatch.setattr(checking, bound, most - 1)
    with pytest.raises(LabError) as refused:
        check(steps)
    assert (str(refused.value), refused.value.hint) == (words, "Run the line in the console.")


def test_the_extent_of_a_layout_is_from_its_first_cell_to_its_last() -> None:
    for t in (torch.zeros(3, 4), torch.zeros(3, 4)[:, ::2], torch.zeros(0, 3), torch.zeros(())):
        ground = torch.arange(max(t.untyped_storage().nbytes() // 4, 1))
        cells = ground.as_strided(t.shape, t.stride(), 0)
        expected = int(cells.max()) - int(cells.min()) + 1 if t.numel() else 0
        assert layout_of(t).extent() == expected


def test_methods_and_functions_of_torch_are_told_from_others() -> None:
    for name in ("add_", "reshape", "gather"):
        assert is_method(name)
    for name in ("tolist", "_version", "__len__", "backward", "nothing"):
        assert not is_method(name)
    assert is_function(torch.add) and is_function(torch.nn.functional.gelu)
    for other in (torch.save, print, [], torch.manual_seed):
        assert not is_function(other)
