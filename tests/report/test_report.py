"""Pages: what is on them, in a real browser where there is one; and the moving picture."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from simulator import compare, sweep
from simulator.engines.setup import prepare
from simulator.figures import agent_layout
from simulator.figures.agent_layout import arrange, reach
from simulator.report import animation
from simulator.report import page as page_module
from simulator.report.event_story import _EDGES, ARRIVED, LOST, Messages, age_law, tell
from simulator.report.page import write_page
from simulator.report.parts import squeezed, to_json
from simulator.report.run_data import colouring
from simulator.runs.result import save_result
from simulator.runs.run import run
from simulator.runs.scenarios import load_scenario
from simulator.seeds import Streams
from simulator.store.store import Store, digest
from tests.conftest import LINEAR, MEANS, build, problem_of
from tests.sweeping import write_tiny

FLAGS = (
    "--no-sandbox --headless --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
#: How long to wait for the browser, in seconds: others may need the machine too.
PATIENCE = 120
EVIL = "<script>document.title='bad'</script>"
SCENARIO = f"""\
name: evil
description: "{EVIL}"
task: {{kind: files, train: train.csv, features: [], vectors: vectors.csv}}
graph: {{kind: file, file: edges.csv}}
algorithm: {{kind: mp, alpha: 0.8}}
network: {{latency: {{kind: exponential, mean: 100 ms}}, drop: 0.2}}
stop: {{time: 15}}
record: {{every: 1, events: true, models: true}}
"""


def evil_scenario(folder: Path):
    names = [f"{EVIL} {i}" for i in range(6)]
    values = [f"{name},{value}" for name, value in zip(names, (1, 2, 3, -1, -2, -3), strict=True)]
    (folder / "train.csv").write_text("\n".join(["agent,y", *values]) + "\n")
    places = [f"{name},{np.cos(i)},{np.sin(i)}" for i, name in enumerate(names)]
    (folder / "vectors.csv").write_text("\n".join(["agent,x,y", *places]) + "\n")
    edges = [f"{names[i]},{names[(i + k) % 6]},1" for i in range(6) for k in (1, 2)]
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    (folder / "evil.yaml").write_text(SCENARIO)
    return load_scenario(folder / "evil.yaml")


def saved(scenario, root: Path) -> tuple[Path, object]:
    result = run(scenario)
    store = Store(root)
    return save_result(store, result, full_hash=digest(scenario), wall_time=1.0), result


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """The folder and the result of a run with bad names, events and models."""
    root = tmp_path_factory.mktemp("evil")
    return saved(evil_scenario(root), root / "results")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run of which nothing but samples was recorded."""
    return saved(build(MEANS, name="plain"), tmp_path_factory.mktemp("plain") / "results")


