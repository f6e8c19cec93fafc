// A decision model: what is best as things are, and what is best when an input is another.
import { ask } from "./api.js";
import { button, cell, el, fault, fold, markup, say, visible } from "./dom.js";

const WAIT = 250;

export async function modelView(name) {
  const path = `/api/models/${encodeURIComponent(name)}`;
  const model = await ask(path);
  const asked = (input) => ask(`${path}/whatif`, { input });
  const now = el("div.now"), then = el("div.then"), line = el("div", { role: "status" }), more = el("div");
  let timer = 0, turn = 0;

  const sliders = model.inputs.map((one) => slider(one, () => { clearTimeout(timer); timer = setTimeout(change, WAIT); }));
  const robust = robustness(asked);

  async function first() {
    try {
      const reply = await asked("rank trials=100");
      now.replaceChildren(el("h2", {}, "As it is"), ...(reply.charts ? markup(reply.charts) : [el("p", {}, visible(reply.note))]));
      robust.begin();
    } catch (error) { now.replaceChildren(fault(error.message)); }
  }

  async function change() {
    const moves = sliders.map((one) => one.read()).filter(Boolean), own = ++turn;
    now.hidden = moves.length > 0; // Both stand in one drawing then, on one axis.
    if (!moves.length) { then.replaceChildren(el("p.soft.empty", {}, "Move an input, and the ranking that follows stands here.")); line.textContent = ""; return; }
    then.classList.add("waits");
    try {
      const reply = await asked(moves.join("; "));
      if (own !== turn) return;
      line.textContent = "";
      const [head, ...rest] = reply.note.split("\n");
      then.replaceChildren(...(reply.changed ? [el("h2", {}, "With these inputs"), el("p.note", {}, visible(head)), ...markup(reply.charts), fold("In words", el("p", {}, visible(rest.join("\n"))))] : [told(reply)]));
      say(reply.note.slice(0, 200));
    } catch (error) { if (own === turn) line.replaceChildren(fault(error.message)); }
    then.classList.remove("waits");
  }

  async function look(input) {
    try {
      const reply = await asked(input);
      more.replaceChildren(...markup(reply.charts), told(reply));
    } catch (error) { more.replaceChildren(fault(error.message)); }
  }
  const free = el("input", { id: "free", placeholder: "why NAME, or worst case, or what would it take for NAME to win" });
  const form = el("form.bar", { on: { submit: (event) => { event.preventDefault(); if (free.value.trim()) look(free.value.trim()); } } }, el("label.hush", { for: "free" }, "Another question to the model"), free, el("button", {}, "Compute"));
  const asks = [["turning points", "What turns it?"], ["sensitivity", "What matters most?"], ...(model.scenarios.length ? [["scenarios", "In each scenario"]] : []), ...(model.measures.length > 1 ? [["pareto", "The front"]] : [])];
  then.append(el("p.soft.empty", {}, "Move an input, and the ranking that follows stands here."));
  const nodes = [el("div.page.wide", {}, el("p.soft", {}, "What if"), el("h1.titled", {}, model.decide || name),
    el("div.pair.model", {},
      el("section.card", { "aria-labelledby": "h-inputs" }, el("h2", { id: "h-inputs" }, "Inputs"), sliders.length ? sliders.map((one) => one.node) : el("p.soft", {}, "This model names no inputs: write what is to change below."),
        button("As they are", () => { sliders.forEach((one) => one.reset()); change(); }, { kind: "plain" }), line, robust.node),
      el("div", {}, el("section", { "aria-label": "As it is" }, now), el("section", { "aria-label": "With these inputs", "aria-live": "polite" }, then))),
    el("section", { "aria-labelledby": "h-more" }, el("h2", { id: "h-more" }, "Ask the model"), el("div.bar", {}, asks.map(([input, text]) => button(text, () => look(input), { kind: "chip" }))), form, more),
    fold("The model", el("pre", { tabindex: 0 }, [...model.lines, "", model.forms].join("\n"))))];
  return { nodes, title: `What if: ${name}`, ready: first };
}

/** How far a single input may be off before another one wins: computed once, read off with a slider. */
function robustness(asked) {
  const range = el("input", { type: "range", min: 1, max: 100, value: 10, id: "robust" }), words = el("output", { for: "robust" }, "±10 %");
  const line = el("p", { role: "status" }, "…"), list = el("ul.soft");
  const node = el("div.robust", { hidden: true }, el("h2", {}, "Robustness"), el("div.slider", {}, el("label", { for: "robust" }, "One input may be off by"), range, words), line, list);
  let study = null;
  function draw() {
    words.textContent = `±${range.value} %`;
    const turns = study.turns.filter((one) => one.factor && Math.abs(one.factor - 1) * 100 <= Number(range.value));
    line.textContent = turns.length ? `${visible(study.best)} may lose:` : `${visible(study.best)} stays best.`;
    node.classList.toggle("turns", turns.length > 0);
    list.replaceChildren(...turns.slice(0, 6).map((one) => el("li", {}, `${visible(one.input)} ${one.factor > 1 ? "+" : "−"}${Math.abs((one.factor - 1) * 100).toPrecision(3)} %: ${one.winner ? `${visible(one.winner)} wins` : "nothing is allowed"}`)));
  }
  range.addEventListener("input", draw);
  return { node, begin: async () => {
    if (study) return;
    try { study = (await asked("turning points")).study; } catch { return; }
    if (study?.turns.length) { node.hidden = false; draw(); }
  } };
}

function told(reply) {
  const names = [...new Set(reply.records.flatMap((one) => Object.keys(one.fields)))];
  return el("div", {}, reply.note ? el("p.note", {}, visible(reply.note)) : null, reply.records.length ? el("div.scroll", { tabindex: 0, role: "group", "aria-label": "What follows" }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, visible(name))))),
    el("tbody", {}, reply.records.map((one) => el("tr", {}, names.map((name) => el("td", {}, cell(one.fields[name]))))))) ) : null);
}

/** From half to twice, in steps of a hundredth; in the middle it is as it is. */
function slider(one, moved) {
  const id = `i-${one.name}`, range = el("input", { type: "range", min: -50, max: 100, step: 1, value: 0, id });
  const words = el("output", { for: id }, "as it is");
  const tell = () => { words.textContent = range.value === "0" ? "as it is" : `${range.value > 0 ? "+" : "−"}${Math.abs(range.value)} %`; };
  range.addEventListener("input", () => { tell(); moved(); });
  const reset = () => { range.value = 0; tell(); };
  const read = () => range.value === "0" ? "" : `${one.name} ${range.value > 0 ? "+" : "-"} ${Math.abs(range.value)} %`;
  const about = [one.unit, one.spread && `varies ${one.spread}`, one.raises.length && `raises ${one.raises.join(", ")}`, one.lowers.length && `lowers ${one.lowers.join(", ")}`].filter(Boolean).join(" · ");
  return { node: el("div.slider", {}, el("label", { for: id }, one.name, el("small", {}, about)), range, words), read, reset };
}
