"""Recording switched off in the console, and on again where it is missed."""

from __future__ import annotations

from engine.protocol import RecordCommand
from widgets.autograd.autograd_view import AutogradView


def test_the_switch_is_shown_where_recordings_are_missed(program) -> None:
    program.window.show_workspace("tensors")
    page = program.workspaces.tensors.page
    button, state = page.console.record_button, page.console.findChild(object, "console_state")
    assert button.isChecked() and page.storage.recording.isHidden()
    button.click()
    program.bench.link.drain()
    namespace = program.bench.link._session.lab.console.namespace
    assert not namespace.records and state.text() == "recording is off"
    assert not page.storage.recording.isHidden()
    program.workspaces.run_python("w = torch.ones(2, requires_grad=True); loss = (w * 2).sum()")
    program.bench.link.drain()
    assert namespace.recordings.kept == []
    # A workspace that is made later knows it too.
    program.window.show_workspace("autograd")
    note = program.window.findChild(AutogradView).recording
    assert not note.isHidden()
    note.button.click()
    program.bench.link.drain()
    assert namespace.records and button.isChecked() and state.text() == ""
    assert note.isHidden() and page.storage.recording.isHidden()


def test_a_new_engine_is_told(program) -> None:
    sent = []
    send = program.bench.link.send
    program.bench.link.send = lambda command: sent.append(command) or send(command)
    program.window.show_workspace("tensors")
    program.workspaces.tensors.page.console.record_button.click()
    program.bench.link.drain()
    program.bench.link.restart()
    program.bench.link.drain()
    assert [c.on for c in sent if isinstance(c, RecordCommand)] == [False, False]
    assert not program.bench.link._session.lab.console.namespace.records