# --- without a browser --------------------------------------------------------------------------
def test_json_cannot_end_its_element():
    text = to_json({"name": EVIL, "more": "</script>&\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": EVIL, "more": "</script>&\u2028"}


def unsqueezed(packed: dict) -> np.ndarray:
    import base64

    codes = np.frombuffer(base64.b64decode(packed["codes"]["base64"]), dtype="<u2").astype(float)
    values = packed["first"] + packed["step"] * codes
    values = np.exp(values) if packed["log"] else values
    return np.where(codes == 65535, np.nan, values)


def test_plotly_is_whole():
    """In brackets or not, it is the script of the package."""
    script = page_module.plotly_script()
    plain = "(function(a, f) {} (typeof self !== 1 ? self : this, () => {\nreturn 1;\n}));"
    assert page_module._at_once(plain).endswith(": this, (() => {\nreturn 1;\n})));")
    assert page_module._at_once("var Plotly = 1;") == "var Plotly = 1;"
    assert ": this, (() => {" in script  # or it has been built in a new way: look at _at_once


def test_two_bytes_keep_four_digits(rng):
    values = rng.normal(size=1000) * 100
    values[3] = np.nan
    again = unsqueezed(squeezed(values, log=False))
    span = np.nanmax(values) - np.nanmin(values)
    np.testing.assert_allclose(again, values, atol=span / 65534)
    errors = np.exp(rng.uniform(-20, 3, size=1000))
    # Half a step of the logarithm's range, (23 of it at most).
    np.testing.assert_allclose(unsqueezed(squeezed(errors, log=True)), errors, rtol=23 / 65534)
    assert unsqueezed(squeezed(np.array([2.0, 2.0]), log=False)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("base", "overrides"),
    [
        (MEANS, {"network": {"latency": {"kind": "exponential", "mean": 0.3}, "drop": 0.3}}),
        (LINEAR, {"network": {"latency": 0.2, "drop": 0.1}, "compute": {"time": 0.1}}),
        (MEANS, {"algorithm__mode": "sync", "network": {"latency": 0.5, "drop": 0.3}}),
    ],
)
def test_ages_and_counts_follow_from_the_events(base, overrides):
    result = run(build(base, record={"every": 1.0, "events": True}, **overrides))
    trace, problem = result.trace, result.problem
    times = trace["time"].to_numpy()
    story = tell(result, times, 0.0)
    # The trace's staleness is the mean over links, the story's one over an agent's links.
    links = np.diff(problem.W.indptr)
    mean = story.mean_ages @ links / links.sum()
    np.testing.assert_allclose(mean, trace["staleness"], atol=1e-9)
    assert story.ages.mean == pytest.approx(trace["staleness"].iloc[-1])
    last = trace.iloc[-1]
    assert story.counts["sent"].sum() == last["communications"]
    assert story.counts["received"].sum() == last["delivered"] == story.delays.total
    assert story.counts["lost"].sum() == last["dropped"]


def test_delays_and_messages_follow_from_the_events(evil):
    _, result = evil
    story = tell(result, np.zeros(1), 5.0)
    events = result.events
    sent = events[events["kind"] == "send"].set_index("message")["time"]
    arrived = events[events["kind"] == "deliver"].set_index("message")["time"]
    assert story.delays.mean == pytest.approx((arrived - sent).mean())
    later = sent[sent >= 5.0]
    rows = story.messages.rows.set_index("message")
    assert rows["time"].tolist() == later.tolist()
    lost = set(events.loc[events["kind"] == "drop", "message"])
    for number, row in rows.iterrows():
        if number in arrived.index:
            assert (row["fate"], row["until"]) == (ARRIVED, arrived[number])
        else:
            assert (row["fate"] == LOST) == (number in lost)


def test_a_window_holds_so_many_events_however_they_come():
    n = 50_000
    table = {
        "time": np.arange(n) / 10,
        "kind": np.full(n, 2),
        "agent": np.zeros(n, dtype=int),
        "peer": np.ones(n, dtype=int),
        "message": np.arange(n),
        "what": np.zeros(n, dtype=int),
        "answers": np.full(n, -1),
        "sent_at": np.arange(n) / 10,
    }
    messages = Messages(start=100.0)
    for start in range(0, n, 7_000):
        messages.take(pd.DataFrame(table)[start : start + 7_000])
    assert messages.events == len(messages.rows) == 20_000
    assert messages.rows["time"].iloc[0] == 100.0
    assert messages.end == 100.0 + 19_999 / 10


def test_the_law_of_ages_is_the_one_of_poisson_contacts():
    scenario = build(MEANS, graph={"kind": "gaussian_kernel", "sigma": 50}, network={"drop": 0.25})
    problem = problem_of(scenario)
    assert problem.W.nnz == problem.n * (problem.n - 1)
    setup = prepare(scenario, problem, Streams(0), scenario.algorithm.rule)
    end = 30.0
    law = age_law(setup, end)
    rate = (0.75 + 0.75**2) / (problem.n - 1)
    edges = _EDGES[: np.searchsorted(_EDGES, end)]
    below = np.concatenate(([0], np.cumsum(law.shares)))[: len(edges)]
    # Five spreads of a share among 400,000 draws.
    np.testing.assert_allclose(below, 1 - np.exp(-rate * edges), atol=5 * 0.5 / np.sqrt(400_000))
    assert age_law(prepare(build(MEANS, algorithm__mode="sync", network={"latency": 1.0}),
                           problem, Streams(0), scenario.algorithm.rule), end) is None  # fmt: skip


def test_layouts(monkeypatch):
    means = problem_of(build(MEANS))
    assert "coordinates" in arrange(means, 10**6).how
    assert "true models" in arrange(problem_of(build(LINEAR)), 10**6).how
    bare = type(means)(**{**vars(means), "vectors": None, "targets": None})
    spring = arrange(bare, 10**6)
    assert "springs" in spring.how
    assert len(spring.links) == means.W.nnz // 2
    monkeypatch.setattr(agent_layout, "_SPRING", 5)
    ring = problem_of(build(MEANS, task__agents=40, graph={"kind": "knn", "k": 8}))
    ring = type(ring)(**{**vars(ring), "vectors": None, "targets": None})
    assert "spectral" in arrange(ring, 10**6).how
    few = arrange(means, 3, 5)
    assert len(few.agents) == len(few.places) <= 5
    assert len(few.links) == 3
    agents, links = few.notes
    assert "12 agents" in agents
    assert str(len(few.agents)) in agents
    assert f"3 of {len(few.agents) * (len(few.agents) - 1) // 2} links" in links
    assert few.places.min() >= 0
    assert few.places.max() == 1


def test_a_few_odd_values_do_not_take_all_the_colours(rng):
    values = rng.normal(size=(5, 1000))
    usual = reach(values)
    values[:, :20] *= 1000
    assert reach(values) < 1.5 * usual
    errors = np.abs(values)
    found = colouring("distance", "", np.arange(5.0), errors, log=True)
    assert found["high"] < 5


# --- what can go wrong --------------------------------------------------------------------------
def one_line(answer, *words: str) -> None:
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1, answer.stderr
    assert all(word in answer.stderr for word in words), answer.stderr


def test_what_is_no_result_is_said_in_one_line(plain, tmp_path, here, monkeypatch):
    folder, _ = plain
    one_line(here("report", tmp_path / "nowhere"), "nowhere", "list")
    one_line(here("report", tmp_path), str(tmp_path), "list")
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    (damaged / "trace.csv").write_text("time\n1\n")
    one_line(here("report", damaged), "trace.csv", "damaged")
    (damaged / "trace.csv").unlink()
    one_line(here("report", damaged), "trace.csv", "missing")
    newer = shutil.copytree(folder, tmp_path / "newer")
    manifest = json.loads((newer / "manifest.json").read_text())
    (newer / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 99}))
    one_line(here("report", newer), "newer version", "99")
    one_line(here("animate", folder), "record: {models: true}")
    one_line(here("animate", folder, "-o", "x.mp4"), ".gif")
    monkeypatch.setattr(page_module, "find_spec", lambda name: None)
    one_line(here("report", folder), "pip install", "[report]")
    assert not (folder / "report.html").exists()


