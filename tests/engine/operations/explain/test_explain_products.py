"""Random products, in every order of memory, with and without a graph: prediction against torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.operations.explain import NoRule, check, read
from tests.examples import examples, seconds

DTYPES = [torch.float32, torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64]

pytestmark = pytest.mark.timeout(seconds(50))


def tensor(data: st.DataObject, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Of any order of dimensions, perhaps stretched, conjugated or a leaf that requires grad."""
    order = data.draw(st.permutations(range(len(shape))))
    t = torch.ones([shape[d] for d in order], dtype=dtype)
    t = t.permute([order.index(d) for d in range(len(shape))])
    form = data.draw(st.sampled_from(["plain", "plain", "leaf", "stretched", "conj"]))
    if form == "stretched" and shape:
        return t[:1].expand(shape) if shape[0] else t
    if form == "leaf" and dtype.is_floating_point:
        return t.requires_grad_()
    return t.conj() if form == "conj" else t


def drawn(data: st.DataObject) -> tuple[str, dict[str, torch.Tensor]]:
    size = st.sampled_from([1, 2, 2, 3, 0])
    rows, inner, columns, batch = (data.draw(size) for _ in range(4))
    other = data.draw(st.sampled_from([inner] * 8 + [4]))
    lines = {
        "a @ b": [
            [*data.draw(st.sampled_from([[], [], [batch], [1], [2, batch]])), rows, inner],
            [*data.draw(st.sampled_from([[], [], [batch], [1], [1, batch]])), other, columns],
        ],
        "a.matmul(b)": [[batch, rows, inner], [other]],
        "b @ a": [[batch, other, columns], [inner]],
        "a.mm(b)": [[rows, inner], [other, columns]],
        "a.mv(b)": [[rows, inner], [other]],
        "a.dot(b)": [[inner], [other]],
        "a.outer(b)": [[rows], [columns]],
        "a.bmm(b)": [[batch, rows, inner], [batch, other, columns]],
        "torch.nn.functional.linear(a, b, c)": [[batch, rows, inner], [columns, other], [columns]],
        "torch.addmm(a, b, c)": [[columns], [rows, inner], [other, columns]],
        "torch.einsum('bij,jk->bki', a, b)": [[batch, rows, inner], [other, columns]],
        "torch.einsum('ij,j->i', a, b)": [[rows, inner], [other]],
    }
    line = data.draw(st.sampled_from(list(lines)))
    dtype = data.draw(st.sampled_from(DTYPES))
    made = {}
    for name, shape in zip("abc", lines[line], strict=False):
        own = data.draw(st.sampled_from([dtype] * 9 + [torch.float64]))
        made[name] = tensor(data, shape, own)
    return line, made


@settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_prediction_is_fact_for_random_products(data: st.DataObject) -> None:
    line, operands = drawn(data)
    # Whether torch takes empty operands of different dtypes depends on strides and on grad mode.
    elements = all(t.numel() for t in operands.values())
    assume(elements or len({t.dtype for t in operands.values()}) == 1)
    variables = {"torch": torch} | operands
    try:
        steps = read(line, variables)
    except NoRule:
        assert not elements or "einsum" in line
        assume(False)
        return
    assert [fact.differs for fact in check(steps)] == [()]
    said = steps[-1].outcome
    try:
        given = eval(line, dict(variables))
    except RuntimeError:
        assert said is None
        return
    assert said is not None, f"{line}: {steps[-1].refusal}"
    assert said.kind == "copy"
    told = (said.result.shape, said.result.stride, said.result.dtype)
    assert told == (tuple(given.shape), given.stride(), given.dtype)
