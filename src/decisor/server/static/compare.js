// Two runs side by side: their decisions, and each step in both. One that still runs is watched.
import { ask } from "./api.js";
import { el, fault, visible } from "./dom.js";
import { plan } from "./pieces.js";
import { Thread } from "./thread.js";

const WORDS = { same: "the same", changed: "changed", added: "new", removed: "dropped" };

export async function compareView(query) {
  const [before, after] = [query.get("before"), query.get("after")];
  if (!before || !after) return { nodes: [el("div.page", {}, el("h1", {}, "Compare two decisions"), el("p.soft", {}, "Open a decision, then More, then Compare with another one."))], title: "Compare" };
  const address = `/api/compare?${new URLSearchParams({ before, after })}`;
  const both = await ask(address);
  const steps = el("section", { "aria-labelledby": "h-steps" });
  const views = [both.before, both.after].map((run) => new Thread(run, { side: true, ended: () => redraw() }));
  async function redraw() {
    try { draw(steps, (await ask(address)).changes); } catch (error) { steps.replaceChildren(fault(error.message)); }
  }
  draw(steps, both.changes);
  const sides = views.map((view, at) => el("section.side-run", { "aria-label": at ? "After" : "Before" },
    el("p.soft", {}, el("a", { href: `/runs/${view.run.id}` }, at ? "After" : "Before")), view.node));
  return { nodes: [el("div.page.broad", {}, el("h1", {}, "Side by side"), el("div.pair", {}, sides), steps)], title: "Side by side",
    ready: () => views.forEach((view) => view.watch()), close: () => views.forEach((view) => view.close()) };
}

function draw(node, changes) {
  const many = changes.filter((one) => one.how !== "same").length;
  node.replaceChildren(el("h2", { id: "h-steps" }, "Step by step"), el("p.soft", {}, many ? `${many} of ${changes.length} steps differ.` : "Both did the same."),
    el("ol.changes", {}, changes.map((one) => el(`li.${one.how}`, {}, el("div.what", {}, el("b", {}, /^\d/.test(one.at) ? `Step ${one.at}` : one.at.replace("plan", "Plan")), el("span", {}, WORDS[one.how])),
      el("div.pair", {}, text(one, one.before), one.how === "same" ? null : text(one, one.after))))));
}

/** A plan as its steps, anything else as it is written. */
const text = ({ at }, words) => !words ? el("p.soft", {}, "–") : at.startsWith("plan") ? plan(words.split("\n")) : el("pre", { tabindex: 0 }, visible(words));
