"""The pictures of the gallery: every shipped scenario, run with the compiled engine.

``python docs/gallery.py [NAME …]`` draws them anew into docs/images/gallery/, in a few minutes;
sweep files take longer and have pictures of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generate import IMAGES, SHORTER, is_sweep
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from simulator import run
from simulator.figures.style import Look
from simulator.shipped import examples


def main(names: list[str]) -> None:
    """Draw those that are named, or all of them."""
    IMAGES.mkdir(exist_ok=True)
    for name, path in examples().items():
        if is_sweep(path) or (names and name not in names):
            continue
        result = run(path, {"engine": "compiled", **SHORTER.get(name, {})})
        with rc_context(Look().style):
            for which, figure in result.pictures(Look()):
                _keep(figure, IMAGES / f"{name}-{which}.png")
        print(name, result)


def _keep(figure: Figure, path: Path) -> None:
    """A small file: of the colours of a chart 64 are enough."""
    figure.savefig(path, dpi=130)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
