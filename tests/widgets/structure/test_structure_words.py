"""What is said of a structure and of differences, at one and at many, at none and at all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.protocol import (
    DifferenceSnapshot,
    ErrorReport,
    ModuleCall,
    OutputDifference,
    StructureTotals,
    WeightDifference,
)
from tests.widgets.structure.small_structure import BARE, MODULES, WHOLE, weight
from widgets.structure import difference_words as differences
from widgets.structure import words

NET, BODY, FROZEN, NORM, HEAD = MODULES


def test_totals_count_one_and_many() -> None:
    one = replace(BARE, totals=StructureTotals(1, 1, 1, 4, 0, 0))
    assert words.totals_words(one) == "1 module · 1 parameter · 4 B"
    many = replace(WHOLE, totals=StructureTotals(2, 1_234, 1_000, 4096, 1, 8), modules=(BODY, NET))
    told = "2 modules · 1,234 parameters, 234 frozen · 4 KiB · 1 element in buffers, 8 B"
    assert words.totals_words(many) == told  # the whole was not called
    called = replace(many, modules=(replace(NET, macs=1_234, kept_bytes=None),))
    assert words.totals_words(called) == f"{told} · 1,234 MACs a batch"
    assert words.totals_words(replace(many, modules=())) == told


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ErrorReport("LabError", "No x."), "No x."),
        (ErrorReport("LabError", "No x.", line=3), "Line 3: No x."),
        (ErrorReport("LabError", "No x.", hint="Try y."), "No x. Try y."),
        (ErrorReport("iOError", "no", hint="Try.", line=0), "IOError in line 0: no Try."),
        (ErrorReport("TypeError", "no"), "TypeError: no"),
    ],
)
def test_an_exception_on_one_line(error, line) -> None:
    assert words.raised_words(error) == line


def test_why_there_are_no_shapes() -> None:
    raised = ErrorReport("LabError", "No x.")
    assert words.batch_words(replace(BARE, unrun=raised)) == (
        "No shapes, MACs and times: the step did not run. No x."
    )
    assert words.batch_words(replace(BARE, unrun=raised, batch="(8,)")) == (
        "No shapes, MACs and times: the step did not run on (8,). No x."
    )


def test_of_many_parameters_that_no_optimizer_holds_four_are_named() -> None:
    fed, frozen = weight("head.bias", 2, fed_by=("opt",)), weight("head.bias", 2, trainable=False)
    unfed = tuple(replace(fed, name=name, fed_by=()) for name in "abcdef")
    optimizers = ("opt", "other")
    for count, named in (
        (1, "a"), (4, "a, b, c, d"), (5, "a, b, c, d and 1 more"), (6, "a, b, c, d and 2 more"),
    ):  # fmt: skip
        whole = replace(WHOLE, weights=(fed, frozen, *unfed[:count]))
        told = f"No optimizer holds {named}: a step of opt, other leaves them as is."
        assert words.unfed_words(whole) == told
    assert words.unfed_words(replace(WHOLE, weights=(fed, frozen), optimizers=optimizers)) == ""
    assert words.unfed_words(replace(WHOLE, weights=unfed, optimizers=())) == ""


def test_one_attribute_holds_and_two_hold() -> None:
    assert words.unregistered_words(WHOLE) == ""
    for names, told in ((("a",), "a holds modules or"), (("a", "b"), "a, b hold modules or")):
        assert words.unregistered_words(replace(WHOLE, unregistered=names)).startswith(told)
    for names, told in (
        (("a",), "a requires a gradient and is not a parameter: not"),
        (("a", "b"), "a, b require a gradient and are not parameters: not"),
    ):
        assert words.unregistered_words(replace(WHOLE, bare=names)).startswith(told)
    both = words.unregistered_words(replace(WHOLE, unregistered=("a",), bare=("b",)))
    assert "nn.ParameterList. b requires" in both


def test_shapes_are_those_of_the_first_call() -> None:
    call = ModuleCall((), ((2,), (3,)))
    assert words.call_words(call) == "nothing → (2,), (3,)"
    assert words.shapes_words(BODY, True) == "not called"
    assert words.shapes_words(BODY, False) == ""
    for other, rest in (
        (call, ""), (replace(call, inputs=((1,),)), " …"), (replace(call, outputs=()), " …"),
        (replace(call, ms=9.0), ""),
    ):  # fmt: skip
        row = replace(NET, calls=(call, call, other))
        assert words.shapes_words(row, True) == "nothing → (2,), (3,)" + rest


def test_the_mode_of_a_module_in_words() -> None:
    parts = replace(NET, parameters=4)
    told = [
        words.state_words(replace(parts, trainable=trainable, training=training))
        for trainable, training in ((4, True), (3, True), (0, False))
    ]
    assert told == ["train", "train, partly frozen", "eval, frozen"]
    assert words.state_words(replace(parts, parameters=0, trainable=0)) == "train"


def test_all_that_is_known_of_a_module() -> None:
    assert words.module_tip(BODY, "Net()", True).splitlines() == [
        "body: Sequential", "train, partly frozen", "22 parameters, 88 B, 10 frozen",
        "The step does not call it.",
    ]  # fmt: skip
    assert words.module_tip(BODY, "Net()", False).splitlines()[2:] == [
        "22 parameters, 88 B, 10 frozen"
    ]
    bare = replace(NET, parameters=0, trainable=0, call_count=1_002, calls=NET.calls * 2)
    assert words.module_tip(bare, "Net()", True).splitlines() == [
        "Net(): Net", "train", "1,002 calls, 224 MACs in all:",
        "(8, 4) → (8, 2), 64 MACs, keeps 128 B, 0.25 ms",
        "(8, 4) → (8, 2), 64 MACs, keeps 128 B, 0.25 ms", "and 1,000 more",
    ]  # fmt: skip
    unknown = ModuleCall((), (), macs=1_234, kept_bytes=None, ms=1.23456)
    one = replace(HEAD, parameters=1, trainable=1, calls=(unknown,))
    assert words.module_tip(one, "", True).splitlines() == [
        "head: Linear", "train", "1 parameter, 40 B", "1 call, 32 MACs in all:",
        "nothing → nothing, 1,234 MACs, keeps unknown bytes, 1.23 ms",
    ]  # fmt: skip


def test_all_that_is_known_of_a_weight() -> None:
    plain = weight("head.bias", 2)
    assert words.weight_tip(plain).splitlines() == [
        "head.bias: parameter", "(2,) · float32 · cpu · 8 B",
    ]  # fmt: skip
    full = replace(
        plain, kind="buffer", mean=0.0, std=1.23456789, gradient=0.0, shared_with=("a", "b"),
        fed_by=("opt", "other"), persistent=False,
    )  # fmt: skip
    assert words.weight_tip(full).splitlines() == [
        "head.bias: buffer", "(2,) · float32 · cpu · 8 B", "mean 0, std 1.2345679",
        "gradient norm 0", "the same tensor as a, b", "held by opt, other", "not in the state_dict",
    ]  # fmt: skip


# -- differences -----------------------------------------------------------------------------------

SAME = DifferenceSnapshot(before="a", after="b")


@pytest.mark.parametrize(
    ("rows", "equal", "told"),
    [
        ((), 0, "There is no weight."),
        ((), 1_234, "All 1,234 parameters and buffers are equal."),
        ((("w", "x", "x", 0.5),), 1, "1 parameter or buffer differs, 1 is equal; w by up to 0.5."),
        ((("w", "x", "", None),), 0, "1 parameter or buffer differs, 0 are equal."),
        (
            (("a", "x", "x", 0.5), ("b", "x", "x", 0.75), ("c", "x, buffer", "x, buffer", 9.0)), 2,
            "3 parameters and buffers differ, 2 are equal; b by up to 0.75.",
        ),
        (
            (("a", "x, buffer", "x, buffer", 0.5), ("b", "x, buffer", "x, buffer", float("nan"))),
            2, "2 parameters and buffers differ, 2 are equal; b by up to nan.",
        ),
    ],
)  # fmt: skip
def test_how_many_weights_differ_and_which_most(rows, equal, told) -> None:
    weights = tuple(WeightDifference(*row) for row in rows)
    given = replace(SAME, weights=weights, weight_count=len(rows), equal_weights=equal)
    assert differences.weights_words(given) == told


def test_the_first_output_that_differs() -> None:
    def told(first: int, *rows: OutputDifference) -> str:
        given = replace(SAME, outputs=rows, output_count=1_234, first=first)
        return differences.outputs_words(given)

    equal = OutputDifference("body", 1, "x", "x", 0.0)
    differs, other = replace(equal, path="", difference=0.5), replace(equal, difference=None)
    begin = "For the same input, "
    assert told(-1) == begin + "no output differs, of 1,234 calls."
    assert told(0, differs) == begin + "the output of the whole differs first, by up to 0.5."
    assert told(2, equal, equal, replace(other, call=2)) == (
        begin + "the output of body (call 2) differs first. 2 outputs before it: equal."
    )
    assert told(1, equal) == begin + "the outputs of the first 1 calls are equal."


def test_equal_are_only_modules_whose_outputs_were_compared() -> None:
    assert differences.is_equal(SAME)
    raised = ErrorReport("LabError", "No x.")
    for fields in ({"module_count": 1}, {"weight_count": 1}, {"unrun": raised}, {"first": 0}):
        assert not differences.is_equal(replace(SAME, **fields))


def test_modules_that_differ_are_counted() -> None:
    assert differences.modules_words(SAME) == "The modules are the same."
    assert differences.modules_words(replace(SAME, module_count=1)) == "1 module differs."
    assert differences.modules_words(replace(SAME, module_count=2_000)) == "2,000 modules differ."
