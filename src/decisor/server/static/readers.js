// Which users of the server a run is shown to: its owner says it, and each may see all that it saw.
import { ask } from "./api.js";
import { button, el, fault, say, visible } from "./dom.js";

/** The list, and a field for one more. */
export async function readersOf(id) {
  const address = `/api/runs/${encodeURIComponent(id)}/readers`, node = el("div.readers"), line = el("div");
  const send = async (name, end) => {
    try {
      draw(await ask(address, { name, end }));
      line.replaceChildren();
      say(end ? `${name} may no longer read it.` : `${name} may read it.`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
  };
  function draw({ readers, others }) {
    const select = el("select", { id: "reader" }, others.map((name) => el("option", { value: name }, name)));
    const words = readers.length ? "These users may read it, and approve or refuse it:" : others.length ? "Only you may read it. Show it to somebody who is to approve it:" : "No other user of this server may see all that it rests on.";
    const line_of = (name) => el("li.row", {}, el("b", {}, visible(name)), button("End", () => send(name, true), { kind: "quiet", "aria-label": `Show it to ${name} no more` }));
    node.replaceChildren(...[el("p.soft", {}, words), readers.length ? el("ul", {}, readers.map(line_of)) : null,
      others.length ? el("div.row", {}, el("label.hush", { for: "reader" }, "Show it to"), select, button("Show it", () => send(select.value, false))) : null, line].filter(Boolean));
  }
  draw(await ask(address));
  return node;
}
