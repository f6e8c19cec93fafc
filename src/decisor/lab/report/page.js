// The list of cases. Everything is set as text, never as markup: what models and data say is shown, not run.
import { el, fold, lead, money, number, pick, plain, visible } from "./dom.js";
import { tell } from "./story.js";
const data = JSON.parse(pick("rows").textContent);
const { names, rows } = data;
const [BENCH, CASE, WHO, REPEAT, STATE, GROUP, ANSWER, GOLD, FAILURE, CALLS, TOKENS, DOLLARS, SECONDS, BEFORE, AT, TEXT] = [...Array(16).keys()];
rows.forEach((row, at) => { row[AT] = at; });
const STEP = 60;
const list = pick("list"), count = pick("count"), more = pick("more");
let found = [], shown = 0, state = "";

const short = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits });

function text(row) {
  return row[TEXT] ??= [row[CASE], row[ANSWER], row[GOLD], row[FAILURE], names.who[row[WHO]], names.group[row[GROUP]]].join("\n").toLowerCase();
}

function filter() {
  const asked = pick("text").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = [["bench", BENCH], ["who", WHO], ["group", GROUP]].map(([id, at]) => [at, pick(id)?.value ?? ""]).filter(([, value]) => value !== "");
  const change = pick("change")?.value ?? "";
  const failure = pick("failure")?.value ?? "";
  const kept = rows.filter((row) => wanted.every(([at, value]) => row[at] === +value) && (!failure || row[FAILURE] === failure) &&
    (!change || changed(row, change)) && asked.every((word) => text(row).includes(word)));
  const by = pick("sort").value;
  found = kept.filter((row) => state === "" || row[STATE] === +state);
  if (by) found = found.slice().sort((a, b) => b[by] - a[by]);
  for (const chip of document.querySelectorAll(".chips button")) {
    const of = chip.dataset.state === "" ? kept.length : kept.reduce((sum, row) => sum + (row[STATE] === +chip.dataset.state), 0);
    chip.querySelector("small").textContent = number(of);
    chip.setAttribute("aria-pressed", String(chip.dataset.state === state));
  }
  count.textContent = `${number(found.length)} of ${number(rows.length)} outcomes`;
  list.replaceChildren();
  shown = 0;
  show();
}

function changed(row, how) {
  if (row[BEFORE] === null) return how === "new";
  const now = row[STATE] === 0, then = row[BEFORE] === 0;
  return how === "gained" ? now && !then : how === "lost" ? then && !now : how === "other" ? row[STATE] !== row[BEFORE] && now === then : false;
}

function show() {
  const part = document.createDocumentFragment();
  for (const row of found.slice(shown, shown + STEP)) part.append(line(row));
  shown = Math.min(found.length, shown + STEP);
  list.append(part);
  more.hidden = shown >= found.length;
  more.firstElementChild.textContent = `Show ${Math.min(STEP, found.length - shown)} more`;
}

function line(row) {
  const at = row[AT], name = names.state[row[STATE]];
  const gold = name !== "right" && row[GOLD] ? el("span.gold", {}, `  instead of ${row[GOLD]}`) : null;
  const before = row[BEFORE] !== null && row[BEFORE] !== row[STATE] ? ` was ${plain(names.state[row[BEFORE]])}` : "";
  const button = el("button.row", { type: "button", "aria-expanded": "false" },
    el(`span.pill.${name}`, {}, plain(name)),
    el("span.id", {}, row[CASE], el("small", {}, `${row[REPEAT] ? ` try ${row[REPEAT] + 1}` : ""}${row[FAILURE] ? ` ${plain(row[FAILURE])}` : ""}${before}`)),
    el("span.who", {}, names.who[row[WHO]]), el("span.said", {}, row[ANSWER] || "no answer", gold),
    el("span.cost", {}, `${number(row[CALLS])} call${row[CALLS] === 1 ? "" : "s"}`));
  button.addEventListener("click", () => toggle(button, at));
  const item = el("li", {}, button);
  item.dataset.at = at;
  return item;
}

function toggle(button, at) {
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) button.nextElementSibling.remove();
  else button.after(story(rows[at], JSON.parse(pick(`s${at}`)?.textContent ?? "{}")));
}

function story(row, data) {
  const { story: list, nodes } = tell(data);
  const box = el("div.told", {},
    data.question ? [el("h4", {}, "Question"), el("p.ask", {}, visible(data.question))] : null,
    data.goal && data.goal !== data.question ? el("p", {}, visible(data.goal)) : null,
    data.rules ? fold("Rules", el("p", {}, visible(data.rules))) : null,
    facts(row, data), nodes,
    nodes.length ? null : (data.reasons ?? []).map((reason) => el("p", {}, visible(reason))),
    data.entries?.length ? [el("h4", {}, "What happened"), list.node] : el("p.note", {}, "No trace was kept of this case."));
  lead(box);
  return box;
}

function facts(row, data) {
  const pairs = [
    ["Answer", row[ANSWER] || "none"], ["Accepted", row[GOLD]], ["As written", data.text === row[ANSWER] ? "" : data.text],
    ["Technique", names.who[row[WHO]]], ["Group", names.group[row[GROUP]]], ["Ended", plain(data.stopped ?? "")],
    ["Failure", plain(row[FAILURE])], ["Kinds", (data.tags ?? []).map(plain).join(", ")],
    ["LLM calls", number(row[CALLS])], ["Tokens", number(row[TOKENS])], ["Cost", row[DOLLARS] === null ? "price unknown" : money(row[DOLLARS])],
    ["Seconds", `${short(row[SECONDS], 2)}${data.critical ? `, of these ${short(data.critical, 2)} on the critical path` : ""}`],
    ...Object.entries({ ...data.metrics, ...data.counts }).filter(([, value]) => value !== null).map(([name, value]) => [plain(name), short(value, 3)])];
  return el("dl.facts", {}, pairs.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, visible(value)))));
}

let waiting = 0;
pick("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
for (const one of document.querySelectorAll(".filters select")) one.addEventListener("change", filter);
for (const chip of document.querySelectorAll(".chips button")) chip.addEventListener("click", () => { state = chip.dataset.state; filter(); });
more.firstElementChild.addEventListener("click", show);
filter();
document.documentElement.dataset.ready = "yes";
