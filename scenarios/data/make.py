"""Make the real data sets, radon/ and states/, and choose the trade-offs of their scenarios.

    pip download --no-deps pymc3==3.8 linearmodels libpysal      # the wheels, never installed
    python scenarios/data/make.py FOLDER_OF_THE_WHEELS            # writes radon/ and states/
    python scenarios/data/make.py FOLDER_OF_THE_WHEELS --choose   # prints tables, writes nothing

Trade-offs are chosen on the training points alone, by five-fold cross-validation of the optima,
and compared on the test points of ten splits.  The optima are computed here once more, by sparse
linear algebra, without the simulator.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import io
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, diags_array, eye_array, kron
from scipy.sparse.linalg import spsolve

HERE = Path(__file__).parent
FOLDS, SPLITS = 5, 10
GRID = [10.0**e for e in np.arange(-3, 3.1, 0.5)]
KM_PER_DEGREE = 111.2


@dataclass
class Points:
    """All points of a data set, its agents, and the graph."""

    names: list[str]
    columns: list[str]
    owner: np.ndarray
    X: np.ndarray
    y: np.ndarray
    W: csr_array
    #: In the plane, in 100 km east and north; and on the globe, in degrees north and east.
    places: np.ndarray | None = None
    degrees: np.ndarray | None = None

    def training(self, split: int) -> np.ndarray:
        """Which points are for training: split 0 is the one in the files."""
        raise NotImplementedError


class Radon(Points):
    """Half of the houses, drawn at random."""

    def training(self, split: int) -> np.ndarray:
        """Each house with probability ½."""
        return np.random.default_rng(split).random(len(self.y)) < 0.5


class States(Points):
    """Five years of each state, drawn at random."""

    def training(self, split: int) -> np.ndarray:
        """Five of seventeen."""
        rng = np.random.default_rng(split)
        chosen = np.zeros(len(self.y), dtype=bool)
        for i in range(len(self.names)):
            chosen[rng.permutation(np.flatnonzero(self.owner == i))[:5]] = True
        return chosen


# --- from the wheels ------------------------------------------------------------------------------
def member(folder: Path, wheel: str, name: str) -> bytes:
    """A file of a wheel."""
    (path,) = folder.glob(f"{wheel}-*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def rows(content: bytes) -> list[dict[str, str]]:
    """A CSV file with spaces around its cells."""
    table = csv.DictReader(io.StringIO(content.decode("ascii")))
    return [{key.strip(): value.strip() for key, value in row.items()} for row in table]


def radon(folder: Path) -> Radon:
    """Houses whose floor is known, in counties whose place is known."""
    where = {}
    for row in rows(member(folder, "pymc3", "pymc3/examples/data/cty.dat")):
        where.setdefault((int(row["stfips"]), int(row["ctfips"])), row)
    houses = rows(member(folder, "pymc3", "pymc3/examples/data/srrs2.dat"))
    keys = [(int(row["stfips"]), int(row["cntyfips"])) for row in houses]
    used = [k for k, row in enumerate(houses) if row["floor"] != "9" and keys[k] in where]
    counties = sorted({keys[k] for k in used})
    names = [f"{where[c]['st']} {where[c]['cty'].title()} {c[0]:02}{c[1]:03}" for c in counties]
    number = {county: i for i, county in enumerate(counties)}
    # A device that shows 0 means less than it can show: 0.1 pCi/l, as Gelman and Hill have it.
    y = [round(math.log(float(houses[k]["activity"]) or 0.1), 4) for k in used]
    floor = [float(houses[k]["floor"] != "0") for k in used]
    lon, lat = (np.array([float(where[c][key]) for c in counties]) for key in ("lon", "lat"))
    east = lon * np.cos(np.radians(lat.mean()))
    places = np.round(np.column_stack([east, lat]) * KM_PER_DEGREE / 100, 3)
    X = np.column_stack([np.ones(len(used)), floor])
    owner = np.array([number[keys[k]] for k in used])
    degrees = np.column_stack([lat, lon])
    W = nearest(places, 5)
    return Radon(names, ["one", "floor"], owner, X, np.array(y), W, places, degrees)


def nearest(places: np.ndarray, k: int) -> csr_array:
    """Unit weights between each agent and its k nearest, symmetrised by union."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1, kind="stable")[:, :k]
    ends = np.repeat(np.arange(len(places)), k), near.ravel()
    directed = coo_array((np.ones(len(ends[0])), ends), shape=distances.shape).tocsr()
    return csr_array(directed.maximum(directed.T))


