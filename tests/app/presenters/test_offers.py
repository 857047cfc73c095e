"""What the console and a Python file offer as subjects: which, in what order, called or by name."""

from __future__ import annotations

from app.presenters.offers import names_of_canvas, offers_of_console, offers_of_file
from engine.project.subject import ConsoleSubject, FileSubject
from engine.protocol import FileObject, Variable
from widgets.subject.chooser import Offer

PATH = "/work/net.py"


def test_modules_of_the_console_come_with_their_other_names_and_methods() -> None:
    net = Variable("net", "module", "Net", size_bytes=8, methods=("encode", "decode"))
    variables = (
        Variable("x", "tensor", "Tensor", size_bytes=8),
        net,
        Variable("again", "module", "Net", size_bytes=8, same_as="net", methods=("encode",)),
        Variable("loss", "module", "MSELoss", size_bytes=0),
    )
    first, encode, decode, loss = offers_of_console(variables)
    assert first == Offer(
        ConsoleSubject("net"), "Net, a variable of the console.", also=(ConsoleSubject("again"),)
    )
    assert [each.subject for each in (encode, decode)] == [
        ConsoleSubject("net.encode"), ConsoleSubject("net.decode"),
    ]  # fmt: skip
    assert encode.is_other and decode.is_other
    assert encode.detail == "a method of net, of tensors."
    assert (loss.subject, loss.is_other, loss.also) == (ConsoleSubject("loss"), True, ())


def test_functions_of_the_console_are_offered_but_train_s_own_step() -> None:
    names = ("f", "step", "g")
    found = offers_of_console([Variable(name, "function", "function") for name in names])
    assert [each.subject for each in found] == [ConsoleSubject("f"), ConsoleSubject("g")]
    assert not any(each.is_other or each.also for each in found)


def test_the_canvas_s_model_by_another_name_is_no_offer_of_its_own() -> None:
    variables = (
        Variable("net", "module", "GraphModule", same_as="canvas.model"),
        Variable("again", "module", "Net", same_as="model"),
        Variable("model", "module", "Net"),
    )
    assert names_of_canvas(variables) == (ConsoleSubject("net"),)
    assert [each.subject for each in offers_of_console(variables)] == [ConsoleSubject("model")]


def of_file(*objects: FileObject) -> list[tuple[str, tuple[str, ...], bool]]:
    found = offers_of_file(PATH, objects)
    assert all(
        isinstance(each.subject, FileSubject) and each.subject.path == PATH for each in found
    )
    return [(each.subject.expression, each.required, each.is_other) for each in found]


def test_a_file_offers_modules_by_name_and_classes_called() -> None:
    assert of_file(
        FileObject("net", "module", "Net"),
        FileObject("loss", "module", "MSELoss", is_bare=True),
        FileObject("Net", "class", "Net"),
        FileObject("Deep", "class", "Deep", ("width",)),
        FileObject("data", "data", "Tensor"),
    ) == [
        ("net", (), False), ("loss", (), True), ("Net()", (), False), ("Deep", ("width",), False),
    ]  # fmt: skip


def test_a_file_offers_functions_that_need_no_argument_or_take_tensors() -> None:
    assert of_file(
        FileObject("make", "function", "function"),
        FileObject("main", "function", "function"),
        FileObject("needs", "function", "function", ("n",)),
        FileObject("f", "function", "function", ("x",), takes_tensors=True),
        FileObject("main", "function", "function", ("x",), takes_tensors=True),
        FileObject("step", "function", "function", ("x",), takes_tensors=True),
        FileObject("step", "function", "function"),
    ) == [("make()", (), False), ("f", (), True), ("main", (), True), ("step()", (), False)]


def test_methods_of_a_file_follow_what_has_them() -> None:
    found = of_file(
        FileObject("net", "module", "Net", methods=("encode",)),
        FileObject("data", "data", "Set", methods=("read",)),
    )
    assert found == [("net", (), False), ("net.encode", (), True), ("data.read", (), True)]
    (_, encode) = offers_of_file(PATH, [FileObject("net", "module", "N", methods=("encode",))])
    assert encode.detail == "a method of net, of tensors."