def test_a_page_says_what_was_not_recorded(plain, tmp_path):
    folder, _ = plain
    text = write_page([folder], tmp_path / "page.html").read_text()
    assert "record: {events: true}" in text
    assert "record: {models: true}" in text
    assert f"python -m simulator run {folder}/scenario.yaml" in text


def test_run_makes_a_page_and_a_baseline_has_one(tmp_path, here):
    write_tiny(tmp_path)
    answer = here("run", "tiny.yaml", "--set", "algorithm={kind: solitary}", "--report",
                  "--set", "stop.time=1", "--no-figures", cwd=tmp_path)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    (page,) = tmp_path.glob("results/*/report.html")
    assert str(page.relative_to(tmp_path)) in answer.stdout
    assert "nobody sends anything" in page.read_text()


def test_the_animation_moves(evil, tmp_path, monkeypatch):
    """As GIF and as animated PNG, which shows the last frame for longer, and begins again."""
    folder, result = evil
    drawn = animation._frames(result)
    monkeypatch.setattr(animation, "_frames", lambda result: drawn)
    for ending in ("gif", "png"):
        place = animation.write_animation(folder, tmp_path / f"moving.{ending}")
        with Image.open(place) as picture:
            assert picture.is_animated
            assert picture.n_frames == len(result.trace)
            assert picture.info["loop"] == 0
            shown = []
            for number in range(picture.n_frames):
                picture.seek(number)
                shown.append((picture.convert("RGB").tobytes(), picture.info["duration"]))
        assert [pixels for pixels, _ in shown] == [each.convert("RGB").tobytes() for each in drawn]
        assert shown[-1][1] > shown[0][1] > 0


# --- in a browser -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, or another that is installed."""
    api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if path is None:
        pytest.skip("no browser: install Debian's chromium to test pages")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=FLAGS.split(), timeout=1000 * PATIENCE
        )
        yield browser
        browser.close()


class Opened:
    """A page in a browser, and all that it complained of or asked for."""

    def __init__(self, browser, file: Path):
        self.page = browser.new_page(viewport={"width": 1000, "height": 1400})
        self.page.set_default_timeout(1000 * PATIENCE)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-charts]")

    def __call__(self, script: str):
        return self.page.evaluate(script)

    def chart(self, name: str, article: str = "p0"):
        """The traces of a chart, as lists."""
        place = f"#{article} [data-chart={name}]"
        self.page.locator(place).scroll_into_view_if_needed()
        self.page.wait_for_selector(f"{place}[data-drawn]")
        return self(
            f"document.querySelector('{place}').data.map(t => ({{name: t.name, type: t.type, "
            "x: Array.from(t.x), y: Array.from(t.y), z: t.z}))"
        )


