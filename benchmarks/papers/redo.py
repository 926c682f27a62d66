"""Redo the papers: run every script of this folder, two at a time, and render the page.

``python benchmarks/papers/redo.py [--form quick]``; a script that fails is named at the end, and
its section is left out of the page.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from page import CHAPTERS
from section import FORMS, RESULTS

HERE = Path(__file__).parent
ALONE = ("kj_patches",)  # timings, of which nothing else should run beside them


def redo(name: str, form: str, out: Path) -> bool:
    """Run one script in a process of its own; return whether it wrote its output."""
    (out / f"{name}.json").unlink(missing_ok=True)
    command = [sys.executable, str(HERE / f"{name}.py"), "--form", form, "--out", str(out)]
    return subprocess.run(command, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--form", choices=FORMS, default="full", help="how much (default: full)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the output files")
    parser.add_argument("--jobs", type=int, default=2, help="scripts at a time (default: 2)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = [name for chapter in CHAPTERS.values() for name in chapter]
    together = [name for name in names if name not in ALONE]
    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(lambda name: redo(name, options.form, options.out), together))
    done += [redo(name, options.form, options.out) for name in ALONE]
    failed = [name for name, fine in zip([*together, *ALONE], done, strict=True) if not fine]
    subprocess.run([sys.executable, str(HERE / "page.py"), "--results", options.out], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
