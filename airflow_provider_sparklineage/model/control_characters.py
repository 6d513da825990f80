"""Characters that are not seen and yet do something: in a log they forge lines, in a terminal more.

Names of datasets, columns and files, and what servers and libraries say, are other people's texts.
"""

from __future__ import annotations

import re

PATTERN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, line ends among them
    "\u2028\u2029"  # further ends of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of text
    # What is not seen at all; without the joiners, which Persian and emoji are written with.
    "\u00ad\u180e\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"
    "\ud800-\udfff"  # halves of surrogate pairs, which no encoding can write
    "]"
)


def escaped(text: str) -> str:
    r"""Write control characters as Python would: a line end is ``\n``, an escape ``\x1b``."""
    return PATTERN.sub(lambda found: ascii(found[0])[1:-1], text)
