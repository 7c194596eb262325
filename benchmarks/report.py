"""How large a page of many agents is, how soon it opens, and how smoothly it moves.

Needs the extras events and report, Playwright and a browser:

    python benchmarks/report.py [AGENTS]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from simulator import load_scenario, run
from simulator.report.page import write_page
from simulator.runs.result import save_result
from simulator.store.store import Store, digest

ROOT = Path(__file__).parent.parent
FLAGS = (
    "--no-sandbox --headless --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
#: Play for four seconds; frames that the browser showed, and the time that a picture took.
PLAY = """
(messages) => new Promise((resolve) => {
  const {network, player} = document.getElementById("p0").report;
  const draw = network.draw.bind(network);
  let pictures = 0, busy = 0, frames = 0;
  network.draw = () => {
    const before = performance.now();
    draw();
    busy += performance.now() - before;
    pictures++;
  };
  if (messages) player.narrow(true);
  player.seek(player.range[0]);
  player.play();
  const start = performance.now();
  const count = (now) => {
    frames++;
    if (now - start < 4000) return requestAnimationFrame(count);
    player.pause();
    delete network.draw;
    resolve([(1000 * frames) / (now - start), pictures, busy / Math.max(1, pictures)]);
  };
  requestAnimationFrame(count);
})
"""


def made(agents: int, folder: Path) -> Path:
    """A run of so many agents, everything recorded, and its page."""
    overrides = {
        "task.agents": agents,
        "engine": "compiled",
        "stop.time": 20,
        "record": {"every": 0.5, "events": True, "models": True},
    }
    scenario = load_scenario(ROOT / "scenarios/moons_knn.yaml", overrides)
    store = Store(folder)
    place = save_result(store, run(scenario), full_hash=digest(scenario), wall_time=0.0)
    started = time.perf_counter()
    page = write_page([place])
    print(f"{agents:,} agents: page made in {time.perf_counter() - started:.1f} s")
    return page


def opened(page: Page, file: Path) -> None:
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-charts]")
    for name, what in (("ready", "text, network and tables"), ("charts", "charts")):
        moment = page.evaluate(f"Number(document.documentElement.dataset.{name})")
        print(f"  {what} after {moment / 1000:.2f} s")


def main(agents: int) -> None:
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_path is None:
        sys.exit("no chromium is installed")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = made(agents, Path(folder))
        print(f"  {file.stat().st_size / 1e6:.2f} MB")
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS.split())
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        opened(page, file)
        page.locator("#p0 canvas").scroll_into_view_if_needed()
        page.wait_for_timeout(1000)
        for messages, what in ((False, "the whole run"), (True, "messages, in slow motion")):
            rate, pictures, cost = page.evaluate(PLAY, messages)
            print(f"  {what}: {rate:.0f} frames/s; {pictures} pictures of {cost:.1f} ms each")
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
