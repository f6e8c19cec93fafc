// Start: what is to be decided, from which data, and questions that these data can answer.
import { ask, choices, go } from "./api.js";
import { button, el, fault, fold, plain, say, visible } from "./dom.js";
import { schemaOf } from "./schema.js";

const LIMITS = [["calls", "LLM calls", 1], ["tokens", "Tokens", 1], ["dollars", "Dollars", 0.01], ["seconds", "Seconds", 1], ["actions", "Actions", 1]];
const DRAFT = "decisor-draft";
const FORMS = { sql: "Database", cypher: "Graph", passages: "Documents", tools: "Tools" };
/** The methods that are offered first, by plain names; the others stand behind "More methods". */
const METHODS = [["exact", "Compute only: every choice, no LLM"], ["reasoning_dag", "Documents: takes the question apart"], ["radagent", "Search: compares several ways"]];

export async function startView(query) {
  const draft = read_draft(), line = el("div");
  let offer = await choices(), picks = null;
  const ideas = el("section", { "aria-labelledby": "h-ideas", hidden: true });
  const question = el("textarea", { id: "question", rows: 3, required: true, maxlength: 20000, placeholder: "Which one should we choose?" });
  question.value = query.get("question") ?? draft.question ?? "";
  const rules = el("textarea", { id: "rules", rows: 4, maxlength: 200000, placeholder: "Choose exactly one. It may cost at most 10,000." }), goal = el("input", { id: "goal", maxlength: 20000, placeholder: "The largest profit of the year" });
  rules.value = draft.rules ?? "";
  goal.value = draft.goal ?? "";
  const means = means_of(offer, draft), data = el("section.data", { "aria-labelledby": "h-data" });
  /** The data as they are now. `chosen`: a file that has just come is looked into, and asked alone. */
  async function show_data(chosen = "") {
    if (picks) offer = await choices(true);
    picks = data_picks(offer, chosen, show_data);
    data.replaceChildren(...picks.nodes);
    suggest(ideas, offer, question, chosen);
  }
  const submit = el("button.primary.end", { type: "submit" }, "Decide");

  async function send(event) {
    event?.preventDefault();
    if (!question.value.trim()) { question.focus(); return; }
    submit.disabled = true;
    try {
      const asking = { question: question.value.trim(), rules: rules.value, goal: goal.value.trim(), connections: picks.read(), ...means.read(), asks: true, stream: true };
      const run = await ask("/api/ask", asking);
      keep_draft({ rules: asking.rules, goal: asking.goal, llm: asking.llm, technique: asking.technique });
      say("It has begun.");
      go(`/runs/${run.id}`);
    } catch (error) {
      line.replaceChildren(fault(error.message));
      submit.disabled = false;
    }
  }
  question.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(); });
  const beside = el("div.folded", { hidden: !rules.value && !goal.value }, el("label", {}, "Rules", rules), el("label", {}, "Objective", goal));
  const form = el("form.ask-box", { on: { submit: send } }, el("label.hush", { for: "question" }, "Your question"), question, beside, means.node,
    el("div.row", {}, toggle("Rules and objective", beside, rules), toggle(means.words(), means.node), submit));
  means.node.addEventListener("change", () => { form.querySelectorAll(".row > .quiet")[1].textContent = means.words(); });

  const nodes = [el("div.page.start", {}, el("div.stack", {}, el("h1", {}, "What do you need to decide?"), el("p.soft", {}, "Decisor plans the queries, compares every choice, and shows the row behind each number."), form, line),
    el("div.two", {}, ideas, data))];
  await show_data();
  return { nodes, title: "", ready: () => {
    if (matchMedia("(min-width: 900px)").matches) question.focus({ preventScroll: true });
  } };
}

function toggle(words, part, first = null) {
  const node = el("button.quiet", { type: "button", "aria-expanded": String(!part.hidden), on: { click: () => {
    part.hidden = !part.hidden;
    node.setAttribute("aria-expanded", String(!part.hidden));
    if (!part.hidden) first?.focus();
  } } }, words);
  return node;
}

