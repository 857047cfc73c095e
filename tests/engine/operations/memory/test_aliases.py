"""Who shares memory with whom, as torch and NumPy have it."""

from __future__ import annotations

import pytest
import torch

from engine.console.namespace import Namespace
from engine.operations.memory.aliases import MAX_NODES, read_aliases
from engine.protocol import AliasesCommand, AliasesSnapshot, AliasNode, encode_snapshot
from engine.server.session import Session
from tests.engine.namespaces import run


@pytest.fixture
def namespace() -> Namespace:
    return Namespace()


def told(aliases: AliasesSnapshot) -> dict[str, AliasNode]:
    return {name: node for node in aliases.tensors for name in node.names}


def parent(aliases: AliasesSnapshot, name: str) -> tuple[str, ...] | None:
    """The names of what a tensor was made from."""
    number = told(aliases)[name].parent
    return None if number is None else aliases.tensors[number].names


def test_views_hang_on_what_they_were_made_from_by_the_operation(namespace) -> None:
    run(namespace, "x = torch.arange(12.)\ny = x.view(3, 4)\nz = y.T\nq = y.T[0]")
    aliases = read_aliases(namespace)
    nodes = told(aliases)
    assert {name: node.kind for name, node in nodes.items()} == {
        "x": "base", "y": "view", "z": "view", "q": "view"}  # fmt: skip
    assert [parent(aliases, name) for name in "xyzq"] == [None, ("x",), ("y",), ("y",)]
    assert [nodes[name].op for name in "xyzq"] == ["", "view", "T", "T [0]"]
    for name, node in nodes.items():
        t = namespace.variables[name]
        assert (node.shape, node.strides, node.offset) == (
            tuple(t.shape), t.stride(), t.storage_offset())  # fmt: skip
        base = None if t._base is None else next(
            other for other in nodes if namespace.variables[other] is t._base
        )  # fmt: skip
        assert (None if node.root is None else aliases.tensors[node.root].names[0]) == base
    (storage,) = aliases.storages
    assert storage.size_bytes == 48 and storage.version == 0
    where = nodes["z"].made_by
    assert where is not None and (where.line, where.text) == (3, "z = y.T")


def test_a_base_that_no_variable_names_is_there(namespace) -> None:
    run(namespace, "x = torch.arange(6.).view(2, 3)")
    base, view = read_aliases(namespace).tensors
    assert base.names == () and base.kind == "base" and base.shape == (6,)
    assert view.names == ("x",) and view.parent == 0 and view.root == 0


def test_copies_have_storages_of_their_own(namespace) -> None:
    run(
        namespace,
        "x = torch.ones(2, 3)\nc = x.clone()\nt = x.T.contiguous()\nr = x.T.reshape(6)\n"
        "v = x.reshape(6)\na = np.ones(3)\nk = torch.tensor(a)",
    )
    aliases = read_aliases(namespace)
    nodes = told(aliases)
    assert len({nodes[name].storage for name in "xctrak"}) == 6
    assert nodes["v"].storage == nodes["x"].storage
    assert parent(aliases, "v") == ("x",) and nodes["v"].op == "reshape"


def test_detached_data_parameter_and_two_names(namespace) -> None:
    run(
        namespace,
        "x = torch.ones(3)\nsame = x\nd = x.detach()\nraw = x.data\np = nn.Parameter(x)",
    )
    aliases = read_aliases(namespace)
    nodes = told(aliases)
    assert nodes["x"].names == ("x", "same")
    assert (nodes["d"].kind, nodes["d"].op) == ("detached", "detach")
    assert (nodes["raw"].kind, nodes["raw"].op) == ("shared", "data")
    assert (nodes["p"].kind, nodes["p"].op) == ("shared", "Parameter")
    assert nodes["p"].requires_grad and not nodes["d"].requires_grad
    assert {parent(aliases, name) for name in ("d", "raw", "p")} == {("x", "same")}


def test_of_tensors_made_elsewhere_one_hangs_on_another_that_begins_where_it_does(
    namespace,
) -> None:
    base = torch.arange(6.0)

    def over_it(start: int) -> torch.Tensor:
        return torch.empty(0).set_(base.untyped_storage(), start, (2,), (1,))

    namespace.variables.update(base=base, part=over_it(2), same=over_it(2), late=over_it(4))
    aliases = read_aliases(namespace)
    names = ("base", "part", "same", "late")
    assert [parent(aliases, name) for name in names] == [None, ("same",), ("base",), ("base",)]
    assert {told(aliases)[name].kind for name in names[1:]} == {"shared"}


