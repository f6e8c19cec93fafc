// A decision: the answer, its reasons with figures that lead to their cells, the ranking, and the evidence.
import { chartNodes } from "./chart.js";
import { cell, el, number, svg, visible } from "./dom.js";
import { studyNodes } from "./study.js";

const CITATION = /[[［【〔]\s*(o\d+(?:\.\w+)?(?:\s*[,;，；、]\s*o\d+(?:\.\w+)?)*)\s*[\]］】〕]/y;
const RECORD = /o\d+(?:\.\w+)?/g;
const ENDS = { budget: "A limit ended the run.", steps: "The technique's step limit ended the run.", no_answer: "The data do not decide it.", failed: "The run failed." };
const FIRST = 10, DOUBTED = 5;

/** A result and its picture, part by part. `charts`: drawn already, where the picture has none. */
export function resultNodes(result, picture, charts = chartNodes(picture.charts ?? [])) {
  return [decision(result, picture.cells), result.ranking ? ranking(result.ranking, null, picture.ranking ?? []) : null, ...studyNodes(picture.studies ?? []), ...charts, evidence(result, picture.cells)].filter(Boolean);
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

/** Bars from the worst to the best, those ruled out below. `before`: a ranking to set it against. `notes`: what was
    compared and how sure it is, in sentences; without them the share of trials. */
export function ranking(one, before = null, notes = robust(one)) {
  const options = one.options.filter((each) => Number.isFinite(each.outcome));
  if (!options.length) return null;
  const values = options.flatMap((each) => [each.outcome, each.low, each.high]).filter((value) => value !== null && value !== undefined);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const share = (value) => high === low ? 1 : one.goal === "min" ? (high - value) / (high - low) : (value - low) / (high - low);
  const places = new Map((before?.options ?? []).map((each, at) => [each.name, at + 1]));
  const rows = options.map((each, at) => el(at === 0 || one.ties.includes(each.name) ? "tr.best" : "tr", {},
    el("td.place", {}, String(at + 1), moved(places.get(each.name), at + 1)), el("td", {}, visible(each.name)), el("td.track", {}, bar(each, share)), el("td.n", {}, number(each.outcome))));
  const out = (one.excluded ?? []).slice(0, 5).map((each) => el("tr.out", {}, el("td.place", {}, "–"), el("td", {}, visible(each.name)), el("td.soft", {}, `${each.rules.join(" and ") || "no outcome"}: ${visible(each.why)}`), el("td.n", {}, each.outcome === null ? "" : number(each.outcome))));
  const rest = rows.slice(FIRST);
  const box = (lines) => el("div.scroll.rank", { tabindex: 0, role: "group", "aria-label": "Ranking" }, el("table", {}, el("tbody", {}, lines)));
  return el("section", { "aria-label": "Ranking" },
    el("h2.measure", {}, `${one.measure}, ${one.goal === "min" ? "smallest" : "largest"} first`),
    box([...rows.slice(0, FIRST), ...out]),
    rest.length ? el("details", {}, el("summary", {}, `${rest.length} more`), box(rest)) : null,
    notes.map((text) => el("p.soft", {}, text)),
    el("p.soft", {}, `A bar's length: how far from the worst (none) to the best (full).${options.some((each) => each.low !== null && each.low !== undefined) ? " The line in it: 90 % of the outcomes lie between its ends while the inputs vary." : ""}`));
}

const moved = (before, now) => before && before !== now ? el(before > now ? "small.up" : "small.down", { title: `was ${before}` }, before > now ? ` ▲${before - now}` : ` ▼${now - before}`) : null;

function robust(one) {
  return one.robustness === null || one.robustness === undefined ? [] : [`It stays best in ${Math.round(one.robustness * 100)} % of the trials.`];
}

function bar(each, share) {
  const words = `${Math.round(100 * share(each.outcome))} % of the way from the worst to the best`;
  const range = each.low === null || each.low === undefined ? null : [share(each.low), share(each.high)].sort((a, b) => a - b);
  return svg("svg.bar", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": words }, svg("title", {}, words),
    svg("rect", { x: 0, y: 0, height: 10, width: Math.max(0.5, 100 * share(each.outcome)) }),
    range ? svg("rect.range", { x: 100 * range[0], y: 4, height: 2, width: Math.max(0.5, 100 * (range[1] - range[0])) }) : null);
}
