"""Seeded damage to JSON-like values and to bytes."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

CANARY = "canary_of_the_fuzz"
"""A folder of this name appears in the current folder if anything of an input was executed."""
CODE = f"__import__('os').mkdir({CANARY!r})"
TEXTS = (
    "", " ", "x", "nn.Linear", "class", "_x", "self", "ﬁ", "\0", "\n", "\ud800", "a\udfffb",
    "\U0001d501", "../../etc", "nan", "inf", "1e400", "-1", "9" * 5000, "x" * 5000,
    "x\n" + CODE, CODE, f"x'); {CODE} #", f'"""\n{CODE}', "$float", "%s%n", "{0}", "<b>&amp;",
    "\u202eabc",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 3, 16, 17, 100, 101, 255, 1000, 10**5, 10**9, 2**31 - 1, 2**31, 2**32, 2**53,
    2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**400, 0.0, -0.0, 0.5, -0.5, 1e-320,
    1e7, 1e12, 1e18, 1e300, -1e300, math.nan, math.inf, -math.inf,
)  # fmt: skip


def nasty(random_: random.Random) -> Any:
    """A value that no field expects."""
    choice = random_.randrange(8)
    if choice < 3:
        return random_.choice(NUMBERS)
    if choice < 5:
        return random_.choice(TEXTS)
    if choice == 5:
        return random_.choice(({"$float": "nan"}, {"$float": "inf"}, {"$float": "x"}, {}, []))
    if choice == 6:
        return random_.choice((None, True, False))
    nested: Any = random_.choice(NUMBERS)
    for _ in range(random_.choice((1, 2, 5, 40, 500))):
        nested = [nested] if random_.random() < 0.5 else {"a": nested}
    return nested


def varied(value: Any, random_: random.Random) -> Any:
    """Another value of the same kind, which may well be allowed."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int) and abs(value) < 2**63:
        return random_.choice((value + 1, value - 1, 2 * value, value // 2, 0, 1, -value, 10**6))
    if isinstance(value, float):
        return random_.choice((value + 0.5, value * 3, -value, 1e-9, 1e6))
    if isinstance(value, list):
        return random_.choice((value[:-1], value[::-1], value[:1], [*value, *value[:1]]))
    return value if isinstance(value, dict) else nasty(random_)


def damaged(document: Any, random_: random.Random) -> Any:
    """A copy with a few values replaced, removed, doubled, renamed or swapped."""
    document = copy.deepcopy(document)
    for _ in range(random_.choice((1, 1, 1, 2, 3))):
        places = list(_places(document))
        if not places:
            break
        holder, key = random_.choice(places)
        match random_.randrange(6):
            case 0 | 1:
                holder[key] = varied(holder[key], random_)
            case 2:
                holder[key] = nasty(random_)
            case 3:
                del holder[key]
            case 4:
                if isinstance(holder, list):
                    holder.insert(random_.randrange(len(holder) + 1), _copied(holder[key]))
                else:
                    holder[random_.choice(TEXTS)] = holder.pop(key)
            case _:
                other, other_key = random_.choice(places)
                value = _copied(holder[key])
                if isinstance(other, dict) or other_key < len(other):
                    other[other_key] = value
    return document


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except RecursionError:  # one of the deep values that were put in before
        return 0


def _places(value: Any, depth: int = 0):
    """All (holder, key) within a value, some levels down."""
    if depth > 12:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items) if isinstance(value, dict | list) else ():
        yield value, key
        yield from _places(item, depth + 1) if isinstance(item, dict | list) else ()


def broken_bytes(data: bytes, random_: random.Random) -> bytes:
    """Bytes that were flipped, cut off, cut out, doubled or overwritten."""
    found = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 4, 16))):
        at = random_.randrange(len(found) + 1)
        match random_.randrange(6):
            case 0 if found:
                found[at % len(found)] ^= 1 << random_.randrange(8)
            case 1 if found:
                found[at % len(found)] = random_.choice((0, 1, 0x7F, 0x80, 0xC1, 0xFF))
            case 2:
                del found[at:]
            case 3:
                del found[at : at + random_.randrange(1, 64)]
            case 4:
                found[at:at] = found[at : at + random_.randrange(1, 64)]
            case _:
                found[at:at] = random_.randbytes(random_.randrange(1, 16))
    return bytes(found)
