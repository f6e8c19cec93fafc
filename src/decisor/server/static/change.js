// Change one thing in a run that is over, and go on from there: a query, what it brought, a thought, a step of the plan,
// a node or its answer.
import { ask, go } from "./api.js";
import { button, el, fault } from "./dom.js";

const STEP = [["action", "The query"], ["observation", "What it brought back"], ["thought", "The thought it follows from"]];
const NODE = [["answer", "Its answer"], ["ask", "Its question"], ["context", "What it is told beside its question"]];

/** A button that opens the fields of a place; what is changed is sent, and both runs are shown side by side. */
export function editor(run, place) {
  const open = button(place.kind === "step" ? "Edit and run again" : "Change", () => {
    const there = place.node.querySelector(":scope > .editor");
    if (there) { there.remove(); open.setAttribute("aria-expanded", "false"); return; }
    place.node.append(form(run, place, place.plan ? planned(place.plan) : parts(place), () => { open.setAttribute("aria-expanded", "false"); open.focus(); }));
    open.setAttribute("aria-expanded", "true");
    place.node.querySelector(".editor textarea").focus();
  }, { kind: "quiet.change", "aria-expanded": "false", "aria-label": place.plan ? `Change plan ${place.at === "0" ? "" : `after step ${place.at}`}`.trim() : `Change ${place.kind} ${place.at}` });
  return open;
}

/** Fields for one part of a step or node: `body` is what they change. */
function parts(place) {
  const kinds = place.kind === "node" ? NODE : STEP;
  const what = el("select", { "aria-label": "What is changed" }, kinds.map(([name, text]) => el("option", { value: name }, text)));
  const field = el("textarea.sql-field", { rows: 5, "aria-label": "The new text" });
  const fill = () => { field.value = place[what.value] ?? ""; };
  what.addEventListener("change", fill);
  fill();
  return { nodes: [what, field], body: () => ({ [what.value]: field.value }) };
}

/** A field for each step of a plan. One that is emptied is left out. */
function planned(steps) {
  const list = el("ol.planned");
  const line = (text) => el("li", {}, el("textarea", { rows: 2, "aria-label": "A step of the plan" }, text));
  list.append(...steps.map(line));
  const more = button("Add a step", () => { list.append(line("")); list.lastChild.firstChild.focus(); }, { kind: "quiet" });
  const texts = () => [...list.querySelectorAll("textarea")].map((one) => one.value.trim()).filter(Boolean);
  return { nodes: [list, more], body: () => ({ plan: texts() }) };
}

function form(run, place, fields, leave) {
  const line = el("div"), approve = el("input", { type: "checkbox" });
  async function send(event) {
    event.preventDefault();
    try {
      const made = await ask(`/api/runs/${run.id}/changes`, { at: place.at, ...fields.body(), approve: approve.checked, stream: true });
      go(`/compare?${new URLSearchParams({ before: run.id, after: made.id })}`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
  }
  const made = el("form.editor.card", { on: { submit: send } }, fields.nodes, el("label.check", {}, approve, "Ask before each query"), line,
    el("div.row", {}, el("button.primary", { type: "submit" }, "Run from here"), button("Cancel", () => { made.remove(); leave(); }, { kind: "quiet" }),
      el("span.soft", {}, "What came before is not paid for again.")));
  made.addEventListener("keydown", (event) => { if (event.key === "Escape") { made.remove(); leave(); } });
  return made;
}
