"""Files that come with the program: scenarios, their schema and the examples of the docs.

In a checkout they lie beside the code; in an installed package within it.  A path like
``scenarios/moons.yaml`` that does not exist where one is means the shipped file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_HERE = Path(__file__).resolve().parent
#: What is shipped, by its folder.
FOLDERS = ("scenarios", "docs/examples")


def root() -> Path:
    """The folder with ``scenarios/`` and ``docs/examples/`` in it."""
    checkout = _HERE.parent
    return checkout if (checkout / "scenarios" / "moons.yaml").exists() else _HERE / "shipped"


def install(extra: str) -> str:
    """The command that installs what an extra needs, in a checkout or beside the package."""
    checkout = root() == _HERE.parent
    return f"pip install -e '.[{extra}]'" if checkout else f"pip install 'murmuration-sim[{extra}]'"


def found(path: Path) -> Path:
    """The path, or the shipped file of that name where there is no such file."""
    if path.is_absolute() or path.exists() or not path.as_posix().startswith(FOLDERS):
        return path
    ours = root() / path
    return ours if ours.is_file() else path


def expanded(paths: Iterable[Path]) -> list[Path]:
    """Paths, with shipped files for a pattern that the shell found nothing for."""
    every: list[Path] = []
    for path in paths:
        ours = path.as_posix().startswith(FOLDERS) and "*" in path.name and not path.exists()
        every += sorted((root() / path.parent).glob(path.name)) if ours else [found(path)]
    return every


def examples() -> dict[str, Path]:
    """The shipped scenarios and sweep files by name."""
    return {path.stem: path for path in sorted((root() / "scenarios").glob("*.yaml"))}


def story(path: Path) -> str:
    """What a shipped file says about itself: the first sentence of its opening comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    told = []
    for line in lines:
        if not line.startswith("#"):
            break
        if "$schema=" not in line:
            told.append(line.removeprefix("#").strip())
    return re.split(r"(?<=[.?!]) ", " ".join(told))[0]


def example(path: Path) -> str:
    """The text of a shipped file that can be written anywhere: its own files by absolute paths."""
    folder = path.parent
    text = path.read_text(encoding="utf-8")
    near = [*folder.glob("*.yaml"), *folder.glob("*.json"), *(folder / "data").rglob("*.*")]
    for file in near:
        name = file.relative_to(folder).as_posix()
        for before in (": ", "=", "file: "):
            text = text.replace(f"{before}{name}\n", f"{before}{file}\n")
            text = text.replace(f"{before}{name}}}", f"{before}{file}}}")
    return text
