// What a connection holds: tables with their columns, keys and examples; else the words that an LLM is shown.
import { ask } from "./api.js";
import { button, count, el, fault, fold } from "./dom.js";

const HABITS = { decimal: [["comma", "The comma is the decimal sign"], ["point", "The point is the decimal sign"]], dates: [["day", "The day comes first"], ["month", "The month comes first"]] };

/** `again`: reads a file of yours once more, as you say; without it nothing can be said. */
export async function schemaOf(name, again = null) {
  try {
    const schema = await ask(`/api/connections/${encodeURIComponent(name)}`);
    if (!schema.tables.length) return [el("pre", { tabindex: 0 }, schema.description)];
    return [...schema.notes.map((text) => note(text, again)), ...schema.tables.map(table),
      fold("What a model is shown", el("pre", { tabindex: 0 }, schema.description))];
  } catch (error) {
    return [fault(error.message)];
  }
}

/** What was taken for granted in a file; where that may be wrong, with the other ways to read it. */
function note(text, again) {
  const [said, habit] = again ? text.split(/[.;] (?:If that is wrong, )?write #(\w+)=/) : [text];
  return el("p.soft", {}, habit ? `${said}. ` : text, habit ? el("span.row", {}, HABITS[habit].map(([value, words]) => button(words, () => again({ [habit]: value }), { kind: "quiet" }))) : null);
}

function table(one) {
  const size = one.rows === null ? "" : ` ${count(one.rows, "row")}`;
  const rows = one.columns.map((column) => el("tr", {},
    el("th", { scope: "row" }, column.name, column.key ? el("small", {}, " key") : null),
    el("td.soft", {}, column.type.toLowerCase()),
    el("td", {}, column.references ? `→ ${column.references}` : column.joins ? `joins ${column.joins}` : column.examples.slice(0, 3).join(", "))));
  return fold(el("span", {}, el("b", {}, one.name), el("span.soft", {}, `${one.view ? " view" : ""}${size}, ${count(one.columns.length, "column")}`)),
    el("div.scroll", { tabindex: 0, role: "group", "aria-label": `Columns of ${one.name}` }, el("table", {}, el("tbody", {}, rows))));
}
