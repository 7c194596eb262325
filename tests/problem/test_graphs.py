"""Graphs against brute force over all pairs, and every error that a user can cause."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import TypeAdapter
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from simulator.errors import ScenarioError
from simulator.problem.graphs import GRAPHS, edges
from simulator.problem.graphs.graph import Agents, connected_parts, mirror
from simulator.scenario.kinds import one_of

SCHEMA = TypeAdapter(one_of(list(GRAPHS.values())))


def build(points=None, *, n=None, names=None, angular=False, seed=0, **graph):
    if names is None:
        names = [str(i) for i in range(len(points) if n is None else n)]
    rng = np.random.default_rng(seed)
    return SCHEMA.validate_python(graph).build(Agents(names, points, angular), rng)


def check_form(W: csr_array) -> None:
    """Symmetric, positive, sorted, without diagonal, explicit zeros or duplicates."""
    assert isinstance(W, csr_array)
    assert W.dtype == np.float64
    assert W.has_canonical_format
    assert (W.data > 0).all()
    assert W.diagonal().sum() == 0
    assert (W != W.T).nnz == 0


def moons_like(n: int, seed: int = 0, d: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


# --- kernels ------------------------------------------------------------------------------------
@pytest.mark.parametrize("min_weight", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("n", [1, 2, 80, 600])  # 600: more pairs than one block holds
def test_gaussian_kernel_equals_all_pairs(n, min_weight):
    points = moons_like(n)
    W = build(points, kind="gaussian_kernel", sigma=0.7, min_weight=min_weight)
    check_form(W)
    expected = np.exp(-cdist(points, points, "sqeuclidean") / (2 * 0.7**2))
    np.fill_diagonal(expected, 0)
    expected[expected <= min_weight] = 0
    np.testing.assert_allclose(W.toarray(), expected, rtol=1e-12)


@pytest.mark.parametrize("min_weight", [0.0, 0.01])
def test_angular_kernel_equals_all_pairs(min_weight):
    points = moons_like(70, d=5)
    W = build(points, kind="angular_kernel", sigma=0.1, min_weight=min_weight)
    check_form(W)
    lengths = np.linalg.norm(points, axis=1)
    cosine = points @ points.T / np.outer(lengths, lengths)
    expected = np.exp((cosine - 1) / 0.1)
    np.fill_diagonal(expected, 0)
    expected[expected <= min_weight] = 0
    np.testing.assert_allclose(W.toarray(), expected, rtol=1e-12)


def test_a_weight_equal_to_min_weight_is_dropped_and_one_above_is_kept():
    distance = np.sqrt(2 * np.log(2))  # the kernel of spread 1 is 1/2 here
    weight = build(np.array([[0.0], [distance]]), kind="gaussian_kernel", sigma=1.0)[0, 1]
    for least, links in ((weight, 0), (np.nextafter(weight, 0), 2)):
        points = np.array([[0.0], [distance]])
        W = build(points, kind="gaussian_kernel", sigma=1.0, min_weight=float(least))
        assert W.nnz == links


def test_identical_places_have_weight_one():
    W = build(np.zeros((30, 2)), kind="gaussian_kernel", sigma=0.1, min_weight=0.5)
    np.testing.assert_array_equal(W.toarray(), 1 - np.eye(30))


def test_weights_too_small_for_a_float_are_no_edges():
    W = build(np.array([[0.0], [1.0], [100.0]]), kind="gaussian_kernel", sigma=1.0)
    assert W[0, 1] == pytest.approx(np.exp(-0.5))
    assert W.nnz == 2


@pytest.mark.parametrize("sigma", [1e-100, 1e100])
def test_absurd_spreads_do_no_harm(sigma):
    W = build(moons_like(20), kind="gaussian_kernel", sigma=sigma)
    assert W.nnz == (0 if sigma < 1 else 20 * 19)


def test_a_complete_graph_beyond_memory_is_refused():
    with pytest.raises(ScenarioError, match=r"min_weight = 0: .*GB.*graph\.kind: knn"):
        build(moons_like(20_000), kind="gaussian_kernel", sigma=10.0)
    sparse = build(moons_like(20_000), kind="gaussian_kernel", sigma=0.005, min_weight=0.1)
    check_form(sparse)


def test_vectors_are_needed():
    for kind in ("gaussian_kernel", "angular_kernel", "knn"):
        with pytest.raises(ScenarioError, match=rf"{kind} .*task\.vectors"):
            build(None, n=5, kind=kind)


@pytest.mark.parametrize(
    "graph", [{"kind": "angular_kernel"}, {"kind": "knn", "metric": "angular"}]
)
def test_an_angle_needs_a_direction(graph):
    points = moons_like(20)
    points[3] = 0
    with pytest.raises(ScenarioError, match="0 is the vector of agent 3"):
        build(points, **graph)


# --- nearest neighbours -------------------------------------------------------------------------
@pytest.mark.parametrize("metric", ["euclidean", "angular"])
@pytest.mark.parametrize("weights", ["unit", "kernel"])
def test_nearest_neighbours_equal_all_pairs(metric, weights):
    n, k, sigma = 90, 4, 0.3
    points = moons_like(n, d=3)
    W = build(points, kind="knn", k=k, metric=metric, weights=weights, sigma=sigma)
    check_form(W)
    if metric == "euclidean":
        distances = cdist(points, points)
        kernel = np.exp(-(distances**2) / (2 * sigma**2))
    else:
        distances = cdist(points, points, "cosine")
        kernel = np.exp(-distances / sigma)
    np.fill_diagonal(distances, np.inf)
    linked = np.zeros((n, n), dtype=bool)
    linked[np.arange(n)[:, None], np.argsort(distances, axis=1)[:, :k]] = True
    linked |= linked.T
    expected = np.where(linked, 1.0 if weights == "unit" else kernel, 0)
    np.testing.assert_allclose(W.toarray(), expected, rtol=1e-9)


def test_the_metric_follows_the_task_unless_it_is_named():
    points = moons_like(50)
    by_angle = build(points, kind="knn", k=3, metric="angular")
    assert (build(points, kind="knn", k=3, angular=True) != by_angle).nnz == 0
    assert (build(points, kind="knn", k=3) != by_angle).nnz > 0
    euclidean = build(points, kind="knn", k=3, metric="euclidean", angular=True)
    assert (build(points, kind="knn", k=3) != euclidean).nnz == 0


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(2, 40), st.just(2)), elements=st.integers(0, 3)),
    st.integers(1, 6),
)
def test_nearest_neighbours_of_agents_at_the_same_place(points, k):
    """On a grid of 16 places there are many ties: nobody loses a neighbour or meets itself."""
    n = len(points)
    if k >= n:
        with pytest.raises(ScenarioError, match=rf"k: {k} .*\(k < {n}\)"):
            build(points, kind="knn", k=k)
        return
    W = build(points, kind="knn", k=k)
    check_form(W)
    assert (np.diff(W.indptr) >= k).all()
    # Ties may be broken either way, but the k-th distance is what it is.
    distances = np.sort(cdist(points, points) + np.diag(np.full(n, np.inf)), axis=1)
    links = W.tocoo()
    length = np.linalg.norm(points[links.row] - points[links.col], axis=1)
    reach = distances[:, k - 1]
    assert (length <= np.maximum(reach[links.row], reach[links.col]) + 1e-12).all()


def test_a_hundred_thousand_agents():
    n, k = 100_000, 10
    W = build(moons_like(n), kind="knn", k=k)
    check_form(W)
    assert n * k <= W.nnz <= 2 * n * k
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    back = mirror(W)
    np.testing.assert_array_equal(W.indices[back], rows)
    np.testing.assert_array_equal(rows[back], W.indices)


# --- networkx -----------------------------------------------------------------------------------
def test_a_generator_gets_its_number_of_agents_and_a_seed():
    graph = {"kind": "networkx", "generator": "erdos_renyi_graph", "arguments": {"p": 0.2}}
    W = build(n=60, seed=5, **graph)
    check_form(W)
    seed = int(np.random.default_rng(5).integers(2**32))
    made = nx.erdos_renyi_graph(60, 0.2, seed=seed)
    np.testing.assert_array_equal(W.toarray(), nx.to_numpy_array(made, nodelist=range(60)))
    assert (build(n=60, seed=5, **graph) != W).nnz == 0
    assert (build(n=60, seed=6, **graph) != W).nnz > 0


def test_a_seed_of_the_users_own_holds():
    arguments = {"d": 3, "seed": 4}
    W = build(n=20, kind="networkx", generator="random_regular_graph", arguments=arguments)
    made = nx.random_regular_graph(3, 20, seed=4)
    np.testing.assert_array_equal(W.toarray(), nx.to_numpy_array(made, nodelist=range(20)))


def test_nodes_that_are_no_numbers_keep_their_order():
    W = build(n=6, kind="networkx", generator="grid_2d_graph", arguments={"m": 2, "n": 3})
    np.testing.assert_array_equal(W.toarray(), nx.to_numpy_array(nx.grid_2d_graph(2, 3)))


def test_weights_of_a_generator_are_used():
    W = build(n=34, kind="networkx", generator="karate_club_graph")
    np.testing.assert_array_equal(W.toarray(), nx.to_numpy_array(nx.karate_club_graph()))
    assert W.max() > 1


def test_a_multigraph_becomes_simple():
    arguments = {"deg_sequence": [3] * 10, "seed": 1}
    W = build(n=10, kind="networkx", generator="configuration_model", arguments=arguments)
    check_form(W)
    made = nx.configuration_model([3] * 10, seed=1)
    assert nx.number_of_selfloops(made) > 0 or len(made.edges) > len(set(made.edges()))
    assert set(W.data) == {1.0}


@pytest.mark.parametrize(
    ("generator", "arguments", "message"),
    [
        ("no_such_graph", {}, "no_such_graph.*no graph generator"),
        ("read_graphml", {"path": "x"}, "no graph generator"),
        ("from_numpy_array", {}, "no graph generator"),
        ("Graph", {}, "no graph generator"),
        ("generators", {}, "no graph generator"),
        ("__doc__", {}, "no graph generator"),
        ("erdos_renyi_graph", {}, r"\(n, p, seed=None.*missing a required argument: 'p'"),
        ("erdos_renyi_graph", {"p": 0.5, "q": 1}, "unexpected keyword argument 'q'"),
        ("erdos_renyi_graph", {"p": 0.5, "backend": "os"}, "keyword argument 'backend'"),
        ("erdos_renyi_graph", {"p": "half"}, "erdos_renyi_graph.*got .*p='half'"),
        ("watts_strogatz_graph", {"k": 50, "p": 0.1}, "watts_strogatz_graph.*k>n"),
        ("erdos_renyi_graph", {"p": 0.5, "directed": True}, "directed graph"),
        ("complete_graph", {"n": 9}, "9 nodes for 12 agents"),
        ("star_graph", {}, "13 nodes for 12 agents"),
        ("hypercube_graph", {}, r"hypercube_graph\(n\).*missing a required argument: 'n'"),
        ("random_powerlaw_tree_sequence", {"tries": 10000}, "gives a list, not a graph"),
        ("nonisomorphic_trees", {"order": 4}, "not a graph"),
    ],
)
def test_wrong_generators(generator, arguments, message):
    with pytest.raises(ScenarioError, match=message):
        build(n=12, kind="networkx", generator=generator, arguments=arguments)


def test_every_generator_that_explodes_is_asked_for_its_n():
    """Of those that need nothing but n: where it is filled in, no 2^n and no n² comes out."""
    for name in dir(nx):
        generator = getattr(nx, name)
        if not str(getattr(generator, "__module__", "")).startswith("networkx.generators."):
            continue
        try:
            made = generator(n=8)
        except Exception:  # has no n, or needs more than that
            continue
        if isinstance(made, nx.Graph) and name not in edges._N_IS_NO_COUNT:
            assert len(made) <= 16, name


# --- files --------------------------------------------------------------------------------------
NAMES = ["ann", "bob", "cy d", "NA"]


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str | bytes, name: str = "edges.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def from_file(path: Path, names=NAMES) -> csr_array:
    return build(names=names, kind="file", file=path)


EDGES = np.array([[0, 0.5, 2, 0], [0.5, 0, 0, 1], [2, 0, 0, 0], [0, 1, 0, 0]])


@pytest.mark.parametrize(
    "text",
    [
        "ann,bob,0.5\ncy d,ann,2\nbob,NA\n",
        "# who, whom\n\n ann , bob , 5e-1 # near\n   \nann,cy d,2\nNA,bob,1\n\n",
        "ann,bob,.5\nbob,ann,0.50\nann,cy d,2\r\nann,cy d,2\r\nbob,NA,",
        "\ufeffann,bob,0.5\ncy d,ann,2\nNA,bob",
    ],
)
def test_edge_list_with_commas(file, text):
    W = from_file(file(text))
    check_form(W)
    np.testing.assert_array_equal(W.toarray(), EDGES)


def test_edge_list_with_blanks(file):
    W = from_file(file("# a graph\n  0 1 0.5\n2\t0  2 # far\n\n1 3\n", "g.txt"), list("0123"))
    np.testing.assert_array_equal(W.toarray(), EDGES)


def test_names_with_blanks_are_in_quotes(file):
    W = from_file(file('ann bob .5\n"cy d"  ann\t2\nbob "NA" \n', "g.txt"))
    np.testing.assert_array_equal(W.toarray(), EDGES)


def test_a_million_edges_in_a_file(file):
    n = 200_000
    steps = np.arange(1, 6)
    ends = (np.repeat(np.arange(n), 5), ((np.arange(n)[:, None] + steps) % n).ravel())
    text = "\n".join(map("{} {}".format, ends[0].tolist(), ends[1].tolist()))
    W = from_file(file(text), [str(i) for i in range(n)])
    check_form(W)
    assert (np.diff(W.indptr) == 10).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann,bob\n\n# x\nann,eve\n", r"edges\.csv:4: unknown agent 'eve'; .*ann, bob"),
        ("eve,bob\n", r":1: unknown agent 'eve'"),
        ("ann,bob,-1\n", r":1: weight '-1'.*finite number > 0"),
        ("ann,bob\nann,NA,0\n", r":2: weight '0'"),
        ("ann,bob,nan\n", r":1: weight 'nan'"),
        ("ann,bob,1e999\n", r":1: weight '1e999'"),
        ("ann,bob,heavy\n", r":1: weight 'heavy'"),
        ("ann,bob\nbob,bob\n", r":2: an edge from an agent to itself"),
        (
            "ann,bob,1\nNA,bob,3\nbob,ann,2\n",
            r":3: asymmetric weight 2: it is 1 for the same two agents at .*edges\.csv:1",
        ),
        ("ann,bob,1\nann,bob,1\nann,bob,2\n", r":3: asymmetric weight 2"),
        ("ann,bob\nann\n", r":2: expected `agent agent \[weight\]`, got 'ann'"),
        (",bob,2\n", r":1: expected `agent agent"),
        ("ann,bob,1\nann,NA,1,1\n", r":2: 4 cells in a line; at most 3"),
        ("ann,bob,1,1,1\n", r":1: 5 cells in a line; at most 3"),
        ('ann,"bob\n', r"edges\.csv: malformed CSV"),
        (b"ann,b\xff\n", r"edges\.csv: not UTF-8"),
    ],
)
def test_wrong_edge_lists(file, text, message):
    with pytest.raises(ScenarioError, match=message):
        from_file(file(text))


def test_an_empty_edge_list_is_a_graph_without_edges(file):
    for text in ("", "# nobody\n", "\n\n"):
        assert from_file(file(text)).nnz == 0


def test_graphml_round_trip(file, tmp_path):
    made = nx.Graph()
    made.add_nodes_from(NAMES)
    made.add_edge("ann", "bob", weight=0.5)
    made.add_edge("cy d", "ann", weight=2.0)
    made.add_edge("NA", "bob")
    path = tmp_path / "graph.graphml"
    nx.write_graphml(made, path)
    W = from_file(path)
    check_form(W)
    np.testing.assert_array_equal(W.toarray(), EDGES)


def graphml(body: str, direction: str = "undirected", top: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{top}'
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
        f'<graph edgedefault="{direction}">{body}</graph></graphml>'
    )


def edge(a: str, b: str, weight: str = "1") -> str:
    return f'<edge source="{a}" target="{b}"><data key="w">{weight}</data></edge>'


LAUGHS = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (graphml(edge("ann", "eve")), "unknown agent; .*ann, bob"),
        (graphml('<node id="zed"/>' + edge("ann", "bob")), "node 'zed': unknown agent; .*ann, bob"),
        (graphml(edge("ann", "bob", "-2")), r"edge ann – bob: weight .*-2\.0.*finite number > 0"),
        (graphml(edge("ann", "bob", "inf")), "edge ann – bob: weight .*inf"),
        (graphml(edge("ann", "bob", "x")), "not a GraphML file"),
        (graphml(edge("ann", "ann")), "from an agent to itself"),
        (graphml(edge("ann", "bob") + edge("bob", "ann", "2")), "asymmetric weight"),
        (graphml(edge("ann", "bob"), "directed"), "is directed"),
        (graphml("", top=LAUGHS), "DOCTYPE or ENTITY"),
        (graphml("", top='<!doctype x SYSTEM "file:///etc/passwd">'), "DOCTYPE or ENTITY"),
        (graphml("", top=LAUGHS).encode("utf-16"), "not UTF-8"),
        ("<graphml", "not a GraphML file"),
        ("<html/>", "not a GraphML file"),
        ("", "not a GraphML file"),
    ],
)
def test_wrong_graphml(file, text, message):
    with pytest.raises(ScenarioError, match=message):
        from_file(file(text, "g.graphml"))


def test_a_declared_encoding_cannot_hide_a_doctype(file):
    """An ASCII head that announces EBCDIC: the parser must read what was checked."""
    head = b'<?xml version="1.0" encoding="cp037"?>'
    with pytest.raises(ScenarioError):
        from_file(file(head + LAUGHS.encode("cp037"), "g.graphml"))


# --- connectivity and mirror --------------------------------------------------------------------
def ring(*sizes: int) -> csr_array:
    made = nx.disjoint_union_all([nx.cycle_graph(size) for size in sizes])
    made.remove_edges_from(list(nx.selfloop_edges(made)))
    return csr_array(nx.to_scipy_sparse_array(made, dtype=float))


def test_a_connected_graph_needs_no_remark():
    part, remark = connected_parts(ring(7), list("abcdefg"), allowed=False)
    assert remark is None
    assert set(part) == {0}


def test_parts_are_counted():
    names = [f"a{i}" for i in range(12)]
    part, remark = connected_parts(ring(3, 5, 4), names, allowed=True)
    assert remark == "the graph falls into 3 parts of 5, 4 and 3 agents"
    np.testing.assert_array_equal(part, np.repeat([0, 1, 2], [3, 5, 4]))
    with pytest.raises(ScenarioError, match=r"3 parts of 5, 4 and 3 .*allow_disconnected"):
        connected_parts(ring(3, 5, 4), names, allowed=False)


def test_isolated_agents_are_named():
    names = [f"a{i}" for i in range(12)]
    with pytest.raises(ScenarioError, match=r"without any neighbour: a3, a4;"):
        connected_parts(ring(3, 1, 1, 7), names, allowed=False)
    with pytest.raises(
        ScenarioError, match=r"12 parts of 1, 1, 1, 1, 1 and … .*: a0, a1, a2, a3, a4 and 7 more"
    ):
        connected_parts(csr_array((12, 12)), names, allowed=False)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_mirror_leads_to_the_opposite_edge(n, p, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < p), 1)
    W = csr_array(upper + upper.T)
    W.sort_indices()
    back = mirror(W)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    np.testing.assert_array_equal(W.indices[back], rows)
    np.testing.assert_array_equal(rows[back], W.indices)
    np.testing.assert_array_equal(W.data[back], W.data)
    np.testing.assert_array_equal(back[back], np.arange(W.nnz))
