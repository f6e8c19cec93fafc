// What if: the ranking that follows while inputs are moved, what would change the winner, and other questions to the model.
import { ask, choices, go } from "./api.js";
import { button, cell, el, fault, fold, markup, number, say, visible } from "./dom.js";

const WAIT = 120;

export async function whatIfView(name) {
  const path = `/api/models/${encodeURIComponent(name)}`;
  const [model, offer] = await Promise.all([ask(path), choices()]), llm = offer.llms.find((one) => one !== "none");
  const asked = (input) => ask(`${path}/whatif`, { input });
  const then = el("div.then", { "aria-live": "polite" }), line = el("div", { role: "status" }), more = el("div.then");
  let timer = 0, turn = 0, winner = "";
  const moved = () => { clearTimeout(timer); timer = setTimeout(change, WAIT); }, sliders = [];
  const add = (...about) => { sliders.push(slider(...about, moved)); return sliders.at(-1).node; };
  const tuned = [...model.inputs.flatMap((one) => [add(one.name, one.name.replace(".", ": ").replaceAll("_", " "), notes(one), { input: one.name, where: "" }),
    Object.keys(one.groups).length ? fold(`Each ${one.spread.split(" by ")[1]}`, ...Object.entries(one.groups).map(([group, where]) => add(`${one.name}-${group}`, group, "", { input: one.name, where }))) : null].filter(Boolean)),
    ...model.parameters.map((one) => add(one.name, one.name.replaceAll("_", " "), `${number(one.value)} ${one.unit}`, { parameter: one.name, value: one.value }))];

  /** As the data are, or with what was moved: both on one axis. */
  async function change() {
    const moves = sliders.map((one) => one.read()).filter((one) => one.percent), own = ++turn;
    then.classList.add("waits");
    try {
      const reply = await asked(moves.length ? written(moves) : "rank trials=100");
      if (own !== turn) return;
      line.textContent = "";
      winner = reply.ranking?.options?.[1]?.name ?? winner;
      then.replaceChildren(...(reply.charts ? markup(reply.charts) : [told(reply)]), ...(reply.charts && moves.length ? [fold("In words", el("p", {}, visible(reply.note)))] : []));
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
      el("section", { "aria-labelledby": "h-inputs" }, el("div.row", {}, el("h2", { id: "h-inputs" }, "Inputs"), reset), tuned.length ? tuned : el("p.soft", {}, "This model names no inputs: write what is to change below."), line),
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

const notes = (one) => [one.unit, one.spread && `varies ${one.spread}`, one.raises.length && `raises ${one.raises.join(", ")}`, one.lowers.length && `lowers ${one.lowers.join(", ")}`].filter(Boolean).join(" · ");

/** What was moved, as the model reads it: columns line by line, with parameters as a fragment of its file. */
function written(moves) {
  const columns = moves.filter((one) => one.input), parameters = moves.filter((one) => one.parameter);
  if (!parameters.length) return columns.map((one) => `${one.input} ${one.percent > 0 ? "+" : "-"} ${Math.abs(one.percent)} %${one.where && ` where ${one.where}`}`).join("; ");
  const updates = columns.map(({ input, where, percent }) => {
    const [table, column] = input.split(".").map((name) => `"${name}"`);
    return `UPDATE ${table} SET ${column} = ${column} * ${1 + percent / 100}${where && ` WHERE ${where}`}`;
  });
  return [updates.length ? `change = ${JSON.stringify(updates.join("; "))}` : "", "[parameter]", ...parameters.map((one) => `${one.parameter} = ${one.value * (1 + one.percent / 100)}`)].filter(Boolean).join("\n");
}

/** From half to twice, in steps of a hundredth. `move`: what it moves, which `read` gives with the per cent. */
function slider(name, title, about, move, moved) {
  const id = `i-${name}`, range = el("input", { type: "range", min: -50, max: 100, step: 1, value: 0, id });
  const words = el("output", { for: id }, "0 %");
  const tell = () => {
    words.textContent = range.value === "0" ? "0 %" : `${range.value > 0 ? "+" : "−"}${Math.abs(range.value)} %`;
    range.setAttribute("aria-valuetext", `${words.textContent.replace(" %", "")} per cent`);
  };
  range.addEventListener("input", () => { tell(); moved(); });
  const reset = () => { range.value = 0; tell(); };
  const read = () => ({ ...move, percent: Number(range.value) });
  tell();
  return { node: el("div.slider", {}, el("label", { for: id }, visible(title), about ? el("small", {}, visible(about)) : null), range, words), read, reset };
}
