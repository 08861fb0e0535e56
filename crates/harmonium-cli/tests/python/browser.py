"""Reports in a real browser, light and dark: they render, without a console message and without any request.

    browser.py <harmonium> <chromium> <folder for screenshots>
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

binary, chromium, shots = Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3]).resolve()


def harmonium(*words, cwd):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, f"harmonium {words}: {done.stderr}"


def sequences(rng):
    """Two families with some noise."""
    families, letters = ["ACDEFGHIKLMNPQRSTVWY", "YWVTSRQPNMLKIHGFEDCA"], "ACDEFGHIKLMNPQRSTVWY-"
    noisy = lambda s: "".join(rng.choice(letters) if rng.random() < 0.3 else c for c in s)
    return "".join(f">s{i}\n{noisy(families[i % 2])}\n" for i in range(300))


def people(rng):
    """Columns of every kind, some entries missing."""
    lines = ["name,height,smokes,colour,children,town"]
    for i in range(300):
        tall = rng.random() < 0.5
        smokes = "" if rng.random() < 0.1 else "yes" if rng.random() < (0.8 if tall else 0.2) else "no"
        height = rng.gauss(1.85 if tall else 1.65, 0.05)
        colour = rng.choice(["red", "green", "blue"])
        lines.append(f"p{i},{height:.3f},{smokes},{colour},{rng.randrange(5)},{rng.choice(['Rome', 'Oslo'])}")
    return "\n".join(lines) + "\n"


def runs(folder):
    """Images, sequences and a mixed table."""
    rng = random.Random(3)
    (folder / "family.fasta").write_text(sequences(rng))
    (folder / "people.csv").write_text(people(rng))
    quick = ["-q", "--updates"]
    harmonium("train", "bars-and-stripes:4x4", "--hidden", 16, *quick, 2000, "-o", "images", cwd=folder)
    harmonium("train", "family.fasta", "--hidden", 10, *quick, 500, "-o", "sequences", cwd=folder)
    harmonium("train", "people.csv", "--hidden", 8, *quick, 500, "-o", "table", cwd=folder)
    for name in ["images", "sequences", "table"]:
        harmonium("report", name, "-q", cwd=folder)
        yield folder / name


def look(browser, file, scheme, shot):
    """Opens a file; what the browser said and asked for, and what is on the page."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1100, "height": 900})
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_load_state("networkidle")
    if shot:
        page.screenshot(path=shot, full_page=True)
    there = page.evaluate("""() => ({
        charts: [...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().width),
        images: [...document.images].map(e => e.complete ? e.naturalWidth : 0),
        wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
        texts: [...document.querySelectorAll('svg text')].map(e => e.textContent).filter(t => /NaN|inf|undefined/.test(t)),
        paper: getComputedStyle(document.body || document.documentElement).backgroundColor,
    })""")
    page.close()
    foreign = [url for url in asked if url != file.as_uri() and not url.startswith("data:")]
    assert not said, f"{file}: the console says {said}"
    assert not foreign, f"{file}: asks for {foreign}"
    return there


shots.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for run in runs(Path(folder)):
        papers = set()
        for scheme in ["light", "dark"]:
            there = look(browser, run / "report.html", scheme, shots / f"{run.name}-{scheme}.png")
            assert len(there["charts"]) >= 6 and min(there["charts"]) > 100, there
            assert all(width > 0 for width in there["images"]), there
            assert not there["wide"], f"{run}: the page has to be scrolled sideways"
            assert not there["texts"], there
            papers.add(there["paper"])
        assert len(papers) == 2, f"light and dark look the same: {papers}"
        figures = sorted((run / "figures").iterdir())
        expected = {".svg", ".png"} if run.name == "images" else {".svg"}
        assert {f.suffix for f in figures} == expected, figures
        for figure in figures:
            look(browser, figure, "light", None)
        print(f"{run.name}: {len(there['charts'])} charts, {len(there['images'])} pictures, {len(figures)} files")
    browser.close()
