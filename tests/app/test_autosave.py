"""Autosave: unsaved work is saved, offered after a crash, and not taken from another window."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

from app.autosave import Autosave, find_recoveries
from app.store import Store
from engine.project import edits
from engine.project.document import Project


def work() -> Project:
    return edits.add_block(Project(name="Work"), "nn.Linear", 0, 0)[0]


def autosave(store: Store, folder: Path, modified: bool = True) -> Autosave:
    return Autosave(store, lambda: modified, lambda: "/tmp/work.tlab", folder)


def test_a_change_is_written_after_a_while(tmp_path, qtbot):
    store = Store()
    saver = autosave(store, tmp_path)
    saver._timer.setInterval(0)
    with qtbot.waitSignal(saver._timer.timeout):
        store.set_project(work())
    assert saver.file.exists()
    saver.close()


def test_a_clean_end_leaves_nothing(tmp_path, qtbot):
    saver = autosave(Store(work()), tmp_path)
    saver.write()
    saver.close()
    assert list(tmp_path.iterdir()) == []
    assert find_recoveries(tmp_path) == []


def test_saved_work_is_not_put_aside(tmp_path, qtbot):
    saver = autosave(Store(work()), tmp_path, modified=False)
    saver.write()
    assert not saver.file.exists()
    saver.close()


def test_the_work_of_a_window_that_lives_is_left_alone(tmp_path, qtbot):
    saver = autosave(Store(work()), tmp_path)
    saver.write()
    assert find_recoveries(tmp_path) == []
    saver.close()


def test_the_work_of_a_killed_window_is_found_once(tmp_path, qtbot):
    script = f"""
        import os, signal
        from pathlib import Path
        from PySide6.QtCore import QCoreApplication
        from app.autosave import Autosave
        from app.store import Store
        from engine.project import edits
        from engine.project.document import Project
        application = QCoreApplication([])
        project, _ = edits.add_block(Project(name="Work"), "nn.Linear", 0, 0)
        folder = Path({str(tmp_path)!r})
        saver = Autosave(Store(project), lambda: True, lambda: "/tmp/w.tlab", folder)
        saver.write()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    (found,) = find_recoveries(tmp_path)
    assert found.project == work()
    assert found.original == "/tmp/w.tlab"
    assert find_recoveries(tmp_path) == []  # another window already offers it
    found.lock.unlock()
    (found,) = find_recoveries(tmp_path)
    found.discard()
    assert list(tmp_path.glob("*.recovery")) == []


def test_the_lock_of_a_window_killed_with_nothing_unsaved_goes(tmp_path, qtbot):
    alive = autosave(Store(work()), tmp_path)
    alive.write()
    left = tmp_path / "0123.lock"
    program = (
        "import os, sys\nfrom PySide6.QtCore import QLockFile\n"
        "lock = QLockFile(sys.argv[1])\nlock.tryLock(0)\nos._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(left)], check=False)
    assert left.exists()
    assert find_recoveries(tmp_path) == []
    assert {file.stem for file in tmp_path.iterdir()} == {alive.file.stem}
    alive.close()


def test_a_damaged_recovery_file_is_no_obstacle(tmp_path, qtbot):
    (tmp_path / "x.recovery").write_text("{", encoding="utf-8")
    assert find_recoveries(tmp_path) == []
    assert (tmp_path / "x.recovery").exists()


def test_a_folder_that_cannot_be_written_is_told_once_and_tried_again(tmp_path, qtbot):
    (tmp_path / "data").write_text("a file where the folder should be", encoding="utf-8")
    saver = autosave(Store(work()), tmp_path / "data" / "recovery")
    told: list[str] = []
    saver.failed.connect(told.append)
    saver.write()
    assert told == [
        f"Unsaved work cannot be saved for recovery in {tmp_path}/data/recovery: Not a directory."
    ]
    assert saver._timer.isActive()
    saver.write()
    assert len(told) == 1
    (tmp_path / "data").unlink()
    saver._timer.setInterval(0)
    with qtbot.waitSignal(saver._timer.timeout):
        saver._timer.start()
    assert saver.file.exists() and not saver._timer.isActive()
    assert find_recoveries(tmp_path / "data" / "recovery") == []  # it holds its lock now
    (tmp_path / "data" / "recovery").rename(tmp_path / "moved")
    (tmp_path / "data" / "recovery").write_text("", encoding="utf-8")
    saver.write()
    assert len(told) == 2  # another failure is told again
    saver.close()


def test_what_is_put_aside_is_for_this_user_only(tmp_path, qtbot):
    folder = tmp_path / "recovery"
    folder.mkdir()
    os.chmod(folder, 0o755)  # as an older version made it
    saver = autosave(Store(work()), folder)
    saver.write()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(saver.file.stat().st_mode) == 0o600
    saver.close()


def test_a_project_whose_name_is_no_utf_8_is_found_again(tmp_path, qtbot):
    original = os.fsdecode(b"/tmp/100%/net\xff.tlab")
    saver = Autosave(Store(work()), lambda: True, lambda: original, tmp_path)
    saver.write()
    saver._lock.unlock()
    (found,) = find_recoveries(tmp_path)
    assert found.original == original
    found.discard()


def test_what_was_left_is_found_newest_first(tmp_path, qtbot):
    savers = [autosave(Store(Project(name=name)), tmp_path) for name in ("old", "new", "middle")]
    for saver, second in zip(savers, (100, 300, 200), strict=True):
        saver.write()
        os.utime(saver.file, (second, second))
        saver._lock.unlock()
    found = find_recoveries(tmp_path)
    assert [each.project.name for each in found] == ["new", "middle", "old"]
    assert [each.saved_at.timestamp() for each in found] == [300, 200, 100]
    for each in found:
        each.discard()
        each.discard()  # it is gone already
    assert list(tmp_path.glob("*.recovery")) == []


def test_work_that_was_saved_since_is_put_aside_no_more(tmp_path, qtbot):
    modified = [True]
    saver = Autosave(Store(work()), lambda: modified[0], str, tmp_path)
    saver.write()
    assert saver.file.exists()
    modified[0] = False
    saver.write()
    assert not saver.file.exists()
    saver.close()
    assert list(tmp_path.iterdir()) == []


def test_many_changes_are_written_together(tmp_path, qtbot):
    store = Store()
    saver = autosave(store, tmp_path)
    assert saver._timer.isSingleShot() and not saver._timer.isActive()
    store.set_project(work())
    saver._timer.setInterval(1_000_000)
    left = saver._timer.remainingTime()
    store.set_project(Project(name="Other"))
    assert saver._timer.isActive() and saver._timer.remainingTime() <= left
    saver.write()
    assert not saver._timer.isActive()
    saver.close()


def test_a_damaged_file_is_let_go_for_other_windows(tmp_path, qtbot):
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"project": 1, "original": ""}')):
        (tmp_path / f"{name}.recovery").write_text(text, encoding="utf-8")
    for _ in range(2):
        assert find_recoveries(tmp_path) == []
        assert not list(tmp_path.glob("*.lock"))
