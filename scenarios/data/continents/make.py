"""Make the files of scenarios/continents.yaml, beside this one or in the folder that is given.

Sixty people with phones, twelve in each of five cities.  Each has an interest, a point in the plane
that has nothing to do with where one lives, and a few noisy looks at what such people like; phones
are off at night, in their own time zone.  Everything follows from the seed below.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

#: Latitude, longitude, and hours ahead of UTC.
CITIES = {
    "Sao Paulo": (-23.55, -46.63, -3),
    "New York": (40.71, -74.01, -5),
    "London": (51.51, -0.13, 0),
    "Singapore": (1.35, 103.82, 8),
    "Sydney": (-33.87, 151.21, 10),
}
PEOPLE, DAYS, SEED = 12, 3, 2017
HOUR, DAY = 3600, 86_400


def write(folder: Path) -> None:
    """All files."""
    rng = np.random.default_rng(SEED)
    names = [f"{city} {k + 1}" for city in CITIES for k in range(PEOPLE)]
    rows = {name: [] for name in ("agents", "vectors", "train", "trace")}
    interests = rng.normal(size=(len(names), 2))
    for name, interest in zip(names, interests.tolist(), strict=True):
        city = name.rsplit(" ", 1)[0]
        north, east, ahead = CITIES[city]
        rows["agents"].append(f"{name},{city},{north},{east}")
        rows["vectors"].append(f"{name},{interest[0]:.3f},{interest[1]:.3f}")
        liking = np.tanh(interest[0]) + 0.5 * np.sign(interest[1])
        looks = liking + rng.normal(size=int(rng.integers(1, 9)))
        rows["train"] += [f"{name},{look:.3f}" for look in looks.tolist()]
        rows["trace"] += [f"{name},{time},{state}" for time, state in nights(rng, ahead)]
    heads = {
        "agents": "agent,city,latitude,longitude",
        "vectors": "agent,x,y",
        "train": "agent,y",
        "trace": "agent,time,state",
    }
    for file, head in heads.items():
        text = "\n".join([head, *rows[file]]) + "\n"
        (folder / f"{file}.csv").write_text(text, encoding="utf-8")


def nights(rng: np.random.Generator, ahead: int) -> list[tuple[int, str]]:
    """Switches of one phone: off at about 23:00 and on at about 7:00 of its own time.

    Time 0 is midnight in London.
    """
    switches = []
    for day in range(-1, DAYS + 1):
        off = day * DAY + (23 - ahead) * HOUR + int(rng.normal(0, HOUR))
        on = (day + 1) * DAY + (7 - ahead) * HOUR + int(rng.normal(0, HOUR))
        if on > 0:
            switches += [(max(off, 0), "off"), (on, "on")]
    return switches


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
