// The story of one case of an evaluation, as the report has it: what it is cut to is cut there too.
import { count, el, number, plain, took, visible } from "./dom.js";
import { plan, query } from "./pieces.js";

const THOUGHT = /^\W*thought\W*:\s*(.+)/im;

export const steps = (items) => el("ol.steps", {}, items.map((item) => el(`li.${item.kind}${item.error ? ".bad" : ""}`, {}, step(item))));

const head = (title, ...rest) => el("div.what", {}, el("b", {}, title), rest.filter(Boolean).map((one) => el("span", {}, one)));
const words = (text, kind = "p") => text ? el(kind, {}, visible(text)) : null;

function step(item) {
  switch (item.kind) {
    case "plan": return [head("Plan"), plan(item.plan)];
    case "replan": return [head("Replan", item.after ? `after step ${item.after}` : ""), words(item.why), plan(item.plan)];
    case "says": return says(item);
    case "acts": return acts(item);
    case "span": return [head(plain(item.name || "part"), item.about), steps(item.items)];
    case "decides": return decides(item);
    case "cut": return head(`${count(item.items, "event")} left out here`);
    default: return [head("Note", item.about), words(item.text)];
  }
}

function says(item) {
  const about = [item.model, `${number(item.tokens)} tokens`, took(item.seconds)].filter(Boolean).join(", ");
  return [words(item.texts.join("\n").match(THOUGHT)?.[1], "p.thought"),
    el("details", {}, el("summary", {}, `The model wrote (${about})`), el("pre", { tabindex: 0 }, item.texts.join("\n\n")))];
}

function acts(item) {
  const rows = item.total > item.shown ? `${number(item.shown)} of ${count(item.total, "record")}` : item.total ? count(item.total, "record") : "";
  return [head(item.tool, rows, took(item.seconds)), item.input ? query(item.input) : null, words(item.note, item.error ? "p.fault" : "p.soft"), (item.tables ?? []).map(table)];
}

function decides(item) {
  return [head("Decision", item.stopped === "answered" ? "" : plain(item.stopped)), el("p.answer", {}, item.answer || "None"),
    item.reasons.map((reason) => words(reason)), item.evidence.length ? el("p.soft", {}, `Evidence: ${item.evidence.join(", ")}`) : null,
    (item.doubts ?? []).map((text) => words(text, "p.fault")),
    item.objections.map((text) => words(text, "p.fault"))];
}

const table = ({ columns, numeric, rows }) => el("div.scroll", { tabindex: 0, role: "group", "aria-label": "Rows" }, el("table", {},
  el("thead", {}, el("tr", {}, ["record", ...columns].map((name, at) => el(numeric[at - 1] ? "th.n" : "th", { scope: "col" }, name)))),
  el("tbody", {}, rows.map(([id, ...cells]) => el("tr", {}, el("td.id", {}, id), cells.map((one, at) => el(numeric[at] ? "td.n" : "td", {}, String(one))))))));
