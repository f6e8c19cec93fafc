// One run from the JSON that stands beside this script: a file of its own, or a cell of a notebook.
import { count, el, lead, money, number, plain, took, visible } from "./dom.js";
import { canvas } from "./drawing.js";
import { equip_evidence } from "./pieces.js";
import { Story } from "./story.js";

function draw(piece) {
  const { run, result, drawings, entries } = JSON.parse(piece.querySelector('script[type="application/json"]').textContent);
  const story = new Story(), has_plan = entries.some((one) => one.event === "Plan" || one.event === "GraphPlan");
  if (result.plan.length && !has_plan) story.hear({ id: 0, span: 0, event: "Plan", data: { steps: result.plan } });
  for (const entry of entries) story.hear(entry);
  story.end(result.evidence.ids);
  const is_page = piece.localName === "main", { text, goal, rules } = run.question;
  const about = ["Decisor", run.chosen ? `${plain(run.technique)} (${plain(run.chosen)})` : plain(run.technique), run.llm || "no LLM"].filter(Boolean).join(" · ");
  const brief = piece.querySelector(".brief");
  brief.replaceChildren(...[
    el("p.soft", {}, about), el("h1", {}, visible(text)), goal && !text.includes(goal) ? el("p", {}, visible(goal)) : null,
    rules ? el("details", { open: rules.length < 400 }, el("summary", {}, "Rules"), el("p.rules", {}, visible(rules))) : null,
    brief.querySelector(".result"),
    el("section", {}, el("h2", {}, "How it got there"), drawings.map(canvas),
      el("details", { open: is_page }, el("summary", {}, `${count(story.steps, "action")}, ${count(story.usage.calls, "LLM call")}`), story.node)),
    el("section", {}, el("h2", {}, "Cost"), costs(run))].filter(Boolean));
  equip_evidence([brief], () => "");
  if (!is_page) lead(piece);
}

function costs({ usage, llm, settings }) {
  const facts = llm ? [["LLM calls", number(usage.calls)], ["Tokens", number(usage.prompt_tokens + usage.completion_tokens)],
    ["From a cache", usage.cache_reads ? number(usage.cache_reads) : ""], ["Price", usage.dollars === null ? "unknown" : money(usage.dollars)],
    ["Waiting for the LLM", took(usage.seconds) || "–"]] : [["LLM calls", "none"]];
  const all = [...facts, ["Actions", number(usage.actions)], ...Object.entries(settings).map(([name, value]) => [plain(name), value])];
  return el("dl.facts", {}, all.filter(([, value]) => value).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, visible(value)))));
}

for (const piece of document.querySelectorAll(".decisor:not(.drawn)")) {
  piece.classList.add("drawn");
  draw(piece);
}
