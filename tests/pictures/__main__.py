"""Make the pictures of ``docs/``: ``make pictures``.

With names, those pictures alone. Those of Marquez are made where the environment names one, with
its web pages (``docs/backends.md``); it should have seen no other run of the demo.
"""

from __future__ import annotations

import argparse
import sys

from tests.pictures import demo
from tests.pictures.studio import Studio
from tests.pictures.subjects import PICTURES, SkippedError

DOCS = demo.ROOT / "docs"


def main(arguments: list[str]) -> None:
    """Make them; what cannot be made here stays as it is."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], metavar="PICTURE")
    parser.add_argument("--last-demo", action="store_true", help="of the last demo, not a new one")
    asked = parser.parse_args(arguments)
    if not asked.last_demo:
        demo.run()
    with Studio() as studio:
        for name in [name for name in PICTURES if name in (asked.names or PICTURES)]:
            try:
                PICTURES[name](studio, DOCS / name)
            except SkippedError as reason:
                print(f"docs/{name} stays as it is: {reason}.")
            else:
                print(f"docs/{name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
