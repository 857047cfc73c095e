"""Edits: what they make, what they refuse, and that they never change what they are given."""

from __future__ import annotations

import msgspec
import pytest

from engine.project import edits
from engine.project.document import Model, ParamGroup, Project, Wire, replace
from engine.project.edits import EditError
from engine.project.problems import Fix


def chain(*kinds: str) -> tuple[Project, list[str]]:
    """A project with these blocks wired one after the other."""
    from engine.project import catalogue

    project, ids = Project(), []
    for i, kind in enumerate(kinds):
        project, block_id = edits.add_block(project, kind, 200.0 * i, 0.0)
        if ids:
            source, target = project.model.block(ids[-1]), project.model.block(block_id)
            project = edits.connect(
                project,
                Wire(
                    source.id,
                    catalogue.ports(source)[1][0].name,
                    target.id,
                    catalogue.ports(target)[0][0].name,
                ),
            )
        ids.append(block_id)
    return project, ids


def names(project: Project) -> list[str]:
    return [block.name for block in project.model.blocks]


def test_new_blocks_are_numbered_by_their_kind():
    project, _ = chain("Input", "nn.Linear", "nn.ReLU", "nn.Linear")
    assert names(project)[1:] == ["linear1", "relu1", "linear2"]
    assert len({block.id for block in project.model.blocks}) == 4


def test_a_new_linear_starts_with_what_torch_requires():
    project, (block_id,) = chain("nn.Linear")
    assert set(project.model.block(block_id).params) == {"in_features", "out_features"}


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(EditError, match=r"nn\.Nothing"):
        edits.add_block(Project(), "nn.Nothing", 0, 0)


def test_removing_a_block_removes_its_wires():
    project, ids = chain("Input", "nn.Linear", "nn.ReLU")
    left = edits.remove(project, [ids[1]])
    assert [b.id for b in left.model.blocks] == [ids[0], ids[2]]
    assert left.model.wires == ()
    assert len(project.model.wires) == 2


def test_a_copy_has_new_ids_and_names_and_its_inner_wires():
    project, ids = chain("Input", "nn.Linear", "nn.ReLU")
    piece = edits.fragment(project, ids[1:])
    assert len(piece.wires) == 1
    pasted, new_ids = edits.add_fragment(project, piece, 40.0, 16.0)
    assert not set(new_ids) & set(ids)
    assert names(pasted)[3:] == ["linear2", "relu2"]
    source, target = (pasted.model.block(i) for i in new_ids)
    assert Wire(source.id, piece.wires[0].source_port, target.id, piece.wires[0].target_port) in (
        pasted.model.wires
    )
    assert (source.x, source.y) == (240.0, 16.0)


def test_a_name_that_is_taken_is_counted_on_from_its_stem():
    project, ids = chain("nn.Linear")
    for name, pasted_name in (("fc_12", "fc1"), ("fc", "fc1"), ("x1", "x2")):
        named = edits.rename(project, ids[0], name)
        pasted, _ = edits.add_fragment(named, edits.fragment(named, ids))
        assert names(pasted) == [name, pasted_name]
    twice, _ = edits.add_fragment(pasted, edits.fragment(pasted, ids))
    assert names(twice) == ["x1", "x2", "x3"]
    odd = Model((replace(project.model.blocks[0], name="_1"),))
    assert names(edits.add_fragment(Project(), odd)[0]) == ["linear1"]


def test_a_piece_has_the_wires_between_its_blocks_only():
    project, ids = chain("Input", "nn.Linear", "nn.ReLU")
    assert edits.fragment(project, ids[:1]) == Model(project.model.blocks[:1])
    assert edits.fragment(project, ids[1:]).wires == project.model.wires[1:]
    loose = Model(project.model.blocks[1:], project.model.wires)
    pasted, _ = edits.add_fragment(Project(), loose)
    assert len(pasted.model.wires) == 1


def test_removing_a_wire_leaves_the_blocks():
    project, _ = chain("Input", "nn.Linear", "nn.ReLU")
    left = edits.remove(project, wires=project.model.wires[:1])
    assert left.model == Model(project.model.blocks, project.model.wires[1:])


def test_a_pasted_block_keeps_a_free_name():
    project, ids = chain("nn.Linear")
    piece = edits.fragment(edits.rename(project, ids[0], "head"), ids)
    pasted, _ = edits.add_fragment(Project(), piece)
    assert names(pasted) == ["head"]


