// An evaluation: its table, and its cases as they finish.
import { ask, listen } from "./api.js";
import { button, el, fault, lead, money, number, plain, took, visible } from "./dom.js";
import { tell } from "./story.js";

const STEP = 100;
const OPEN = new Set(["unscored", "crashed"]);

export async function evaluationView(name) {
  const path = `/api/evaluations/${encodeURIComponent(name)}`;
  const own = await ask(path);
  const cases = new Map(own.cases.map((one) => [one.id, one]));
  const far = el("span.soft", { role: "status" }, `${own.finished} finished`);
  const table = el("div"), list = el("ol.cases"), state = el("select", { "aria-label": "Which cases" });
  const lines = new Map();
  let most = STEP, is_due = false;

  /** One that is open stays open when others come, also under the hands of who reads it. */
  function line_of(one) {
    const key = JSON.stringify(one);
    if (lines.get(one.id)?.key !== key) lines.set(one.id, { key, node: line(path, one) });
    return lines.get(one.id).node;
  }

  function draw() {
    is_due = false;
    const all = [...cases.values()], states = [...new Set(all.map((one) => one.state))].sort();
    const now = state.value;
    state.replaceChildren(el("option", { value: "" }, `all ${all.length}`), ...states.map((one) => el("option", { value: one }, `${plain(one)} ${all.filter((each) => each.state === one).length}`)));
    state.value = states.includes(now) ? now : "";
    table.replaceChildren(summary(all));
    const some = all.filter((one) => !state.value || one.state === state.value);
    fill(list, [...some.slice(0, most).map(line_of), ...(some.length > most ? [el("li", {}, button(`Show ${Math.min(STEP, some.length - most)} more`, () => { most += STEP; draw(); }, { kind: "quiet" }))] : [])]);
    if (!all.length) list.replaceChildren(el("li.soft", {}, "No case is finished yet. They will stand here as they are."));
  }
  const soon = () => { if (!is_due) { is_due = true; setTimeout(draw, 250); } };
  state.addEventListener("change", draw);
  draw();
  let source = null;
  const nodes = [el("div.page.broad.evaluation", {}, el("p.soft", {}, "Evaluation"), el("h1", {}, name), el("div.row", {}, far, el("a", { href: `${path}/page`, target: "_blank", rel: "noopener" }, "The whole report")), table,
    el("div.row", {}, el("h2", {}, "Cases"), state), list)];
  return { nodes, title: name, close: () => source?.close(), ready: () => {
    source = listen(`${path}/events`, {
      case: (one) => { cases.set(one.id, one); soon(); },
      progress: (one) => { far.textContent = `${one.finished} finished`; },
    });
  } };
}

/** What stands there already is left alone. */
function fill(list, nodes) {
  const stays = [...list.children].every((node, at) => node === nodes[at]);
  if (stays) list.append(...nodes.slice(list.children.length));
  else list.replaceChildren(...nodes);
}

/** As the report counts: the mean over cases of their repeats; what is unscored or crashed says nothing of it, and stands beside it. */
function summary(all) {
  const rows = new Map();
  for (const one of all) {
    const key = `${one.benchmark}\n${one.technique}\n${one.model}`, row = rows.get(key) ?? { one, many: 0, open: 0, right: 0, calls: 0, tokens: 0, dollars: 0, cases: new Map() };
    row.many += 1;
    row.open += OPEN.has(one.state);
    row.cases.set(one.case, [...row.cases.get(one.case) ?? [], ...OPEN.has(one.state) ? [] : [one.state === "right"]]);
    row.right += one.state === "right";
    row.calls += one.usage.calls;
    row.tokens += one.usage.prompt_tokens + one.usage.completion_tokens;
    row.dollars = row.dollars === null || one.usage.dollars === null ? null : row.dollars + one.usage.dollars;
    rows.set(key, row);
  }
  if (!rows.size) return el("p");
  const sorted = [...rows.values()].sort((a, b) => share(b) - share(a));
  return el("div.scroll", { tabindex: 0, role: "group", "aria-label": "Accuracy" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "technique"), ["accuracy", "right", "cases", "open", "calls a case", "tokens a case", "cost"].map((text) => el("th.n", { scope: "col" }, text)), ["benchmark", "model"].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, sorted.map((row) => el("tr", {}, el("th", { scope: "row" }, row.one.technique),
      [row.many > row.open ? `${(100 * share(row)).toFixed(1)} %` : "–", row.right, row.many > row.cases.size ? `${row.cases.size} (${row.many} tries)` : row.many, row.open, (row.calls / row.many).toFixed(1), number(Math.round(row.tokens / row.many)), row.calls ? money(row.dollars) : ""].map((text) => el("td.n", {}, String(text))), el("td", {}, row.one.benchmark), el("td", {}, row.one.model))))));
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
const share = ({ cases, many, open }) => many > open ? mean([...cases.values()].filter((tries) => tries.length).map(mean)) : 0;

function line(path, one) {
  const box = el("details", {}, el("summary", {}, el(`span.pill.${one.state}`, {}, plain(one.state)), el("span.ask", {}, ` ${one.case} `), el("span.soft", {}, el("bdi", {}, one.answer || "no answer"), ["", one.technique, took(one.seconds)].filter((text, at) => !at || text).join(" · "))));
  lead(box); // Cases beside each other have records of the same names.
  box.addEventListener("toggle", async () => {
    try {
      const told = await ask(`${path}/cases/${one.id}/story`);
      const { story, nodes } = tell(told);
      box.append(el("p", {}, visible(told.question)), one.gold?.length ? el("p.soft", {}, `Accepted: ${one.gold.join(", ")}`) : "", ...nodes, story.node);
    } catch (error) { box.append(fault(error.message)); }
  }, { once: true });
  return el("li", {}, box);
}
