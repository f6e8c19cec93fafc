// Pieces of a story: queries, rows, plans and their differences.
import { button, cell, count, el, visible } from "./dom.js";

const FIRST_ROWS = 8, NEXT_ROWS = 200;
const KEYWORDS = "select from where group by order having limit offset join left right inner outer full cross on using as and or not in is null like between exists case when then else end with recursive union all distinct asc desc over partition match optional return unwind call yield skip create filter within interval cast true false";
const PIECES = new RegExp(`(?<comment>--[^\\n]*|/\\*[\\s\\S]*?\\*/)|(?:'(?:[^'\\\\]|''|\\\\.)*')|(?<word>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`, "gi");
/** Whether a text is a query, and no words to search for. */
export const is_query = (text) => QUERY.test(text);
const QUERY = /^\s*(?:select|with|match|optional|unwind|call|return|explain)\b/i;

/** A query, its words told apart. */
export function query(text) {
  const shown = visible(text);
  if (shown.length > 20000 || !is_query(shown)) return el("pre", { tabindex: 0 }, shown);
  const parts = [];
  let end = 0;
  for (const match of shown.matchAll(PIECES)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    parts.push(shown.slice(end, match.index), kind ? el(`span.${kind}`, {}, match[0]) : match[0]);
    end = match.index + match[0].length;
  }
  return el("pre.sql", { tabindex: 0 }, parts, shown.slice(end));
}

/** Records as tables: a new one where the columns change. `cited`: those that the decision rests on. `files`: where their
    result can be had as a file, "" if nowhere. */
export function records(rows, cited, from = "", files = "") {
  const groups = [];
  for (const one of rows) {
    const names = [...Object.keys(one.fields), ...(one.text ? ["text"] : [])];
    const key = JSON.stringify(names);
    if (groups.at(-1)?.key !== key) groups.push({ key, names, rows: [] });
    groups.at(-1).rows.push(one);
  }
  return groups.map((group, at) => table(group.names, group.rows, cited, from, at ? "" : files));
}

function table(names, rows, cited, from, files) {
  const numeric = names.map((name) => rows.some((one) => typeof one.fields[name] === "number"));
  const sources = new Set(rows.map((one) => one.source));
  const make = (one) => el("tr", { id: `r-${one.id}`, class: cited.has(one.id) ? "cited" : null },
    names.map((name, at) => el(numeric[at] ? "td.n" : "td", {}, name === "text" && one.text ? visible(one.text) : cell(one.fields[name]),
      !at && sources.size > 1 && one.source ? el("small", {}, ` ${one.source}`) : null)));
  const items = rows.map((one) => ({ values: names.map((name) => name === "text" && one.text ? one.text : one.fields[name]), make: () => make(one) }));
  const box = el("div.scroll", { tabindex: 0, role: "group", "aria-label": `Rows of ${from || "a query"}` },
    el("table.rows", {}, el("thead", {}, el("tr", {}, names.map((name, at) => el(numeric[at] ? "th.n" : "th", { scope: "col" }, visible(name))))), el("tbody")));
  return el("div", {}, box, equip(box.firstChild, items, files, FIRST_ROWS));
}

/** The tables of an evidence that Python wrote, with the same tools. `files`: gives where a result can be had as a file. */
export function equip_evidence(nodes, files) {
  for (const box of nodes.flatMap((one) => [...one.querySelectorAll?.(".scroll[data-result]") ?? []])) {
    const items = [...box.querySelectorAll("tbody tr")].map((row) => ({ values: [...row.cells].map((one) => one.classList.contains("n") ? Number(one.textContent.replaceAll(",", "")) : one.textContent), make: () => row }));
    box.after(equip(box.firstChild, items, files(box.dataset.result), items.length));
  }
}

/** Sort, filter, show more, and take along. Of many rows only those that are shown are made. */
function equip(table, items, files, first) {
  const body = table.querySelector("tbody"), heads = [...table.querySelectorAll("thead th")], state = el("span.soft", { role: "status" });
  let shown = first, by = -1, falling = false, words = "";
  const more = button("", () => { shown += NEXT_ROWS; draw(); }, { kind: "quiet" });
  function draw() {
    const found = items.filter(({ values }) => !words || values.some((one) => String(one ?? "").toLowerCase().includes(words)));
    if (by >= 0) found.sort((a, b) => order(a.values[by], b.values[by]) * (falling ? -1 : 1));
    body.replaceChildren(...found.slice(0, shown).map((one) => one.row ??= one.make()));
    more.hidden = found.length <= shown;
    more.textContent = `Show ${Math.min(NEXT_ROWS, found.length - shown)} more of ${count(found.length, "row")}`;
    state.textContent = words ? `${found.length} of ${count(items.length, "row")}` : "";
    heads.forEach((head, at) => { if (at === by) head.setAttribute("aria-sort", falling ? "descending" : "ascending"); else head.removeAttribute("aria-sort"); });
  }
  if (items.length > 1) heads.forEach((head, at) => {
    const text = head.textContent;
    head.replaceChildren(button(text, () => { falling = by === at ? !falling : head.classList.contains("n"); by = at; draw(); }, { kind: "quiet", "aria-label": `Sort by ${text}` }));
  });
  const field = el("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" });
  field.addEventListener("input", () => { words = field.value.trim().toLowerCase(); draw(); });
  const links = files ? ["csv", "parquet"].map((kind) => el("a.button.quiet", { href: `${files}.${kind}`, download: true }, kind === "csv" ? "Download CSV" : "Parquet")) : [];
  draw();
  return items.length <= 1 && !links.length ? "" : el("div.tools", {}, items.length > FIRST_ROWS ? field : null, state, more, links);
}

/** Numbers by size, texts by their letters, what is missing last. */
function order(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

/** A plan; its steps are numbered unless they bring names of their own. */
export function plan(steps) {
  const is_named = steps.some((step) => /^Q\d/.test(step));
  return is_named ? el("div", {}, steps.map((step) => el("p", {}, visible(step)))) : el("ol", {}, steps.map((step) => el("li", {}, visible(step))));
}

/** A replan: what stays, what is new, what is dropped. */
export function difference(before, after) {
  const lines = compared(before, after).map(([mark, step]) => el(`li.${mark}`, {},
    el(mark === "new" ? "ins" : mark === "dropped" ? "del" : "span", {}, visible(step)), mark === "stays" ? null : el("small", {}, ` ${mark}`)));
  return el("ul.diff", {}, lines);
}

/** By the longest common subsequence of the steps. */
export function compared(before, after) {
  const same = (i, j) => plain(before[i]) === plain(after[j]);
  const table = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      table[i][j] = same(i, j) ? 1 + table[i + 1][j + 1] : Math.max(table[i + 1][j], table[i][j + 1]);
  const lines = [];
  let i = 0, j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && same(i, j)) { lines.push(["stays", after[j++]]); i++; }
    else if (i < before.length && (j >= after.length || table[i + 1][j] >= table[i][j + 1])) lines.push(["dropped", before[i++]]);
    else lines.push(["new", after[j++]]);
  }
  return lines;
}

const plain = (step) => step.toLowerCase().split(/\s+/).filter(Boolean).join(" ");