/** The questions that the tables of the data give, each with what it uses. */
async function suggest(node, offer, question, chosen) {
  const all = await Promise.all(offer.connections.filter((one) => one.form === "sql" && (!chosen || one.name === chosen)).slice(0, 4).map((one) => ask(`/api/connections/${encodeURIComponent(one.name)}/questions`).catch(() => ({ questions: [] }))));
  const found = all.flatMap((one) => one.questions).slice(0, 6);
  node.hidden = !found.length;
  node.replaceChildren(el("h2", { id: "h-ideas" }, "Questions these data can answer"), el("ul.list", {}, found.map((one) => el("li", {},
    button(one.question, () => { question.value = one.question; question.focus(); scrollTo({ top: 0 }); }, { kind: "quiet" }), el("small", {}, one.uses.join(" · "))))));
  if (found.length) question.placeholder = found[0].question;
}

function data_picks(offer, chosen, changed) {
  const many = offer.connections.length > 1;
  const boxes = offer.connections.map((one) => {
    const box = el("input", { type: "checkbox", name: "connection", value: one.name, checked: !chosen || one.name === chosen, disabled: !many, hidden: !many });
    const panel = el("div.schema", { hidden: true });
    const again = async (habits) => {
      panel.replaceChildren(el("p.soft", {}, "Reading it again …"));
      try { await ask(`/api/files/${encodeURIComponent(one.name)}`, habits); panel.replaceChildren(...await schemaOf(one.name, again)); } catch (error) { panel.replaceChildren(fault(error.message)); }
    };
    const look = button("Look inside", async () => {
      if (!panel.childNodes.length) panel.append(...await schemaOf(one.name, one.mine ? again : null));
      panel.hidden = !panel.hidden;
      look.setAttribute("aria-expanded", String(!panel.hidden));
    }, { kind: "quiet", "aria-expanded": "false", "aria-label": many ? `Look inside ${one.label}` : null });
    if (one.name === chosen) look.click();
    const remove = button("Remove", async () => {
      try { await ask(`/api/files/${encodeURIComponent(one.name)}`, undefined, "DELETE"); await changed(); } catch (error) { panel.before(fault(error.message)); }
    }, { kind: "quiet", "aria-label": `Remove ${one.label}` });
    return el("li", {}, el("div.row", {}, el("label.check", {}, box, el("span", {}, el("b", {}, one.label), el("small", {}, [one.mine ? "File" : FORMS[one.form], one.mine ? "yours alone" : "read-only", one.model ? "with a decision model" : ""].filter(Boolean).join(" · ")))), one.mine ? remove : null, look), panel);
  });
  const list = boxes.length ? el("ul.list", {}, boxes) : el("p.soft", {}, `No data yet. ${offer.takes_files ? "Bring a file, or start" : "Start"} the server with --db, or with --demo for a made-up shop.`);
  const read = () => {
    const all = [...list.querySelectorAll("input[name=connection]")], on = all.filter((one) => one.checked);
    return on.length === all.length ? [] : on.map((one) => one.value);
  };
  return { nodes: [el("h2", { id: "h-data" }, "Your data"), list, ...offer.takes_files ? [drop_area(changed)] : []], read };
}