def states(folder: Path) -> States:
    """A production function: the logarithms of product, capital and labour."""
    name = "linearmodels/datasets/munnell/munnell.csv.bz2"
    table = rows(bz2.decompress(member(folder, "linearmodels", name)))
    names = sorted({row["STATE"] for row in table})
    columns = {"public_capital": "P_CAP", "private_capital": "PC", "employment": "EMP"}
    X = np.log([[float(row[key]) for key in columns.values()] for row in table])
    # Centred by constants, so that the level of a model means something.
    X = np.column_stack([np.ones(len(table)), np.round(X - [9.5, 10.5, 7.0], 4)])
    y = np.round(np.log([float(row["GSP"]) for row in table]) - 10.5, 4)
    owner = np.array([names.index(row["STATE"]) for row in table])
    titles = [name.replace("_", " ").title() for name in names]
    W = borders(member(folder, "libpysal", "libpysal/examples/us_income/states48.gal"))
    return States(titles, ["one", *columns], owner, X, y, W)


def borders(content: bytes) -> csr_array:
    """A .gal file: number of states; then "state count" and its neighbours, in turn."""
    lines = content.decode("ascii").split("\n")
    n = int(lines[0].split()[-1])
    pairs = [
        (int(head.split()[0]), int(j))
        for head, tail in zip(lines[1 : 2 * n : 2], lines[2 : 2 * n + 1 : 2], strict=True)
        for j in tail.split()
    ]
    return csr_array(coo_array((np.ones(len(pairs)), tuple(np.transpose(pairs))), shape=(n, n)))


