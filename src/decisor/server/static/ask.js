// Ask: a question, and beneath it what it is decided by, with what, and within which limits.
import { ask, choices } from "./api.js";
import { button, el, fault, fold, plain, say } from "./dom.js";
import { go } from "./address.js";
import { schemaOf } from "./schema.js";
import { settingsOf } from "./settings.js";

const LIMITS = [["calls", "LLM calls", 1], ["tokens", "Tokens", 1], ["dollars", "Dollars", 0.01], ["seconds", "Seconds", 1], ["actions", "Actions", 1]];
const KEPT = "decisor-draft";

export async function askView(query) {
  const offer = await choices();
  const draft = read_draft();
  const question = el("textarea", { id: "question", rows: 3, required: true, maxlength: 20000, "aria-describedby": "hint",
    placeholder: "Which supplier should we drop, if profit counts and no product may be left without one?" });
  question.value = query.get("question") ?? draft.question ?? "";
  const rules = el("textarea", { id: "rules", rows: 4, maxlength: 200000, placeholder: "Drop exactly one supplier. Damage in transport does not count." });
  rules.value = draft.rules ?? "";
  const goal = el("input", { id: "goal", maxlength: 20000, placeholder: "The largest profit of the year" });
  goal.value = draft.goal ?? "";
  const follows = query.get("follows") ?? "";
  const picks = connection_picks(offer);
  const llm = choice("llm", offer.llms.map((name) => [name, name === "none" ? "none: only compute" : name]), draft.llm);
  const technique = choice("technique", [["", "default"], ...offer.techniques.map((one) => [one.name, plain(one.name)])], draft.technique);
  const about = el("p.soft", { id: "about" });
  const settings = el("div.settings");
  technique.addEventListener("change", () => tell_technique());
  const limits = LIMITS.map(([name, title, step]) => el("label", {}, title,
    el("input", { type: "number", name, min: step, step, placeholder: offer.limits[name] === null ? "no limit" : `at most ${offer.limits[name]}` })));
  const approve = el("input", { type: "checkbox", id: "approve" });
  const line = el("div");
  const submit = el("button.primary", { type: "submit" }, "Decide");
  const draw = offer.techniques.length ? settingsOf : () => ({ nodes: [], read: () => ({}) });
  let read_settings = () => ({});

  function tell_technique() {
    const one = offer.techniques.find((each) => each.name === technique.value);
    about.textContent = one ? one.about : "Queries and decides by tool calls; as plan_rag does if the LLM has none. Without an LLM a decision model is computed.";
    const made = one ? draw(one, offer.llms) : { nodes: [], read: () => ({}) };
    settings.replaceChildren(...made.nodes);
    read_settings = made.read;
  }
  tell_technique();

  function body() {
    const bounds = {};
    for (const label of limits) {
      const field = label.querySelector("input");
      if (field.value !== "") bounds[field.name] = Number(field.value);
    }
    return { question: question.value.trim(), rules: rules.value, goal: goal.value.trim(), connections: picks.read(), technique: technique.value,
      settings: read_settings(), llm: llm.value, limits: bounds, approve: approve.checked, asks: true, stream: true, follows };
  }

  async function send(event) {
    event?.preventDefault();
    if (!question.value.trim()) { question.focus(); return; }
    submit.disabled = true;
    try {
      const asking = body();
      const run = await ask("/api/ask", asking);
      keep_draft({ rules: asking.rules, goal: asking.goal, llm: asking.llm, technique: asking.technique });
      say("The run has begun.");
      go(`/runs/${run.id}`);
    } catch (error) {
      line.replaceChildren(fault(error.message));
      submit.disabled = false;
    }
  }
  question.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(); });

  const form = el("form", { on: { submit: send } },
    el("div.asker", {},
      el("label.hush", { for: "question" }, follows ? "Follow-up question" : "Question"), question,
      el("div.bar", {}, el("span.soft", { id: "hint" }, "Ctrl+Enter decides"), submit)),
    line,
    picks.node,
    el("div.cards", {},
      el("section.card", { "aria-labelledby": "h-rules" }, el("h2", { id: "h-rules" }, "Rules and goal"),
        el("label", { for: "rules" }, "What it is decided by"), rules, el("label", { for: "goal" }, "What is to be reached"), goal),
      el("section.card", { "aria-labelledby": "h-how" }, el("h2", { id: "h-how" }, "How"),
        el("label", { for: "llm" }, "Model"), llm, el("label", { for: "technique" }, "Technique"), technique, about, settings,
        fold("Limits", el("div.grid", {}, limits)),
        el("label.check", {}, approve, el("span", {}, "Show me each query before it runs")))));

  const nodes = [el("div.page", {},
    el("h1", {}, follows ? "Ask further" : "What is to be decided?"),
    follows ? el("p.soft", {}, "The technique sees the decision before and its evidence. ", el("a", { href: `/runs/${follows}` }, "Back to that run")) : examples(offer, question),
    form)];
  return { nodes, title: "", ready: () => { if (matchMedia("(min-width: 900px)").matches) question.focus({ preventScroll: true }); } };
}

function examples(offer, question) {
  if (!offer.connections.length) return el("p.soft", {}, "No data are open: start it with decisor serve --db FILE or --docs FOLDER.");
  const texts = ["Which of these is the best choice, and by how much?", "What would have to change for the second best to win?", "Where do we lose the most?"];
  return el("p.examples", {}, el("span.soft", {}, "For example: "), texts.map((text) => button(text, () => { question.value = text; question.focus(); }, { kind: "chip" })));
}

function connection_picks(offer) {
  const many = offer.connections.length > 1;
  const boxes = offer.connections.map((one) => {
    const box = el("input", { type: "checkbox", name: "connection", value: one.name, checked: true, disabled: !many });
    const panel = el("div.schema", { hidden: true });
    const look = button("See what is in it", async () => {
      if (!panel.childNodes.length) panel.append(...await schemaOf(one.name));
      panel.hidden = !panel.hidden;
      look.setAttribute("aria-expanded", String(!panel.hidden));
    }, { kind: "plain", "aria-expanded": "false" });
    return el("li", {}, el("div.row", {}, el("label.check", {}, box, el("span", {}, el("b", {}, one.label), el("span.soft", {}, ` ${FORMS[one.form]}${one.model ? ", with a decision model" : ""}`))), look), panel);
  });
  const node = el("fieldset.data", {}, el("legend", {}, "Data"), boxes.length ? el("ul", {}, boxes) : el("p.soft", {}, "none"));
  const read = () => {
    const all = [...node.querySelectorAll("input[name=connection]")], on = all.filter((one) => one.checked);
    return on.length === all.length ? [] : on.map((one) => one.value);
  };
  return { node, read };
}

const FORMS = { sql: "database", cypher: "graph", passages: "documents", tools: "tools" };

function choice(id, options, value) {
  const node = el("select", { id }, options.map(([name, text]) => el("option", { value: name }, text)));
  if (value !== undefined && options.some(([name]) => name === value)) node.value = value;
  return node;
}

function read_draft() {
  try { return JSON.parse(sessionStorage.getItem(KEPT)) ?? {}; } catch { return {}; }
}

function keep_draft(draft) {
  try { sessionStorage.setItem(KEPT, JSON.stringify(draft)); } catch { /* a browser that keeps nothing */ }
}
