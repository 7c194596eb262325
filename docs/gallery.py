"""The pictures of the gallery: every shipped scenario, run with the compiled engine.

``python docs/gallery.py`` draws them anew into docs/images/gallery/; sweep files take minutes and
have pictures of their own.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context

from simulator import run
from simulator.figures.style import Look
from simulator.shipped import examples

FOLDER = Path(__file__).parent / "images" / "gallery"
#: Shorter than shipped, where the picture shows the same.
SHORTER = {
    "million": {"task.agents": 20_000, "stop": {"time": 10}},
    "linear_classification": {"stop.time": 100},
}


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name, path in examples().items():
        if "\nbase:" in path.read_text(encoding="utf-8"):
            continue
        result = run(path, {"engine": "compiled", **SHORTER.get(name, {})})
        with rc_context(Look().style):
            for which, figure in result.pictures(Look()):
                figure.savefig(FOLDER / f"{name}-{which}.png", dpi=100)
        print(name, result)


if __name__ == "__main__":
    main()
