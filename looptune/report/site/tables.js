"use strict";
// Tables that sort.
const UNITS = { us: 1, ms: 1e3, s: 1e6 };

/** What a cell is sorted by: microseconds, a ratio, a number, or its text. */
function sortKey(text) {
  const said = text.trim();
  const time = /^([\d.e+-]+) (us|ms|s)\b/.exec(said);
  if (time) return Number(time[1]) * UNITS[time[2]];
  const ratio = /^(1\/)?([\d.e+-]+)x/.exec(said);
  if (ratio) return ratio[1] ? 1 / Number(ratio[2]) : Number(ratio[2]);
  return said !== "" && !Number.isNaN(Number(said)) ? Number(said) : said === "-" ? null : said;
}

/** What is missing comes last, numbers before texts. */
function compare(a, b) {
  const missing = (a === null || a === undefined) - (b === null || b === undefined);
  if (missing || a === null || a === undefined) return missing;
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  return typeof a === "number" ? -1 : 1;
}

/** The items in the order of their keys, either way; what has no key stays last. */
function ordered(items, keyOf, descending) {
  return items.map((item, place) => [keyOf(item), place, item]).sort((a, b) => {
    const none = a[0] == null || b[0] == null;
    return (descending && !none ? -1 : 1) * compare(a[0], b[0]) || a[1] - b[1];
  }).map((entry) => entry[2]);
}

/** A button in each heading; `sort` is called with the column and whether it descends. */
function sortable(headings, sort) {
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sort(column, descending);
    });
  });
}

/** On a phone the time stands first: few columns are seen without scrolling. */
if (matchMedia("(max-width: 46rem)").matches)
  for (const heading of document.querySelectorAll("th[data-first]")) {
    const from = heading.cellIndex;
    for (const row of heading.closest("table").rows) if (row.cells.length > from) row.prepend(row.cells[from]);
  }

for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0];
  sortable([...table.tHead.rows[0].cells], (column, descending) => {
    body.append(...ordered([...body.rows], (row) => sortKey(row.cells[column].textContent), descending));
  });
}