def test_a_wire_to_an_occupied_port_replaces_the_one_there():
    project, ids = chain("Input", "nn.Linear", "nn.ReLU")
    linear_to_relu = project.model.wires[1]
    from_input = msgspec.structs.replace(
        linear_to_relu, source=ids[0], source_port=project.model.wires[0].source_port
    )
    rewired = edits.connect(project, from_input)
    assert from_input in rewired.model.wires
    assert linear_to_relu not in rewired.model.wires


def test_a_cycle_is_refused_with_a_reason():
    project, ids = chain("nn.Linear", "nn.ReLU")
    wire = project.model.wires[0]
    with pytest.raises(EditError, match="would close a loop"):
        edits.connect(project, Wire(ids[1], wire.source_port, ids[0], wire.target_port))


def test_rerouting_moves_one_end():
    project, _ids = chain("Input", "nn.Linear")
    project, other = edits.add_block(project, "nn.ReLU", 0, 200)
    old = project.model.wires[0]
    new = msgspec.structs.replace(old, target=other)
    rerouted = edits.reroute(project, old, new)
    assert rerouted.model.wires == (new,)


def test_a_wire_that_is_gone_cannot_be_removed():
    project, _ = chain("Input", "nn.Linear")
    wire = project.model.wires[0]
    with pytest.raises(EditError, match=r"^This wire does not exist any more\.$"):
        edits.disconnect(edits.disconnect(project, wire), wire)


def test_a_block_goes_into_a_wire():
    project, ids = chain("Input", "nn.Linear")
    wire = project.model.wires[0]
    grown, relu = edits.insert_on_wire(project, "nn.ReLU", wire, 96, 8)
    assert (grown.model.block(relu).x, grown.model.block(relu).y) == (96.0, 8.0)
    assert wire not in grown.model.wires
    assert {(w.source, w.target) for w in grown.model.wires} == {(ids[0], relu), (relu, ids[1])}


@pytest.mark.parametrize("kind", ["Output", "Input"])
def test_a_block_with_one_side_cannot_go_into_a_wire(kind):
    project, _ = chain("Input", "nn.Linear")
    with pytest.raises(EditError, match=f"^{kind} cannot be inserted into a wire"):
        edits.insert_on_wire(project, kind, project.model.wires[0], 0, 0)
    with pytest.raises(EditError, match="into a wire"):
        edits.insert_on_wire(project, "Output", project.model.wires[0], 0, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "needs a name"),
        ("2fast", "not a valid Python name"),
        ("my layer", "not a valid Python name"),
        ("class", "Python keyword"),
        ("_hidden", "underscore"),
        ("forward", "attribute of nn.Module"),
        ("parameters", "attribute of nn.Module"),
        ("torch", "own code"),
        ("relu1", "named “relu1”"),
    ],
)
def test_names_that_would_break_the_module_are_refused(name, words):
    project, ids = chain("nn.Linear", "nn.ReLU")
    with pytest.raises(EditError, match=words):
        edits.rename(project, ids[0], name)


def test_every_public_attribute_of_a_module_is_refused_as_a_name():
    import torch

    from engine.project.names import name_problem

    taken = {name for name in dir(torch.nn.Module()) if not name.startswith("_")}
    assert taken
    assert [name for name in taken if name_problem(name) is None] == []


def test_a_block_may_keep_its_own_name():
    project, ids = chain("nn.Linear")
    assert edits.rename(project, ids[0], " linear1 ") == project


def test_parameters_are_read_from_text():
    project, ids = chain("nn.Linear")
    changed = edits.set_param(project, ids[0], "out_features", "128")
    assert changed.model.block(ids[0]).params["out_features"] == 128


def test_a_default_is_not_written_down():
    project, ids = chain("nn.Linear")
    off = edits.set_param(project, ids[0], "bias", False)
    assert off.model.block(ids[0]).params["bias"] is False
    assert edits.set_param(off, ids[0], "bias", True) == project


def test_a_value_of_another_type_than_the_default_is_written_down():
    """alpha=1.0 is not alpha=1: torch refuses it for whole numbers."""
    project, ids = chain("torch.add")
    changed = edits.set_param(project, ids[0], "alpha", 1)
    assert type(changed.model.block(ids[0]).params["alpha"]) is float


@pytest.mark.parametrize(("param", "value"), [("out_features", "many"), ("out_features", -3)])
def test_a_wrong_value_is_refused(param, value):
    project, ids = chain("nn.Linear")
    with pytest.raises(EditError, match=param):
        edits.set_param(project, ids[0], param, value)


def test_an_unknown_parameter_is_refused():
    project, ids = chain("nn.Linear")
    with pytest.raises(EditError, match="colour"):
        edits.set_param(project, ids[0], "colour", 1)


