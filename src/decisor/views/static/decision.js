// A decision: the answer, its reasons with figures that lead to their cells, its charts, and the evidence.
import { cell, el, markup, visible } from "./dom.js";

const CITATION = /[[［【〔]\s*(o\d+(?:\.\w+)?(?:\s*[,;，；、]\s*o\d+(?:\.\w+)?)*)\s*[\]］】〕]/y;
const RECORD = /o\d+(?:\.\w+)?/g;
const ENDS = { budget: "A limit ended the run.", steps: "The technique's step limit ended the run.", no_answer: "The data do not decide it.", failed: "The run failed." };
const DOUBTED = 5;

/** A result and its picture, part by part. `charts`: drawn already, where the picture has none. */
export function resultNodes(result, picture, charts = markup(picture.charts)) {
  return [decision(result, picture.cells), ...charts, evidence(result, picture.cells)].filter(Boolean);
}

/** `result`: as `decisor ask --json` prints it; `cells`: where each figure stands. */
export function decision(result, cells) {
  const best = ["budget", "steps"].includes(result.stopped) && result.answer ? " This is the best supported answer until then." : "";
  const links = new Links(result.evidence, cells);
  return el(result.answer ? "section.card.decision" : "section.card.decision.open", { "aria-label": "Decision" },
    el("h2", {}, "Decision"),
    el(result.answer ? "p.answer" : "p.answer.none", {}, visible(result.answer) || "None"),
    ENDS[result.stopped] ? el("p.soft", {}, ENDS[result.stopped] + best) : null,
    result.reasons.map((text) => el("p", {}, links.text(text))),
    result.runner_up ? el("p.beside", {}, el("b", {}, "Runner-up "), links.text(result.runner_up)) : null,
    result.assumptions.length ? el("div.beside", {}, el("b", {}, "Assumptions"), el("ul", {}, result.assumptions.map((text) => el("li", {}, links.text(text))))) : null,
    result.evidence.objections.map((one) => el("p.fault.objection", {}, links.text(one.text))),
    (result.evidence.pitfalls ?? []).map((one) => el("p.fault", {}, "Doubtful ", links.text(`[${one.records.slice(0, DOUBTED).join(", ")}]: ${one.text}`))));
}

class Links {
  constructor(evidence, cells) {
    this.records = new Set(evidence.records.map((one) => one.id));
    this.figures = new Map(evidence.figures.filter((one) => one.support).map((one) => [one.text, one.support]));
    this.cells = cells;
    this.texts = [...this.figures.keys()].filter(Boolean).sort((a, b) => b.length - a.length);
  }

  /** The text in parts; figures and citations lead to what they come from. */
  text(text) {
    const parts = [];
    let at = 0, start = 0;
    const put = (length, node) => { parts.push(visible(text.slice(start, at)), node); at += length; start = at; };
    while (at < text.length) {
      CITATION.lastIndex = at;
      const citation = CITATION.exec(text);
      if (citation) { put(citation[0].length, this.citation(citation[1])); continue; }
      const figure = /[\d.,]/.test(text[at - 1] ?? "") || /\w/.test(text[at - 1] ?? "") ? null : this.texts.find((one) => text.startsWith(one, at) && !/^(\w|[.,]\d)/.test(text.slice(at + one.length)));
      if (figure) put(figure.length, this.figure(figure));
      else at += 1;
    }
    parts.push(visible(text.slice(start)));
    return parts.filter(Boolean);
  }

  citation(text) {
    return el("span.cites", {}, text.match(RECORD).map((id) => {
      const record = this.records.has(id) ? id : [...this.records].find((one) => one.startsWith(`${id}.`));
      return record ? el("a.cite", { href: `#e-${record}` }, id) : el("span.cite", {}, id);
    }));
  }

  figure(text) {
    const support = this.figures.get(text);
    const place = this.cells[text]?.[0], title = support.replace(/^computed: /, "");
    return place ? el("a.figure", { href: `#c-${place.record}-${place.column}`, title }, text) : el("span.figure", { title }, text);
  }
}

/** The records that it rests on; columns that hold a figure of the answer come first. */
export function evidence(result, cells) {
  const { records, figures } = result.evidence;
  if (!records.length) return null;
  const groups = new Map();
  for (const one of records) {
    const names = [...Object.keys(one.fields), ...(one.text ? ["text"] : [])], key = JSON.stringify(names);
    groups.set(key, { names, rows: [...(groups.get(key)?.rows ?? []), one] });
  }
  const hits = new Set(Object.values(cells).flat().map((one) => `${one.record}-${one.column}`));
  const computed = figures.filter((one) => one.support.startsWith("computed: "));
  return el("section", { "aria-label": "Evidence" }, el("h2", {}, "Evidence"),
    [...groups.values()].map((group) => table(group, hits)),
    computed.length ? el("dl.figures", {}, computed.map((one) => el("div", {}, el("dt", {}, one.text), el("dd", {}, visible(one.support.replace(/^computed: /, "")))))) : null);
}

function table({ names, rows }, hits) {
  const column = (name, at) => name === "text" && at >= Object.keys(rows[0].fields).length ? -1 : at;
  const is_hit = (at) => rows.some((one) => hits.has(`${one.id}-${column(names[at], at)}`));
  const order = names.map((_, at) => at).sort((a, b) => (a > 0) - (b > 0) || is_hit(b) - is_hit(a) || a - b);
  const numeric = names.map((name) => rows.some((one) => typeof one.fields[name] === "number"));
  const line = (one) => el("tr", { id: `e-${one.id}` }, el("td.id", {}, el("a", { href: `#r-${one.id}` }, one.id), one.source ? el("small", {}, ` ${visible(one.source)}`) : null),
    order.map((at) => {
      const place = `${one.id}-${column(names[at], at)}`, hit = hits.has(place);
      return el(`td${numeric[at] ? ".n" : ""}${hit ? ".hit" : ""}`, { id: hit ? `c-${place}` : null }, column(names[at], at) < 0 ? visible(one.text) : cell(one.fields[names[at]]));
    }));
  return el("div.scroll", { tabindex: 0, role: "group", "aria-label": "Evidence" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "record"), order.map((at) => el(numeric[at] ? "th.n" : "th", { scope: "col" }, visible(names[at]))))),
    el("tbody", {}, rows.map(line))));
}
