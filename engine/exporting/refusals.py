"""Why a format cannot hold a model: torch's own reason, in words, and what to try."""

from __future__ import annotations

import linecache
import re
import traceback

from ..system.errors import LabError, sendable
from ..system.user_files import is_user_file

_MAX_CHARS = 240
_FILE = re.compile(r'File "(.+?)", line (\d+)')
_DATA_DEPENDENT = re.compile(r"data-dependent|DataDependent|\.item\(\)|Dynamic control flow")
EXPORT, ONNX_BY_EXPORT = "torch.export", "ONNX, which torch.export begins,"
TRACE, SCRIPT = "TorchScript by tracing", "TorchScript by scripting"
ONNX = "ONNX"
_HINTS = {
    EXPORT: "Export the weights; or TorchScript by scripting, which keeps branches and loops.",
    ONNX_BY_EXPORT: "Export the weights; or TorchScript by scripting, which keeps branches and"
    " loops.",
    TRACE: "Try torch.export (.pt2), or scripting.",
    SCRIPT: "Try tracing, or torch.export (.pt2): they record one run instead"
    " of reading the Python.",
    ONNX: "Try another opset, torch.export (.pt2), or the weights.",
}
_BRANCH = "A branch or a loop of its Python depends on the numbers in a tensor"


def refusal(title: str, error: Exception, name: str = "") -> LabError:
    """The LabError for what a writer, EXPORT or another one, raised; `name` is the class of an
    error that another process told."""
    text = str(error)
    kind = name or type(error).__name__
    place = _place(error) or _place_in(text)
    if _DATA_DEPENDENT.search(f"{kind} {text}"):
        reason = _BRANCH
    else:
        reason = f"{kind}: {_first_words(text)}"
    at = f" ({place})" if place else ""
    return LabError(sendable(f"{title} cannot hold this model. {reason}{at}."), _HINTS[title])


def _first_words(text: str) -> str:
    """The first lines that say something, without torch's advice to its own developers."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was told")
    first = first.split(" Did you forget")[0].rstrip(" .:")
    return first if len(first) <= _MAX_CHARS else f"{first[:_MAX_CHARS]}…"


def _place(error: BaseException) -> str:
    """The innermost line of the user's own code that led to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if is_user_file(frame.filename):
            return _line_words(frame.filename, frame.lineno or 0)
    return ""


def _place_in(text: str) -> str:
    """The last line of the user's code that the message names."""
    for path, line in reversed(_FILE.findall(text)):
        if is_user_file(path):
            return _line_words(path, int(line))
    return ""


def _line_words(path: str, line: int) -> str:
    source = linecache.getline(path, line).strip()
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}, line {line}: {source}" if source else f"{name}, line {line}"