def test_a_fix_sets_what_it_names():
    project, ids = chain("nn.Linear")
    fixed = edits.apply_fix(project, Fix("set in_features", ids[0], "in_features", 576))
    assert fixed.model.block(ids[0]).params["in_features"] == 576


def test_fewer_inputs_drop_the_wires_at_vanished_ports():
    project, (cat,) = chain("torch.cat")
    project = edits.set_param(project, cat, "inputs", 3)
    for port in ("tensor0", "tensor1", "tensor2"):
        project, relu = edits.add_block(project, "nn.ReLU", 0, 0)
        project = edits.connect(project, Wire(relu, "output", cat, port))
    fewer = edits.set_param(project, cat, "inputs", 2)
    assert [w.target_port for w in fewer.model.wires] == ["tensor0", "tensor1"]


def test_moving_leaves_the_others_alone():
    project, ids = chain("Input", "nn.Linear")
    moved = edits.move_blocks(project, {ids[0]: (8, 16)})
    assert (moved.model.block(ids[0]).x, moved.model.block(ids[0]).y) == (8.0, 16.0)
    assert moved.model.block(ids[1]) is project.model.block(ids[1])


def test_the_loss_on_the_canvas_takes_precedence():
    project = edits.set_loss(Project(), "nn.MSELoss")
    assert project.training.loss == "nn.MSELoss"
    project, block_id = edits.add_block(project, "nn.CrossEntropyLoss", 0, 0)
    assert edits.loss_of(project) == "nn.CrossEntropyLoss"
    project = edits.set_loss(project, "nn.MSELoss")
    assert project.model.block(block_id).kind == "nn.MSELoss"
    assert edits.loss_of(edits.remove(project, [block_id])) == "nn.MSELoss"


def test_another_loss_keeps_the_parameters_that_both_have():
    project, ids = chain("nn.CrossEntropyLoss")
    project = edits.set_param(project, ids[0], "reduction", "sum")
    project = edits.set_param(project, ids[0], "label_smoothing", 0.5)
    block = edits.set_loss(project, "nn.MSELoss").model.block(ids[0])
    assert (block.kind, block.params) == ("nn.MSELoss", {"reduction": "sum"})
    with pytest.raises(EditError, match=r"no loss “nn\.Nope”. Choose nn\.C.* or nn\.KLDivLoss\."):
        edits.set_loss(project, "nn.Nope")


def test_the_first_of_two_losses_is_the_one_in_force():
    project, _ = chain("nn.MSELoss")
    project, _ = edits.add_block(project, "nn.CrossEntropyLoss", 0, 0)
    assert edits.loss_of(project) == "nn.MSELoss"
    assert edits.loss_block(Model()) is None


def test_a_block_that_is_gone_is_named_so():
    with pytest.raises(EditError, match=r"^This block does not exist any more\.$"):
        edits.set_param(Project(), "b9", "bias", False)
    with pytest.raises(EditError, match="does not exist any more"):
        edits.move_blocks(Project(), {"b9": (0, 0)})


def test_pasting_nothing_changes_nothing():
    assert edits.add_fragment(Project(), Model()) == (Project(), ())


def test_cells_that_ran_are_kept_in_order_under_ids_of_their_own():
    project = edits.record_cell(edits.record_cell(Project(), "x = 1"), "x += 1")
    assert [cell.source for cell in project.cells] == ["x = 1", "x += 1"]
    assert [cell.id for cell in project.cells] == ["c1", "c2"]
    assert len({cell.id for cell in project.cells}) == 2
    assert edits.forget_cells(project) == Project()


def test_the_first_input_is_plain_x():
    project, first = edits.add_block(Project(), "Input", 0, 0)
    project, second = edits.add_block(project, "Input", 0, 0)
    assert [project.model.block(key).name for key in (first, second)] == ["x", "x1"]


def test_options_of_a_module_follow_its_block():
    project, ids = chain("nn.Linear", "nn.ReLU")
    name = project.model.block(ids[0]).name
    groups = (ParamGroup(name, {"lr": 0.5}), ParamGroup("other", {}, True))
    project = edits.set_training(project, replace(project.training, groups=groups))
    renamed = edits.rename(project, ids[0], "head")
    assert [group.module for group in renamed.training.groups] == ["head", "other"]
    removed = edits.remove(renamed, [ids[0]])
    assert removed.training.groups == groups[1:]
    twice = replace(project.training, groups=(groups[0], groups[0]))
    with pytest.raises(EditError, match="has its own options already"):
        edits.set_training(project, twice)
    bad = replace(project.training, groups=(ParamGroup(name, {"speed": 1}),))
    with pytest.raises(EditError, match="no parameter “speed”"):
        edits.set_training(project, bad)