@pytest.fixture(scope="module")
def evil_page(browser, evil, tmp_path_factory):
    opened = Opened(browser, write_page([evil[0]], tmp_path_factory.mktemp("page") / "evil.html"))
    yield opened
    opened.page.close()


def test_all_charts_are_drawn_though_nobody_scrolls(evil_page):
    names = evil_page(
        "[...document.querySelectorAll('#p0 [data-chart]')].filter(node => node.offsetParent)"
        ".map(node => node.dataset.chart)"
    )
    assert len(names) > 3
    for name in names:
        evil_page.page.wait_for_selector(f"#p0 [data-chart={name}][data-drawn]")


def test_the_charts_hold_the_trace(evil_page, evil):
    trace = pd.read_csv(evil[0] / "trace.csv")
    for axis in ("time", "communications"):
        (line,) = evil_page.chart(axis)
        assert line["x"] == trace[axis].tolist()
        assert line["y"] == trace["distance"].tolist()  # there are no true models
    delay, law = evil_page.chart("delay")
    assert sum(delay["y"]) == pytest.approx(1)
    assert sum(law["y"]) == pytest.approx(1)


def test_ticks_of_logarithmic_axes_are_round_at_any_zoom(evil_page):
    evil_page.chart("delay")
    chart = "document.querySelector('#p0 [data-chart=delay]')"
    for low, high in ((-3, 2), (-1.2, 0.1), (0, 0.2), (-12, 6)):
        evil_page(f"Plotly.relayout({chart}, {{'xaxis.range': [{low}, {high}]}})")
        ticks = np.array(evil_page(f"{chart}._fullLayout.xaxis.tickvals"))
        assert 3 <= len(ticks) <= 10
        assert ((ticks >= 0.99 * 10**low) & (ticks <= 1.01 * 10**high)).all()
        first = ticks / 10.0 ** np.floor(np.log10(ticks) + 1e-9)
        np.testing.assert_allclose(first * 10, np.round(first * 10), rtol=1e-6)
    evil_page(f"Plotly.relayout({chart}, {{'xaxis.autorange': true}})")


def test_the_slider_changes_the_colours(evil_page, evil):
    network = "document.getElementById('p0').report.network"
    colour = (
        f"(() => {{const n = {network}, r = n.ratio, copy = document.createElement('canvas');"
        "[copy.width, copy.height] = [n.canvas.width, n.canvas.height];"
        "const c = copy.getContext('2d', {willReadFrequently: true}); c.drawImage(n.canvas, 0, 0);"
        "return Array.from(n.px, (_, i) => Array.from("
        "c.getImageData(Math.round(r * n.px[i]), Math.round(r * n.py[i]), 1, 1).data))})()"
    )
    slider = evil_page.page.get_by_label("simulated time")
    slider.focus()
    slider.press("Home")
    before = evil_page(colour)
    slider.press("End")
    after = evil_page(colour)
    assert before != after
    # Red is negative, blue positive: at the start everybody has its own value.
    assert [red > blue for red, _, blue, _ in before] == [False] * 3 + [True] * 3
    evil_page.page.get_by_label("colour by").select_option(label="age of what it knows (s)")
    assert evil_page(colour) != after
    evil_page.page.get_by_label("colour by").select_option(index=0)


def test_a_click_shows_the_agents_messages(evil_page, evil):
    events = evil[1].events
    page = evil_page.page
    page.locator("#p0 canvas").scroll_into_view_if_needed()
    x, y = evil_page(
        "(() => {const n = document.getElementById('p0').report.network;"
        "return [n.px[2], n.py[2]]})()"
    )
    page.locator("#p0 canvas").click(position={"x": x, "y": y})
    # Names are text, also those that would be scripts.
    assert f"{EVIL} 2" in page.locator("#p0 .agent h3").inner_text()
    sends = events[(events["kind"] == "send") & (events[["agent", "peer"]] == 2).any(axis=1)]
    shown = page.locator("#p0 .messages .scroll tbody tr")
    assert shown.count() == len(sends) > 5
    first = shown.first.locator("td").all_inner_texts()
    out = sends["agent"].iloc[0] == 2
    peer = sends["peer" if out else "agent"].iloc[0]
    assert first[1:4] == ["to" if out else "from", f"{EVIL} {peer}", sends["what"].iloc[0]]


def test_keys_choose_an_agent(evil_page):
    page = evil_page.page
    page.locator("#p0 canvas").focus()
    page.keyboard.press("Escape")
    assert page.locator("#p0 .agent h3").count() == 0
    page.keyboard.press("ArrowRight")
    assert f"{EVIL} 0" in page.locator("#p0 .agent h3").inner_text()
    page.keyboard.press("ArrowLeft")
    assert f"{EVIL} 0" not in page.locator("#p0 .agent h3").inner_text()