/** A file that is dropped here or chosen becomes data that only you can ask. */
function drop_area(changed) {
  const line = el("div", { role: "status" }), field = el("input.hush", { type: "file", id: "file", accept: ".csv,.tsv,.xlsx,.xls,.ods,.parquet" });
  async function bring(file) {
    if (!file) return;
    line.replaceChildren(el("p.soft", {}, `Reading ${visible(file.name)} …`));
    try {
      const { name } = await ask(`/api/files/${encodeURIComponent(file.name)}`, file, "PUT");
      await changed(name);
      say(`${file.name} is here.`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
    field.value = "";
  }
  field.addEventListener("change", () => bring(field.files[0]));
  const over = (event) => { event.preventDefault(); area.classList.toggle("over", event.type === "dragover"); };
  const area = el("label.drop", { for: "file", on: { dragover: over, dragleave: over, drop: (event) => { over(event); bring(event.dataTransfer.files[0]); } } },
    el("b", {}, "Drop a file here, or choose one"), el("small", {}, "CSV, Excel or Parquet, up to 100 MB. It stays on this server, and only you can ask it."), field);
  return el("div.stack", {}, area, line);
}

/** Which LLM, which method with its settings, and the limits. */
function means_of(offer, draft) {
  const there = new Set(offer.techniques.map((one) => one.name));
  const first = METHODS.filter(([name]) => there.has(name)), rest = offer.techniques.filter((one) => one.name !== "agent" && !first.some(([name]) => name === one.name));
  const llm = choice("llm", offer.llms.map((name) => [name, name === "none" ? "No LLM: only compute" : name]), draft.llm);
  const technique = el("select", { id: "technique" }, el("option", { value: "" }, "Agent: plans, queries and decides"), first.map(([name, text]) => el("option", { value: name }, text)),
    el("optgroup", { label: "More methods" }, rest.map((one) => el("option", { value: one.name }, plain(one.name)))));
  if (there.has(draft.technique)) technique.value = draft.technique;
  const about = el("p.soft", { id: "about" }), settings = el("div.settings");
  const limits = LIMITS.map(([name, title, step]) => el("label", {}, title, el("input", { type: "number", name, min: step, step, placeholder: offer.limits[name] === null ? "no limit" : `at most ${offer.limits[name]}` })));
  const approve = el("input", { type: "checkbox", id: "approve" });
  let read_settings = () => ({});
  function tell_technique() {
    const one = offer.techniques.find((each) => each.name === technique.value), made = one ? settings_of(one, offer.llms) : { nodes: [], read: () => ({}) };
    about.textContent = one ? one.about : "The usual one. Without an LLM a decision model is computed.";
    settings.replaceChildren(...made.nodes);
    read_settings = made.read;
  }
  /** Without an LLM only a decision model can be computed: the method of an earlier question is given up. */
  function tell_llm() {
    if (llm.value === "none" && technique.value !== "exact") technique.value = "";
    tell_technique();
  }
  technique.addEventListener("change", tell_technique);
  llm.addEventListener("change", tell_llm);
  tell_llm();
  const bounds = () => Object.fromEntries(limits.map((label) => label.querySelector("input")).filter((field) => field.value !== "").map((field) => [field.name, Number(field.value)]));
  const node = el("div.folded", { hidden: true }, el("div.two", {}, el("label", {}, "Model", llm), el("label", {}, "Method", technique)), about, settings, fold("Limits", el("div.grid-of", {}, limits)), el("label.check", {}, approve, el("span", {}, "Ask before each query")));
  const words = () => {
    const dollars = bounds().dollars ?? offer.limits.dollars;
    return [llm.value === "none" ? "No LLM" : llm.value, dollars ? `up to $${Number(dollars).toFixed(2)}` : "", approve.checked ? "asks before each query" : ""].filter(Boolean).join(" · ");
  };
  return { node, words, read: () => ({ llm: llm.value, technique: technique.value, settings: read_settings(), limits: bounds(), approve: approve.checked }) };
}

/** The settings of a technique as fields; what is left as it was is not sent. */
function settings_of(technique, llms) {
  const fields = technique.settings.map((one) => [one, setting_field(one, llms)]);
  const value = (one, text) => one.kind === "number" ? Number(text) : one.kind === "yes or no" ? text === "yes" : text;
  const read = () => Object.fromEntries(fields.filter(([, node]) => node.value !== "").map(([one, node]) => [one.name, value(one, node.value)]));
  const labels = fields.map(([one, node]) => el("label", {}, plain(one.name), node));
  return { nodes: labels.length ? [fold(`Settings of ${plain(technique.name)}`, el("div.grid-of", {}, labels))] : [], read };
}

function setting_field(one, llms) {
  const usual = one.default === null || one.default === "" ? "as usual" : `as usual (${one.default === true ? "yes" : one.default === false ? "no" : one.default})`;
  if (one.kind === "number") return el("input", { type: "number", step: "any", placeholder: usual });
  const options = one.kind === "yes or no" ? ["yes", "no"] : one.kind === "llm" ? llms : one.choices;
  return el("select", {}, el("option", { value: "" }, usual), options.map((name) => el("option", { value: name }, name)));
}

function choice(id, options, value) {
  const node = el("select", { id }, options.map(([name, text]) => el("option", { value: name }, text)));
  if (value !== undefined && options.some(([name]) => name === value)) node.value = value;
  return node;
}

function read_draft() {
  try { return JSON.parse(sessionStorage.getItem(DRAFT)) ?? {}; } catch { return {}; }
}

function keep_draft(draft) {
  try { sessionStorage.setItem(DRAFT, JSON.stringify(draft)); } catch { /* a browser that keeps nothing */ }
}
