// What-ifs of a run: how far each input alone moves the lead, and what it takes for another one to win.
import { el, number, svg, visible } from "./dom.js";

const MOST = 12;

export function studyNodes(studies) {
  return studies.map((one) => el("section.card", { "aria-label": one.title }, el("h2", {}, visible(one.title)), swings(one), turns(one), scenes(one))).filter((node) => node.childNodes.length > 1);
}

function swings(one) {
  const rows = one.swings.slice(0, MOST);
  if (!rows.length) return null;
  const low = Math.min(0, ...rows.map((each) => each.low)), high = Math.max(0, ...rows.map((each) => each.high));
  const at = (value) => 100 * (value - low) / (high - low || 1);
  return el("div.scroll", { tabindex: 0, role: "group", "aria-label": "Sensitivity" }, el("table", {}, el("tbody", {}, rows.map((each) => el("tr", {}, el("th", { scope: "row" }, visible(each.input)),
    el("td.track", {}, svg("svg.bar", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `${number(each.low)} to ${number(each.high)}` }, svg("rect", { x: at(each.low), width: Math.max(0.5, at(each.high) - at(each.low)), y: 1, height: 8 }), svg("rect.range", { x: at(0), width: 0.6, y: 0, height: 10 }))),
    el("td.n", {}, `${number(each.low)} to ${number(each.high)}`), el("td.soft", {}, `stays best in ${Math.round(100 * each.stays)} %`))))));
}

function turns(one) {
  const rows = one.turns.filter((each) => each.factor).sort((a, b) => Math.max(a.factor, 1 / a.factor) - Math.max(b.factor, 1 / b.factor)).slice(0, MOST);
  if (!rows.length) return one.turns.length ? el("p", {}, "No input alone, from half to twice its value, turns the decision.") : null;
  return el("ul", {}, rows.map((each) => el("li", {}, el("b", {}, visible(each.input)), ` ${each.factor > 1 ? "+" : ""}${number(Number(((each.factor - 1) * 100).toPrecision(3)))} %: ${each.winner ? `${visible(each.winner)} wins` : "nothing is allowed"}${each.why ? `; ${visible(one.best)} then breaks ${visible(each.why)}` : ""}`)));
}

function scenes(one) {
  return one.scenes.length ? el("ul", {}, one.scenes.slice(0, MOST).map((each) => el("li", {}, el("b", {}, visible(each.name)), ` ${each.outcome === null ? "nothing is allowed" : `${visible(each.best)}: ${number(each.outcome)} ${one.units[0]}`}${usual(one, each)}`))) : null;
}

/** Where the present winner is, if another one wins. */
function usual(one, scene) {
  if (scene.outcome === null || scene.best === one.best) return "";
  return `; ${visible(one.best)}: ${scene.usual === null ? `ruled out by ${visible(scene.why)}` : `${number(scene.usual)} ${one.units[0]}`}`;
}
