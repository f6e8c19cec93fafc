// What if: the ranking that follows while inputs are moved, what would change the winner, and other questions to the model.
import { ask, choices, go } from "./api.js";
import { button, cell, el, fault, fold, markup, say, visible } from "./dom.js";

const WAIT = 120;

export async function whatIfView(name) {
  const path = `/api/models/${encodeURIComponent(name)}`;
  const [model, offer] = await Promise.all([ask(path), choices()]), llm = offer.llms.find((one) => one !== "none");
  const asked = (input) => ask(`${path}/whatif`, { input });
  const then = el("div.then", { "aria-live": "polite" }), line = el("div", { role: "status" }), more = el("div.then");
  let timer = 0, turn = 0, winner = "";
  const sliders = model.inputs.map((one) => slider(one, () => { clearTimeout(timer); timer = setTimeout(change, WAIT); }));

  /** As the data are, or with what was moved: both on one axis. */
  async function change() {
    const moves = sliders.map((one) => one.read()).filter(Boolean), own = ++turn;
    then.classList.add("waits");
    try {
      const reply = await asked(moves.length ? moves.join("; ") : "rank trials=100");
      if (own !== turn) return;
      line.textContent = "";
      winner = reply.ranking?.options?.[1]?.name ?? winner;
      const [head, ...rest] = reply.note.split("\n");
      const words = moves.length ? [el("p", {}, visible(head)), rest.length ? fold("In words", el("p", {}, visible(rest.join("\n")))) : null] : [];
      then.replaceChildren(...(reply.charts ? markup(reply.charts) : [told(reply)]), ...(reply.charts ? words.filter(Boolean) : []));
      say(reply.note.slice(0, 200));
    } catch (error) { if (own === turn) line.replaceChildren(fault(error.message)); }
    then.classList.remove("waits");
  }

  async function look(input, own = false) {
    more.replaceChildren(el("p.soft", {}, "Computing …"));
    try { show(await asked(input)); } catch (error) { more.replaceChildren(fault(error.message), ...own ? examples() : []); }
  }

  function show(reply) {
    more.replaceChildren(...markup(reply.charts), ...(reply.study?.turns?.length ? [] : [told(reply)]));
    more.scrollIntoView({ block: "nearest" });
  }

  /** Words that a person wrote: what is no input of the model is asked of the LLM, where there is one. */
  async function look_up(words) {
    if (!llm) return look(words, true);
    more.replaceChildren(el("p.soft", {}, "Computing …"));
    let reply;
    try {
      reply = await asked(words);
    } catch (error) {
      if (error.status !== 400) { more.replaceChildren(fault(error.message)); return; }
      const question = `What if ${words.replace(/^what if\s+/i, "").replace(/[?.\s]+$/, "")}? To decide: ${model.decide || name}.`;
      go(`/runs/${(await ask("/api/ask", { question, connections: [name], llm, asks: true, stream: true })).id}`);
      return;
    }
    show(reply);
  }

  /** What can be written, in the words of this model. */
  function examples() {
    const all = [...model.inputs.slice(0, 1).map((one) => `${one.name} + 10 %`), ...winner ? [`why ${winner}`, `what would it take for ${winner} to win`] : [], "turning points"];
    return [el("p.soft", {}, "Without an LLM the model reads these forms:"), el("div.chips", {}, all.map((text) => button(text, () => { free.value = text; return look(text, true); })))];
  }
  const free = el("input", { id: "free", placeholder: llm ? "Costs rise by 10 percent" : `why NAME, or ${model.inputs[0]?.name ?? "TABLE.COLUMN"} + 10 %` });
  const form = el("form.row", { on: { submit: (event) => { event.preventDefault(); if (free.value.trim()) look_up(free.value.trim()); } } }, el("label.hush", { for: "free" }, "Another question to the model"), free, el("button", {}, llm ? "Ask" : "Compute"));
  const asks = [["turning points", "What would change the winner?"], ["sensitivity", "Which input matters most?"], ...(model.scenarios.length ? [["scenarios", "Each scenario"]] : []), ...(model.measures.length > 1 ? [["pareto", "The best trade-offs"]] : [])];
  const reset = button("Reset", () => { sliders.forEach((one) => one.reset()); return change(); }, { kind: "quiet" });
  const nodes = [el("div.page.broad", {}, el("div.asked", {}, el("h1.question.titled", {}, model.decide || name), el("p.soft", {}, "What if · computed, no LLM")),
    el("div.tune", {},
      el("section", { "aria-labelledby": "h-inputs" }, el("div.row", {}, el("h2", { id: "h-inputs" }, "Inputs"), reset), sliders.length ? sliders.map((one) => one.node) : el("p.soft", {}, "This model names no inputs: write what is to change below."), line),
      then),
    el("section", { "aria-labelledby": "h-more" }, el("h2", { id: "h-more" }, "Ask the model"), el("div.chips", {}, asks.map(([input, text]) => button(text, () => look(input)))), form, more),
    fold("The model", el("pre", { tabindex: 0 }, [...model.lines, "", model.forms].join("\n"))))];
  return { nodes, title: `What if: ${model.decide || name}`, ready: change };
}

function told(reply) {
  const names = [...new Set(reply.records.flatMap((one) => Object.keys(one.fields)))];
  return el("div.stack", {}, reply.note ? el("p.note", {}, visible(reply.note)) : null, reply.records.length ? el("div.scroll", { tabindex: 0, role: "group", "aria-label": "What follows" }, el("table", {},
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, visible(name))))),
    el("tbody", {}, reply.records.map((one) => el("tr", {}, names.map((name) => el("td", {}, cell(one.fields[name]))))))) ) : null);
}

/** From half to twice, in steps of a hundredth. */
function slider(one, moved) {
  const id = `i-${one.name}`, range = el("input", { type: "range", min: -50, max: 100, step: 1, value: 0, id });
  const words = el("output", { for: id }, "0 %");
  const tell = () => {
    words.textContent = range.value === "0" ? "0 %" : `${range.value > 0 ? "+" : "−"}${Math.abs(range.value)} %`;
    range.setAttribute("aria-valuetext", `${words.textContent.replace(" %", "")} per cent`);
  };
  range.addEventListener("input", () => { tell(); moved(); });
  const reset = () => { range.value = 0; tell(); };
  const read = () => range.value === "0" ? "" : `${one.name} ${range.value > 0 ? "+" : "-"} ${Math.abs(range.value)} %`;
  const about = [one.unit, one.spread && `varies ${one.spread}`, one.raises.length && `raises ${one.raises.join(", ")}`, one.lowers.length && `lowers ${one.lowers.join(", ")}`].filter(Boolean).join(" · ");
  tell();
  return { node: el("div.slider", {}, el("label", { for: id }, one.name.replace(".", ": ").replaceAll("_", " "), el("small", {}, about)), range, words), read, reset };
}