def test_nothing_is_asked_for_and_nothing_is_wrong(evil_page):
    assert evil_page.complaints == []
    assert [url.split(":")[0] for url in evil_page.requests] == ["file"]
    assert "evil" in evil_page("document.title")
    assert EVIL in evil_page.page.locator("#p0 .words").inner_text()
    # Neither would anything be loaded, nor a script run that the page does not know.
    evil_page("fetch('http://127.0.0.1:9/').catch(() => {})")
    evil_page("document.body.append(Object.assign(document.createElement('script'),"
              "{text: 'window.bad = true'}))")  # fmt: skip
    assert evil_page("window.bad") is None
    assert len(evil_page.complaints) >= 2
    assert len(evil_page.requests) == 1


def test_sweeps_and_comparisons(browser, tmp_path):
    path, root = write_tiny(tmp_path), tmp_path / "results"
    grid = {"network.drop": [0, 0.5], "network.latency.mean": ["10 ms", "1 s"]}
    options = {"seeds": 2, "jobs": 1, "out": root, "figures": False}
    swept = sweep(path, grid, **options)
    compared = compare(path, {"network.drop": [0, 0.4]}, **options)
    grid = {"network.drop": [0, 0.4], "clock.rate": [1, 2]}
    diagram = compare(path, grid, **(options | {"seeds": 1}))
    own = write_page([root / swept.runs["folder"].iloc[0]])
    folders = [swept.folder, compared.folder, diagram.folder]
    opened = Opened(browser, write_page(folders, tmp_path / "all.html"))
    (heat,) = opened.chart("map")
    values = swept.summary["l2_error"].to_numpy().reshape(2, 2).T
    np.testing.assert_allclose(
        heat["z"], np.log10(values) if values.max() > 10 * values.min() else values
    )
    curves = [line for line in opened.chart("time") if line["name"]]
    assert [line["name"] for line in curves] == ["0", "0.5"]
    legend = opened("document.querySelector('#p0 [data-chart=time]').layout.legend.title.text")
    assert "share of messages lost" in legend
    (line,) = opened.chart("map", "p1")
    np.testing.assert_allclose(line["y"], compared.speedup["speedup"])
    assert len([line for line in opened.chart("time", "p1") if line["name"]]) == 2
    words = opened.page.locator("#p1").inner_text()
    assert [f"share of messages lost {drop}: " in words for drop in (0, 0.4)] == [True] * 2, words
    for text in (swept.folder, compared.folder):
        assert f"{text / 'request.yaml'}" in opened.page.content()
    # In a phase diagram a number stands once in its cell, of the decided or of the undecided ones.
    opened.chart("map", "p2")
    decided, grey = opened("document.querySelector('#p2 [data-chart=map]').data.map(t => t.text)")
    assert (np.array(decided, bool) ^ np.array(grey, bool)).all()
    # The first run has a page of its own, the others are told how to have one.
    page = opened.page
    page.locator("#p0 summary", has_text="Runs").click()
    links = page.locator("#p0 .tables a")
    links.first.wait_for(state="attached")  # tables are filled when they are opened
    assert links.count() == 1
    assert (tmp_path / links.first.get_attribute("href")).resolve() == own.resolve()
    heading = page.locator("#p0 .tables details").last.get_by_role("button", name="l2 error").first
    heading.click()
    cells = page.locator("#p0 .tables details").last.locator("tbody tr td:last-child")
    order = swept.runs.sort_values("l2_error", ascending=False)["folder"].tolist()
    assert cells.all_inner_texts() == order
    assert opened.complaints == []
    page.close()
    bounds = compare(path, limit_time="0.1 s", **options)
    opened = Opened(browser, write_page([bounds.folder], tmp_path / "bounds.html"))
    (line,) = opened.chart("map")
    np.testing.assert_allclose(line["x"], 0.1)
    assert line["y"] == ["async", "sync"]
    # A bound looks like one, says so, and has no interval.
    drawn = opened("document.querySelector('#p0 [data-chart=map]').data[0]")
    assert all(drawn["marker"]["pattern"]["shape"])
    assert opened.page.get_by_text("≥ 0.1").count() == 2
    assert drawn["error_x"]["array"] == [None, None]
    assert opened.complaints == []
    opened.page.close()
    damaged = swept.folder / "summary.csv"
    damaged.write_text(damaged.read_text()[:-5])
    with pytest.raises(Exception, match=r"summary\.csv: damaged"):
        write_page([swept.folder])
