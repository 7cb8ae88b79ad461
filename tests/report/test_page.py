"""The page of a report: what it holds is escaped, and in a browser it sorts, filters, and can be used by keyboard."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.report.site import folder as site
from looptune.report.site.html import page, versions
from looptune.runtime.outcome import WrongResult
from looptune.tune.results import studies
from looptune.tune.results.result import Sources, to_record
from looptune.tune.store.store import Row, Store
from tests.helpers import browser
from tests.helpers.browser import CHROMIUM, Page
from tests.helpers.report_database import BEST, GPU, SOURCES, TIMES, database, fill, result

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;'$\\frac$"
MANY = 3000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose kernel, directives, messages, sources and device hold HTML, and which has thousands of versions."""
    folder = tmp_path_factory.mktemp("page")
    context = replace(GPU, device=f"GPU {EVIL}")
    with Store.open(folder / "db") as store:
        with store.transaction():
            fill(store, context, times=TIMES | {f"loop k: unroll {n}": 1000.0 + n for n in range(10, MANY)})
        store.record(Row(context, f"loop k: {EVIL}", sweep="s1"), WrongResult(EVIL))
        made = result(kernel=EVIL, directives=EVIL, proof=EVIL, command=EVIL, ties=(EVIL,), sums=(EVIL,))
        store.save_conclusion(context, "s1", to_record(made, Sources(EVIL, EVIL, EVIL)))
    (written,) = site.write(studies.read([folder / "db"]), folder / "r")
    return written.page


class _Tags(html.parser.HTMLParser):
    """Counts what a parser takes for elements."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


@pytest.mark.wide
def test_everything_on_the_page_is_escaped(hostile: Path) -> None:
    """HTML in names, directives, messages and sources makes no element and no handler."""
    parser = _Tags()
    parser.feed(hostile.read_text())
    assert parser.tags.count("script") == 3
    assert "img" not in parser.tags
    assert not [a for a in parser.attributes if a.startswith("on")]
    assert "owned" in hostile.read_text()


@pytest.mark.wide
def test_the_page_is_one_file(hostile: Path) -> None:
    """Nothing on it is loaded from elsewhere, and its policy lets only its own script run."""
    text = hostile.read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "default-src 'none'" in text
    assert "url(http" not in text
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert len(json.loads(data[1])["versions"]) > MANY


def test_every_version_is_on_the_page(tmp_path: Path) -> None:
    """With its outcome, time, ratio and evidence; a duplicate with the time of the version that it repeats."""
    found = {v["directives"]: v for v in versions(studies.read([database(tmp_path / "db")]))}
    assert (found[BEST]["us"], found[BEST]["ratio"], found[BEST]["outcome"]) == (30.0, 100.0 / 30.0, "timed")
    assert len(found[BEST]["runs"]) == 5
    assert "registers 40" in found[BEST]["facts"]
    assert (found["loop k: tile k:2"]["outcome"], found["loop k: tile k:2"]["us"]) == ("duplicate", 100.0)
    assert found["loop k: unroll 3"]["message"] == "C[0][0]: got 1, expected 2"
    assert found["nest i: permute k, j, i"]["us"] is None


def test_the_sources_of_a_winner_are_on_the_page(tmp_path: Path) -> None:
    """C, transformed C and kernels, escaped; of an older database a line says that they are not there."""
    text = page(studies.read([database(tmp_path / "db", concluded=True)]), (), ())
    assert "void gemm(int n) { /* &lt;/script&gt; */ }" in text
    assert "def gemm(): 1 &lt; 2" in text
    assert SOURCES.emitted.count("<") == 1
    old = page(studies.read([database(tmp_path / "old")]), (), ())
    assert "The sources are not in this database" in old


# -- in a browser ---------------------------------------------------------------------------------------------------

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium or Chrome")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser.browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(tab: Page, hostile: Path) -> Page:
    tab.complaints.clear()
    tab.requests.clear()
    tab.media("light")
    tab.size(1300)
    tab.open(hostile)
    return tab


def column(opened: Page, number: int, rows: int = 5) -> list[str]:
    return opened.eval(
        f"[...document.querySelectorAll('#versions tbody tr')].slice(0, {rows}).map(r => r.cells[{number}].textContent)"
    )


def count(opened: Page) -> str:
    return opened.eval("document.getElementById('count').textContent")


def press_heading(opened: Page, table: str, number: int) -> str:
    """The button of a heading, by keyboard; what ``aria-sort`` is then."""
    opened.eval(f"document.querySelectorAll('#{table} th button')[{number}].focus()")
    opened.press("Enter")
    return opened.eval(f"document.querySelectorAll('#{table} th')[{number}].getAttribute('aria-sort')")


@in_browser
def test_the_page_runs_nothing_foreign(opened: Page, hostile: Path) -> None:
    """No script of the data's runs, the console is silent, and nothing but the page itself is asked for."""
    assert "owned" in opened.eval("document.title")
    assert opened.eval("document.title").startswith("looptune on GPU </script>")
    assert opened.eval("document.images.length") == 0
    assert opened.complaints == []
    assert opened.requests == [hostile.absolute().as_uri()]