def test_numpy_shares_both_ways(namespace) -> None:
    run(
        namespace,
        "a = np.arange(4.)\nfrom_a = torch.from_numpy(a)\npart = a[1:]\n"
        "from_part = torch.from_numpy(part)\nx = torch.zeros(3)\nof_x = x.numpy()\n"
        "back = torch.from_numpy(of_x)",
    )
    aliases = read_aliases(namespace)
    nodes = told(aliases)
    assert {nodes[n].storage for n in ("a", "from_a", "part", "from_part")} == {nodes["a"].storage}
    assert {nodes[n].storage for n in ("x", "of_x", "back")} == {nodes["x"].storage}
    assert nodes["a"].storage != nodes["x"].storage
    assert nodes["a"].kind == "numpy" and parent(aliases, "a") is None
    assert (parent(aliases, "from_a"), nodes["from_a"].op) == (("a",), "from_numpy")
    assert (parent(aliases, "part"), nodes["part"].op) == (("a",), "numpy view")
    assert (parent(aliases, "of_x"), nodes["of_x"].op) == (("x",), "numpy")
    assert parent(aliases, "back") == ("of_x",)
    assert nodes["from_a"].strides == (1,) and nodes["a"].strides == (1,)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_an_arrays_strides_count_elements_as_a_tensors_do(namespace, dtype) -> None:
    run(namespace, f"a = np.zeros((2, 4), '{dtype}').T\nt = torch.from_numpy(a)")
    nodes = told(read_aliases(namespace))
    assert nodes["a"].strides == nodes["t"].strides == (1, 4)


def test_memory_that_goes_in_a_circle_of_owners_still_ends(namespace) -> None:
    run(
        namespace,
        "n = np.zeros(4)\nm = torch.from_numpy(n)\nk = m.numpy()\nm2 = torch.from_numpy(k)\n"
        "r = m2.numpy()\ndel n",
    )
    aliases = read_aliases(namespace)
    assert set(told(aliases)) == {"m", "k", "m2", "r"}
    for number, node in enumerate(aliases.tensors):
        assert node.parent is None or node.parent < number


def test_writes_and_versions_are_the_storages(namespace) -> None:
    run(namespace, "x = torch.zeros(4)\ny = x[1:]")
    run(namespace, "y.add_(1)\nx.mul_(2)")
    (storage,) = read_aliases(namespace).storages
    assert storage.version == namespace.variables["x"]._version == 2
    assert storage.written_by is not None
    assert (storage.written_by.op, storage.written_by.cell) == ("mul_", "<cell 2>")


def test_tensors_without_a_storage_are_left_out_and_views_made_elsewhere_are_not(namespace) -> None:
    made_outside = torch.ones(2, 3, requires_grad=True) * 1
    namespace.variables.update(s=torch.eye(2).to_sparse(), base=made_outside, v=made_outside[0])
    aliases = read_aliases(namespace)
    assert set(told(aliases)) == {"base", "v"}
    assert told(aliases)["v"].op == "select" and parent(aliases, "v") == ("base",)


def test_reading_touches_nothing(namespace) -> None:
    run(namespace, "w = torch.ones(3, requires_grad=True)\ny = w * 2\nv = y[1:]")
    before = [(t._version, t.grad_fn) for t in namespace.tensors().values()]
    state = torch.get_rng_state()
    assert read_aliases(namespace) == read_aliases(namespace)
    assert [(t._version, t.grad_fn) for t in namespace.tensors().values()] == before
    assert torch.equal(torch.get_rng_state(), state)


def test_thousands_of_views_fit_in_one_snapshot() -> None:
    sent = []
    session = Session(sent.append)
    session.handle(AliasesCommand())
    assert sent == [AliasesSnapshot(storages=(), tensors=())]
    namespace = session.lab.console.namespace
    assert namespace is not None
    run(namespace, "x = torch.zeros(2000)\nfor i in range(2000): globals()[f'v{i}'] = x[i:]")
    session.handle(AliasesCommand())
    session.close()
    (_, aliases) = sent
    assert isinstance(aliases, AliasesSnapshot)
    encode_snapshot(aliases)
    assert len(aliases.tensors) == MAX_NODES
    assert aliases.left_out == 2001 - MAX_NODES


def test_what_is_inside_variables_is_there_when_it_shares_memory(namespace) -> None:
    run(
        namespace,
        "model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))\nw = model[0].weight\n"
        "state = {'bias': model[1].bias.detach()}\nxs = [torch.ones(2), torch.ones(2)]\n"
        "model(torch.ones(1, 2)).sum().backward()\nview = w.grad[0]\ntied = [model[0].bias]",
    )
    aliases = read_aliases(namespace)
    assert sorted(node.names for node in aliases.tensors) == [
        ("model[1].bias",),
        ("state['bias']",),
        ("tied[0]", "model[0].bias"),
        ("view",),
        ("w", "model[0].weight"),
        ("w.grad",),
    ]
    assert told(aliases)["state['bias']"].kind == "detached"
    assert parent(aliases, "state['bias']") == ("model[1].bias",)
    assert parent(aliases, "view") == ("w.grad",)
    # A write inside a module is known by its storage, as a variable's is.
    run(namespace, "torch.optim.SGD(model.parameters(), lr=1.0).step()")
    writes = {s.storage: s.written_by for s in read_aliases(namespace).storages}
    where = writes[told(aliases)["w"].storage]
    assert where is not None and where.cell == "<cell 2>"


def test_thousands_of_parameters_are_gone_through_and_what_is_cut_is_told(namespace) -> None:
    run(namespace, "xs = [torch.zeros(1) for _ in range(1001)]\nys = list(xs)")
    aliases = read_aliases(namespace)
    assert len(aliases.tensors) == MAX_NODES and aliases.left_out == 1000 - MAX_NODES
    assert "first 1,000 items" in aliases.note
