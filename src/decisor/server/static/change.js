// Change one thing in a run that is over, and go on from there: a query, what it brought, a thought, a node or its answer.
import { ask } from "./api.js";
import { button, el, fault } from "./dom.js";
import { go } from "./app.js";

const STEP = [["action", "The query"], ["observation", "What it brought back"], ["thought", "The thought it follows from"]];
const NODE = [["answer", "Its answer"], ["ask", "Its question"], ["context", "What it is told beside its question"]];

/** A button that opens the fields of a place; what is changed is sent, and both runs are shown side by side. */
export function editor(run, place) {
  const open = button("Change", () => {
    const there = place.node.querySelector(":scope > .editor");
    if (there) { there.remove(); open.setAttribute("aria-expanded", "false"); return; }
    place.node.append(form(run, place, () => { open.setAttribute("aria-expanded", "false"); open.focus(); }));
    open.setAttribute("aria-expanded", "true");
    place.node.querySelector(".editor textarea").focus();
  }, { kind: "plain change", "aria-expanded": "false", "aria-label": `Change ${place.kind} ${place.at}` });
  open.className = "plain change";
  return open;
}

function form(run, place, leave) {
  const kinds = place.kind === "node" ? NODE : STEP;
  const what = el("select", { "aria-label": "What is changed" }, kinds.map(([name, text]) => el("option", { value: name }, text)));
  const field = el("textarea", { rows: 5, "aria-label": "The new text" });
  const line = el("div");
  const fill = () => { field.value = place[what.value] ?? ""; };
  what.addEventListener("change", fill);
  fill();
  async function send(event) {
    event.preventDefault();
    try {
      const made = await ask(`/api/runs/${run.id}/changes`, { at: place.at, [what.value]: field.value, stream: true });
      go(`/compare?${new URLSearchParams({ before: run.id, after: made.id })}`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
  }
  const made = el("form.editor.card", { on: { submit: send } }, what, field, line,
    el("div.bar", {}, el("button.primary", { type: "submit" }, "Go on from here"), button("Leave it", () => { made.remove(); leave(); }, { kind: "plain" }),
      el("span.soft", {}, "What came before is not paid for again.")));
  made.addEventListener("keydown", (event) => { if (event.key === "Escape") { made.remove(); leave(); } });
  return made;
}