@pytest.mark.wide
@in_browser
def test_rows_are_drawn_as_one_scrolls(opened: Page) -> None:
    """Of thousands a few hundred at first; scrolling to the end draws more, until all are there."""
    rows = "document.querySelectorAll('#versions tbody tr').length"
    first = opened.eval(rows)
    assert 20 < first < 1000
    before = 0
    while (now := opened.eval(rows)) != before:
        before = now
        opened.eval("document.querySelector('.box').scrollTop = 1e9")
        opened.call("Runtime.evaluate", expression="new Promise(done => setTimeout(done, 60))", awaitPromise=True)
    assert opened.eval(rows) == int(count(opened).split(" of ")[1].split()[0])


@in_browser
def test_versions_sort_by_every_column(opened: Page) -> None:
    """By number where there are numbers, either way; what has none stays last."""
    assert press_heading(opened, "versions", 3) == "ascending"
    assert column(opened, 3) == ["30 us", "40 us", "50 us", "60 us", "75 us"]
    assert press_heading(opened, "versions", 3) == "descending"
    assert column(opened, 3, 1) == ["4 ms"]
    assert press_heading(opened, "versions", 1) == "ascending"
    assert opened.eval("document.querySelectorAll('#versions th[aria-sort]').length") == 1
    assert opened.complaints == []


@in_browser
def test_tables_sort_by_keyboard(opened: Page) -> None:
    """The heading of a table is a button that one can reach and press."""
    assert opened.eval("document.querySelectorAll('#best th button').length") == 9
    assert press_heading(opened, "best", 4) == "ascending"
    assert press_heading(opened, "best", 4) == "descending"


@in_browser
def test_versions_are_filtered(opened: Page) -> None:
    """By words that all occur, and by outcome; the count is said."""
    opened.eval("document.getElementById('filter').focus()")
    opened.write("split guarded")
    assert count(opened).startswith("1 of ")
    assert column(opened, 1) == ["loop k: unroll 4, split, guarded"]
    opened.eval("document.getElementById('filter').value = ''")
    opened.eval(
        "const outcome = document.getElementById('outcome'); outcome.value = 'cut_off';"
        "outcome.dispatchEvent(new Event('input'))"
    )
    assert column(opened, 2) == ["cut off"]


