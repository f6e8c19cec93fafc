// Pieces of a story: queries, rows, plans and their differences.
import { button, cell, count, el, visible } from "./dom.js";

const FIRST_ROWS = 8, NEXT_ROWS = 200;
const KEYWORDS = "select from where group by order having limit offset join left right inner outer full cross on using as and or not in is null like between exists case when then else end with recursive union all distinct asc desc over partition match optional return unwind call yield skip create filter within interval cast true false";
const PIECES = new RegExp(`(?<comment>--[^\\n]*|/\\*[\\s\\S]*?\\*/)|(?<string>'(?:[^'\\\\]|''|\\\\.)*')|(?<number>\\b\\d+(?:\\.\\d+)?\\b)|(?<word>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`, "gi");
const QUERY = /^\s*(?:select|with|match|optional|unwind|call|return|explain)\b/i;

/** A query, its words told apart. */
export function query(text) {
  const shown = visible(text);
  if (shown.length > 20000 || !QUERY.test(shown)) return el("pre", { tabindex: 0 }, shown);
  const parts = [];
  let end = 0;
  for (const match of shown.matchAll(PIECES)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    parts.push(shown.slice(end, match.index), el(`span.${kind}`, {}, match[0]));
    end = match.index + match[0].length;
  }
  return el("pre.sql", { tabindex: 0 }, parts, shown.slice(end));
}

/** Records as tables: a new one where the columns change. `cited`: those that the decision rests on. */
export function records(rows, cited, from = "") {
  const groups = [];
  for (const one of rows) {
    const names = [...Object.keys(one.fields), ...(one.text ? ["text"] : [])];
    const key = JSON.stringify(names);
    if (groups.at(-1)?.key !== key) groups.push({ key, names, rows: [] });
    groups.at(-1).rows.push(one);
  }
  return groups.map((group) => table(group.names, group.rows, cited, from));
}

function table(names, rows, cited, from) {
  const numeric = names.map((name) => rows.some((one) => typeof one.fields[name] === "number"));
  const line = (one) => el("tr", { id: `r-${one.id}`, class: cited.has(one.id) ? "cited" : null },
    el("td.id", {}, one.id, one.source && one.source !== from ? el("small", {}, ` ${one.source}`) : null),
    names.map((name, at) => el(numeric[at] ? "td.n" : "td", {}, name === "text" && one.text ? visible(one.text) : cell(one.fields[name]))));
  const body = el("tbody", {}, rows.slice(0, FIRST_ROWS).map(line));
  let next = FIRST_ROWS;
  const box = el("div.scroll", { tabindex: 0, role: "group", "aria-label": `Rows of ${from || "a query"}` },
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "record"), names.map((name, at) => el(numeric[at] ? "th.n" : "th", { scope: "col" }, visible(name))))), body));
  if (rows.length <= next) return box;
  const words = () => `Show ${Math.min(NEXT_ROWS, rows.length - next)} more of ${count(rows.length, "row")}`;
  const more = button(words(), () => {
    body.append(...rows.slice(next, next + NEXT_ROWS).map(line));
    next += NEXT_ROWS;
    if (next >= rows.length) more.remove();
    else more.textContent = words();
  }, { kind: "plain" });
  return el("div", {}, box, more);
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
