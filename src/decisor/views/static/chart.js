// The chart of an answer, from its shapes: they are made one by one, and every text goes in as text.
import { el, svg, visible } from "./dom.js";

const TAGS = new Set(["rect", "line", "path", "circle", "polygon", "text"]);

/** `charts`: as a run's picture has them. A mark leads to its row of the evidence, which says the same in a table. */
export function chartNodes(charts) {
  return charts.map((one) => el("section", { "aria-label": one.title }, el("h2", {}, one.title),
    el("div.answer-chart", {}, one.layouts.map((layout, at) => drawn(one, layout, at ? "narrow" : "wide"))),
    one.notes.map((note) => el("p.soft", {}, note)),
    el("p.soft", {}, el("a", { href: `data:application/json,${encodeURIComponent(JSON.stringify(one.vega_lite))}`, download: "chart.vl.json" }, "Chart as Vega-Lite"))));
}

function drawn({ title, description }, layout, kind) {
  const picture = svg("g", { role: "img", "aria-label": `${title}. ${description}` }, svg("title", {}, title), svg("desc", {}, description), layout.shapes.map((one) => shape(one)));
  const links = layout.links.map((one) => one.record ? svg("a", { href: `#e-${one.record}`, tabindex: -1 }, shape(one.shape, one.title)) : shape(one.shape, one.title));
  return svg(`svg.${kind}`, { viewBox: `0 0 ${layout.width} ${layout.height}` }, picture, svg("g", { "aria-hidden": "true" }, links));
}

function shape({ tag, kind, at, text }, title = "") {
  if (!TAGS.has(tag)) return null;
  return svg([tag, ...kind.split(" ")].filter(Boolean).join("."), at, title ? svg("title", {}, title) : null, visible(text));
}
