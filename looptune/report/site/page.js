"use strict";
// The table of all versions, whose rows are drawn in slices as one scrolls; tables.js is on the page before it.
// Whatever comes from the data is set as text, never as HTML.
const SLICE = 150;
const data = JSON.parse(document.getElementById("data").textContent);

const table = document.getElementById("versions");
const body = table.tBodies[0];
const box = table.parentElement;
const detail = document.getElementById("detail");
const controls = { words: "filter", kernel: "kernel", outcome: "outcome" };
for (const name of Object.keys(controls)) controls[name] = document.getElementById(controls[name]);
const columns = [...table.tHead.rows[0].cells].map((heading) => heading.dataset.field);
let shown = data.versions;
let order = null;

function timeText(us) {
  for (const [limit, scale, unit] of [[1e3, 1, "us"], [1e6, 1e3, "ms"], [Infinity, 1e6, "s"]])
    if (us < limit) return `${Number((us / scale).toPrecision(3))} ${unit}`;
  return "";
}

function cellText(version, field) {
  const value = version[field];
  if (value === null || value === undefined) return "-";
  if (field === "us") return timeText(value);
  if (field === "ratio") return value >= 0.1 ? `${Number(value.toPrecision(3))}x` : `1/${Math.round(1 / value)}x`;
  if (field === "directives") return value ? value.replaceAll("\n", "; ") : "(none)";
  return String(value).replaceAll("_", " ");
}

function draw(version) {
  const row = document.createElement("tr");
  row.tabIndex = -1;
  row.version = version;
  for (const field of columns) {
    const cell = row.insertCell();
    cell.textContent = cellText(version, field);
    cell.className = table.tHead.querySelector(`[data-field=${field}]`).className;
  }
  return row;
}

/** The next rows, if the end of what is drawn is near. */
function more() {
  while (body.rows.length < shown.length && box.scrollTop + 2 * box.clientHeight + 400 > table.offsetHeight) {
    const from = body.rows.length;
    body.append(...shown.slice(from, from + SLICE).map(draw));
    if (!from && body.rows.length) body.rows[0].tabIndex = 0;
    if (!box.clientHeight) break;
  }
}

/** Whether a word occurs; a number at either end of it is a whole one: `unroll 4` is not in `unroll 48`. */
function finder(word) {
  const text = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found = new RegExp((/^\d/.test(word) ? "(?<![\\d.])" : "") + text + (/\d$/.test(word) ? "(?![\\d]|\\.\\d)" : ""));
  return (v) => found.test(v.text);
}

/** What the controls say, in the part of the address behind `#`, so that a link leads to it. */
function toAddress() {
  const said = new URLSearchParams();
  for (const [name, control] of Object.entries(controls)) if (control.value) said.set(name, control.value);
  const text = said.toString();
  if (text || location.hash.includes("=")) history.replaceState(null, "", `#${text || "every"}`);
}

function fromAddress() {
  if (!location.hash.includes("=")) return;
  const said = new URLSearchParams(location.hash.slice(1));
  for (const [name, control] of Object.entries(controls)) control.value = said.get(name) ?? "";
  refresh();
  document.getElementById("every").scrollIntoView();
}

function refresh() {
  const words = controls.words.value.toLowerCase().split(/\s+/).filter(Boolean).map(finder);
  shown = data.versions.filter((v) =>
    (!controls.kernel.value || v.name === controls.kernel.value) &&
    (!controls.outcome.value || v.outcome === controls.outcome.value) &&
    words.every((occurs) => occurs(v)));
  if (order) shown = ordered(shown, (v) => v[order.field], order.descending);
  document.getElementById("count").textContent = `${shown.length} of ${data.versions.length} versions`;
  body.replaceChildren();
  box.scrollTop = 0;
  hide();
  more();
}

function line(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** Everything that is known of a row's version. */
function show(row) {
  const v = row.version;
  const parts = [line("strong", `${v.name}: ${cellText(v, "outcome")}`), line("pre", v.directives || "(no directives)", "wrap")];
  if (v.us !== null) {
    const spread = v.q1 === null ? "" : `, quartiles ${timeText(v.q1)} .. ${timeText(v.q3)}`;
    parts.push(line("div", `${timeText(v.us)}${spread}; ${cellText(v, "ratio")} over the default`));
  }
  if (v.runs.length) parts.push(line("div", `runs: ${v.runs.map(timeText).join(", ")}`));
  if (v.facts) parts.push(line("div", v.facts));
  if (v.message) parts.push(line("pre", v.message, "wrap"));
  detail.replaceChildren(...parts);
  detail.hidden = false;
  body.querySelector("[aria-describedby]")?.removeAttribute("aria-describedby");
  row.setAttribute("aria-describedby", "detail");
}

function hide() {
  detail.hidden = true;
  body.querySelector("[aria-describedby]")?.removeAttribute("aria-describedby");
}

function move(row, key) {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[key];
  if (key === "PageDown" || key === "End" || row.rowIndex + 2 > body.rows.length) more();
  const place = Math.min(Math.max([...body.rows].indexOf(row) + step, 0), body.rows.length - 1);
  const next = body.rows[place];
  row.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

for (const v of data.versions) v.text = `${v.name} ${v.outcome} ${v.directives} ${v.message}`.toLowerCase();
sortable([...table.tHead.rows[0].cells], (column, descending) => {
  order = { field: columns[column], descending };
  refresh();
});
for (const control of Object.values(controls)) control.addEventListener("input", () => { refresh(); toAddress(); });
window.addEventListener("hashchange", fromAddress);
box.addEventListener("scroll", more);
window.addEventListener("resize", more);
window.addEventListener("scroll", () => {
  const row = body.querySelector("[aria-describedby]")?.getBoundingClientRect();
  if (row && (row.bottom < 0 || row.top > window.innerHeight)) hide();
}, { passive: true });
body.addEventListener("mouseover", (event) => { const row = event.target.closest("tr"); if (row) show(row); });
body.addEventListener("mouseleave", hide);
body.addEventListener("focusin", (event) => show(event.target.closest("tr")));
body.addEventListener("focusout", hide);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
  const row = event.target.closest?.("#versions tbody tr");
  if (!row || !["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"].includes(event.key)) return;
  event.preventDefault();
  move(row, event.key);
});
refresh();
fromAddress();
