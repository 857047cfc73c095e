"""PySide's long patterns are compiled at their first use, and find what they found."""

from __future__ import annotations

import re

from app.support_bytecode import LatePattern, late_patterns

FINDS = "import re; x = re.compile('a(b+) # b', flags=re.VERBOSE)"


def run(name: str) -> object:
    names: dict[str, object] = {}
    with late_patterns():
        exec(compile(FINDS, name, "exec"), names)
    return names["x"]


def test_a_pattern_of_pysides_is_compiled_when_it_is_used():
    x = run("shibokensupport/signature/x.py")
    assert isinstance(x, LatePattern)
    sub = x.sub
    assert not hasattr(x, "__isabstractmethod__") and "_compiled" not in vars(x)
    assert sub(r"\1", "cabbc") == "cbbc" and x.split("1ab2", maxsplit=1) == ["1", "b", "2"]
    assert (x.pattern, x.groups) == ("a(b+) # b", 1)


def test_others_are_compiled_at_once():
    plain = re.compile
    assert isinstance(run("elsewhere.py"), re.Pattern)
    assert re.compile is plain