# --- the files ------------------------------------------------------------------------------------
def write(points: Points, folder: Path) -> None:
    """Training and test points of split 0, the agents, and their places or borders."""
    training = points.training(0)
    for name, rows_of in (("train", training), ("test", ~training)):
        lines = [",".join(["agent", *points.columns, "y"])]
        for k in np.flatnonzero(rows_of):
            numbers = ",".join(f"{value:g}" for value in (*points.X[k], points.y[k]))
            lines.append(f"{points.names[points.owner[k]]},{numbers}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if points.degrees is None:
        (folder / "agents.txt").write_text("\n".join(points.names) + "\n", encoding="utf-8")
    else:
        lines = [f"{n},{x:g},{y:g}" for n, (x, y) in zip(points.names, points.degrees, strict=True)]
        text = "\n".join(["agent,latitude,longitude", *lines]) + "\n"
        (folder / "agents.csv").write_text(text, encoding="utf-8")
    if points.places is not None:
        lines = [f"{n},{x:g},{y:g}" for n, (x, y) in zip(points.names, points.places, strict=True)]
        text = "\n".join(["agent,east,north", *lines]) + "\n"
        (folder / "places.csv").write_text(text, encoding="utf-8")
    else:
        i, j = np.nonzero(points.W.toarray())
        lines = [f"{points.names[a]},{points.names[b]}" for a, b in zip(i, j, strict=True) if a < b]
        (folder / "borders.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- the optima, and how well they predict --------------------------------------------------------
class Moments:
    """What least squares needs of some of the points: m, XᵀX and Xᵀy of each agent."""

    def __init__(self, points: Points, used: np.ndarray):
        (n, p), self.W, self.D = (len(points.names), points.X.shape[1]), points.W, points.W.sum(1)
        X, y, owner = points.X[used], points.y[used], points.owner[used]
        self.sizes = np.bincount(owner, minlength=n)
        self.squares, self.products = np.zeros((n, p, p)), np.zeros((n, p))
        np.add.at(self.squares, owner, X[:, :, None] * X[:, None, :])
        np.add.at(self.products, owner, X * y[:, None])
        #: The shortest solutions; 0 without points.
        inverses = np.linalg.pinv(self.squares, rcond=1e-12, hermitian=True)
        self.solitary = np.einsum("ipq,iq->ip", inverses, self.products)

    def consensus(self) -> np.ndarray:
        """Least squares of everybody's points."""
        model = np.linalg.solve(self.squares.sum(axis=0), self.products.sum(axis=0))
        return np.tile(model, (len(self.sizes), 1))

    def propagation(self, mu: float) -> np.ndarray:
        """(D − W + μ D C) Θ = μ D C Θ^sol."""
        pull = mu * self.D * self.sizes / self.sizes.max()
        matrix = csc_array(diags_array(self.D + pull) - self.W)
        return spsolve(matrix, pull[:, None] * self.solitary)

    def collaboration(self, mu: float) -> np.ndarray:
        """(D − W) Θ + μ D (XᵀXΘ − Xᵀy) = 0, and a ridge of 1e-10 where nothing decides."""
        n, p = self.products.shape
        weight, whole = mu * self.D, np.arange(n + 1)
        data = bsr_array((weight[:, None, None] * self.squares, whole[:-1], whole))
        matrix = kron(diags_array(self.D) - self.W, eye_array(p)) + data + 1e-10 * eye_array(n * p)
        return spsolve(csc_array(matrix), (weight[:, None] * self.products).ravel()).reshape(n, p)


METHODS = {"mp": Moments.propagation, "cl": Moments.collaboration}


def error(points: Points, models: np.ndarray, rows_of: np.ndarray) -> float:
    """The root of the mean squared error over these points."""
    guesses = np.einsum("kp,kp->k", points.X[rows_of], models[points.owner[rows_of]])
    return float(np.sqrt(np.mean((guesses - points.y[rows_of]) ** 2)))


def chosen(points: Points, training: np.ndarray, method: str) -> float:
    """The μ with the least error of cross-validation on the training points."""
    fold = np.random.default_rng(2017).integers(FOLDS, size=len(points.y))
    errors = np.zeros(len(GRID))
    for f in range(FOLDS):
        moments = Moments(points, training & (fold != f))
        models = [METHODS[method](moments, mu) for mu in GRID]
        errors += [error(points, theta, training & (fold == f)) ** 2 for theta in models]
    return GRID[int(np.argmin(errors))]


def compare(points: Points) -> None:
    """Test errors of ten splits, each with the trade-offs that its training points choose."""
    table = []
    for split in range(SPLITS):
        training = points.training(split)
        moments = Moments(points, training)
        mus = {method: chosen(points, training, method) for method in METHODS}
        models = {"solitary": moments.solitary, "consensus": moments.consensus()}
        models |= {method: METHODS[method](moments, mus[method]) for method in METHODS}
        table.append([error(points, theta, ~training) for theta in models.values()])
        words = ", ".join(f"{m} {e:.4f}" for m, e in zip(models, table[-1], strict=True))
        trade_offs = ", ".join(f"{method} {mu:.3g}" for method, mu in mus.items())
        print(f"split {split}: {words}; mu: {trade_offs}", flush=True)
    means, spread = np.mean(table, axis=0), np.std(table, axis=0, ddof=1) / math.sqrt(SPLITS)
    for name, mean, own in zip(models, means, spread, strict=True):
        print(f"{name}: {mean:.4f} ({own:.4f})")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--choose", action="store_true")
    arguments = parser.parse_args()
    for name, read in (("radon", radon), ("states", states)):
        points = read(arguments.wheels)
        sizes = f"{len(points.names)} agents, {len(points.y)} points, {points.W.nnz // 2} links"
        print(f"{name}: {sizes}", flush=True)
        if arguments.choose:
            compare(points)
        else:
            write(points, HERE / name)


if __name__ == "__main__":
    main()