@in_browser
def test_a_number_is_a_whole_one_and_the_filter_stands_in_the_address(opened: Page, hostile: Path) -> None:
    """``unroll 3`` is not in ``unroll 32``; a link with the filter leads to what it shows."""
    opened.eval(
        "data.versions.push(...[3, 32, 13].map(n => ({...data.versions[0], text: `f timed unroll ${n} ü`})));"
        "document.getElementById('filter').focus()"
    )
    opened.write("unroll 3 ü")
    assert count(opened).startswith("1 of ")
    assert opened.eval("location.hash") == "#words=unroll+3+%C3%BC"
    opened.eval("location.hash = '#words=split+guarded&outcome=timed'")
    opened.call("Runtime.evaluate", expression="new Promise(done => setTimeout(done, 60))", awaitPromise=True)
    assert column(opened, 1) == ["loop k: unroll 4, split, guarded"]
    assert opened.eval("document.getElementById('outcome').value") == "timed"
    opened.eval("document.getElementById('filter').value = '('")
    opened.eval("document.getElementById('filter').dispatchEvent(new Event('input'))")
    assert opened.complaints == []


@in_browser
def test_the_time_stands_first_on_a_phone(tab: Page, hostile: Path) -> None:
    """In the tables of the best, of times and of versions; on a wide screen the kernel does. Each row goes along."""
    first = "['best', 'times', 'versions'].map(t => document.querySelector(`#${t} th`).textContent)"
    for width, expected in ((400, ["time", "best", "time"]), (1300, ["kernel"] * 3)):
        tab.size(width)
        tab.open(hostile)
        assert tab.eval(first) == expected
        assert tab.eval("document.documentElement.scrollWidth") <= width
        cells = tab.eval("[...document.querySelector('#best tbody tr').cells].map(c => c.textContent)")
        assert (cells[0].split()[-1] in ("us", "ms", "s")) == (width == 400), cells
    tab.size(1300)


@in_browser
def test_rows_show_all_there_is_by_keyboard(opened: Page) -> None:
    """Tab comes into the table once, arrows go from row to row, Escape hides; text stays text."""
    opened.eval("document.getElementById('outcome').focus()")
    opened.eval("document.querySelector('#versions th:last-child button').focus()")
    opened.press("Tab")
    first = opened.eval("document.activeElement.cells[1].textContent")
    opened.press("ArrowDown")
    assert opened.eval("document.activeElement.cells[1].textContent") != first
    assert opened.eval("document.activeElement.getAttribute('aria-describedby')") == "detail"
    assert "runs: " in opened.eval("document.getElementById('detail').textContent")
    opened.press("End")
    opened.press("Home")
    assert opened.eval("document.activeElement.cells[1].textContent") == first
    opened.press("Escape")
    assert opened.eval("document.getElementById('detail').hidden") is True
    opened.eval("document.getElementById('filter').value = 'onerror'")
    opened.eval("document.getElementById('filter').dispatchEvent(new Event('input'))")
    opened.eval("document.querySelector('#versions tbody tr').focus()")
    assert "<img src=x" in opened.eval("document.getElementById('detail').textContent")
    assert opened.eval("document.images.length") == 0


@in_browser
def test_the_page_fits_a_narrow_window(opened: Page) -> None:
    """Nothing is wider than the window but what scrolls in itself."""
    opened.size(360, 700)
    assert opened.eval("document.documentElement.scrollWidth") <= 360
    opened.eval("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert opened.eval("document.documentElement.scrollWidth") <= 360


CONTRAST = """(() => {
  const light = (css) => css.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const back = light(getComputedStyle(document.body).backgroundColor);
  const of = (element) => light(getComputedStyle(element).color);
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return [back, ...["body", "a", ".faint", "td b", "figure svg"].map((name) => document.querySelector(name))
    .filter(Boolean).map((element) => ratio(of(element), back))];
})()"""


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_day_and_night(opened: Page, scheme: str) -> None:
    """Every kind of text has a contrast of 4.5 to the ground, which is dark where the reader wants it so."""
    opened.media(scheme)
    ground, *contrasts = opened.eval(CONTRAST)
    assert (ground > 0.5) == (scheme == "light")
    assert min(contrasts) >= 4.5


@in_browser
def test_a_printed_page_has_no_controls(opened: Page) -> None:
    """Tables are whole on paper, and nothing that one would press is there."""
    opened.media(media="print")
    assert opened.eval("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert opened.eval("getComputedStyle(document.querySelector('.box')).overflow") == "visible"
