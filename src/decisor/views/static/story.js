// How it got there, as a list that grows: hears the entries of a trace in order and draws each where it belongs.
import { button, count, el, markup, money, number, plain, took, visible } from "./dom.js";
import { difference, is_query, plan, query, records } from "./pieces.js";

const THOUGHT = /^\W*thought\W*:\s*(.+)/im;
const TABLES = /\b(?:from|join)\s+(?:only\s+)?((?:"[^"]+"|[\w.]+))/gi;
const LIST = 20;
const ROLES = { user: "sent", system: "system", assistant: "the model before", tool: "result of a tool" };
const MOST_THOUGHT = 1500;
const cut = (text) => text.length > MOST_THOUGHT ? `${text.slice(0, MOST_THOUGHT)}…` : text;

/** What a message says, its calls of tools too. */
const spoken = ({ content, calls = [] }) => [content, ...calls.map((call) => `${call.name} ${call.arguments}`)].filter(Boolean).join("\n\n");

/** The thought of a reply: of JSON its field, of text its line. */
function thought_of(text) {
  try {
    const { thought } = JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));
    if (typeof thought === "string") return thought;
  } catch { /* it is no JSON */ }
  return text.match(THOUGHT)?.[1];
}

/** What a query is called: its number and the tables that it reads, or what it looks for. */
export function title_of(tool, input, number) {
  if (tool === "whatif") return `Computed: ${input.replace(/\s+\w+=\S+/g, "").slice(0, 80)}`;
  if (tool === "passages" || !is_query(input)) return `${plain(tool)}: ${input.split("\n")[0].slice(0, 80)}`;
  const own = new Set([...input.matchAll(/(?:\bwith|,)\s+(\w+)\s+as\s*\(/gi)].map((one) => one[1].toLowerCase()));
  const names = [...new Set([...input.matchAll(TABLES)].map((one) => one[1].replaceAll('"', "")))].filter((one) => !own.has(one.toLowerCase()));
  return `Query ${number}${names.length ? `: ${names.slice(0, 4).join(", ")}` : ""}`;
}

export class Story {
  /** `tell`: called with what others want to know: {plan}, {doing}, {usage}, {step}. `edit`: given a place and what it
      holds, a button that changes it, or null. `prompt`: fetches the messages of the call with that entry. `files`: where
      a result can be had as a file. `open`: whether each step is unfolded, as while it happens. */
  constructor({ tell = () => {}, edit = null, prompt = null, files = () => "", open = false } = {}) {
    Object.assign(this, { tell, edit, fetch_prompt: prompt, files, open, plan: [], steps: 0, cited: new Set(), records: new Map(), decision: null });
    this.lists = new Map();
    this.actions = new Map();
    this.texts = new Map();
    this.nodes = new Map();
    this.usage = { calls: 0, tokens: 0, dollars: 0, actions: 0 };
    this.node = el("div.story", {}, el("ol.steps"));
  }

  /** The list that what happens in a span goes to: of the run itself the last of many short ones, so that what is out of
      sight is laid out as few things. */
  list(span) {
    const inner = this.lists.get(span);
    if (inner) return inner;
    if (this.node.lastChild.childElementCount >= LIST) this.node.append(el("ol.steps"));
    return this.node.lastChild;
  }

  hear(entry) {
    const item = this.draw(entry, entry.data);
    if (item) {
      item.id = `s-${entry.id}`;
      this.list(entry.span).append(item);
      for (const live of this.texts.values()) if (live.span === entry.span) item.after(live.node);
    }
  }

  draw(entry, data) {
    switch (entry.event) {
      case "Plan": return this.changeable(this.first_plan(data.steps), 0, data.steps);
      case "GraphPlan": return this.first_plan(data.steps);
      case "PlanChange": return this.changeable(this.replan(data), data.after_step, data.steps);
      case "LLMCall": return this.call(entry, data);
      case "ActionStart": return this.action(entry, data);
      case "ActionResult": return this.result(data);
      case "Span": return this.span(entry, data.name === "readings" ? "What the words mean" : plain(data.name), "");
      case "NodeSpan": return this.graph_node(entry, data);
      case "NodeResult": return this.answer(data);
      case "Conclusion":
        if (entry.span) return this.note("Decides", data.decision.answer || "nothing");
        this.decision = data.decision;
        return null;
      case "Cut": return this.note("…", `${count(data.entries, "event")} left out here`);
      case "UnreadableReply": return this.note(data.reason === "objection" ? "Sent back: the rows say otherwise" : `Malformed reply, retrying: ${plain(data.reason)}`, data.text, "bad");
      case "FailedCall": return data.reason === "tools" ? null : this.note("The model failed", data.text, "bad");
      case "ShortenedPrompt": return this.shortened(data);
      case "TechniqueChoice": return this.note(`Method: ${plain(data.technique)}`, data.why);
      case "SearchMatch": return this.note("Compares", `${data.nodes[0]} against ${data.nodes[1]}: ${data.score === 1 ? "the first" : data.score === 0 ? "the second" : "neither"} wins`);
      case "SearchProblem": return this.note(plain(data.problem), data.text, "bad");
      case "QueryScores": return data.queries.length > 1 ? this.note("Queries scored", data.queries.map((text, at) => `${data.scores[at].toFixed(2)}  ${text}`).join("\n")) : null;
      case "UnscoredAnswer": case "Note": return data.text ? this.note("Note", data.text) : null;
      default: return null;
    }
  }

  /** A step: its title, what is told beside it, and what is folded below. */
  item(kind, title, about, ...inside) {
    const head = el("summary", {}, typeof title === "string" ? el("b.what", {}, visible(title)) : title, about ? typeof about === "string" ? el("small", {}, about) : about : null);
    return el(`li.${kind}`, {}, el("details", { open: this.open || kind === "replan" || kind === "bad" }, head, inside));
  }

  /** A short note is its own title. */
  note(title, text, kind = "notes") {
    if (kind === "notes" && title === "Note" && text.length < 160) return el("li.notes", {}, el("p.soft", {}, visible(text)));
    return this.item(kind, title, "", el("p", {}, visible(text)));
  }

  shortened(data) {
    const results = data.left_out.filter((id) => /^o\d+$/.test(id)), records = data.left_out.length - results.length;
    const parts = [results.length ? `${count(results.length, "result")} (${results.join(", ")})` : "", records || !results.length ? count(records, "record") : ""];
    return this.note("Shortened", `${parts.filter(Boolean).join(" and ")} left out of the prompt: there is room for ${number(data.room)} tokens.`);
  }

  first_plan(steps) {
    this.plan = steps;
    this.tell({ plan: steps });
    return this.item("plan", `Plan: ${steps[0] ?? ""}`, steps.length > 1 ? count(steps.length, "step") : "", plan(steps));
  }

  replan(data) {
    const before = this.plan;
    this.plan = data.steps;
    this.tell({ plan: data.steps, before });
    return this.item("replan", "Changed the plan", data.after_step ? `after step ${data.after_step}` : "", el("p", {}, visible(data.why) || "No reason given."), difference(before, data.steps));
  }

  /** A plan of steps, each of which can be changed. */
  changeable(item, at, steps) {
    return this.with_edit(item, { kind: "plan", at: String(at), plan: steps });
  }

  with_edit(item, place) {
    const tool = this.edit?.({ ...place, node: item.firstChild });
    if (tool) item.firstChild.append(tool);
    return item;
  }

  call(entry, data) {
    this.usage.calls += 1;
    this.usage.tokens += data.usage.prompt_tokens + data.usage.completion_tokens;
    this.usage.dollars = this.usage.dollars === null || data.usage.dollars === null ? null : this.usage.dollars + data.usage.dollars;
    const text = data.turn ? spoken(data.turn) : data.texts.join("\n\n");
    const thoughts = (data.turn ? [data.thoughts, data.turn.content] : [thought_of(text)]).filter((one) => one?.trim());
    const now = [...text.matchAll(/current step\W{0,6}(?:step\W{0,3})?(\d{1,3})/gi)].at(-1);
    this.tell({ usage: this.usage, doing: "", ...(now ? { step: Number(now[1]) } : {}) });
    const about = [took(data.usage.seconds), `${number(data.usage.prompt_tokens + data.usage.completion_tokens)} tokens`, data.replayed ? "not paid for again" : data.usage.dollars ? money(data.usage.dollars) : ""].filter(Boolean).join(" · ");
    const prompt = this.fetch_prompt ? el("details.prompt", {}, el("summary", {}, "What it was sent")) : null;
    prompt?.addEventListener("toggle", () => this.prompt(prompt, entry.id), { once: true });
    const said = thoughts.length ? el("span", {}, thoughts.map((one) => el("span.thought", {}, visible(cut(one))))) : el("span.soft", {}, "Reply");
    const item = this.item("says", said, about, el("pre", { tabindex: 0 }, visible([data.thoughts, text].filter(Boolean).join("\n\n"))), prompt);
    item.firstChild.open = false;
    return item;
  }

  async prompt(box, number) {
    try {
      const messages = await this.fetch_prompt(number);
      box.append(...messages.map((one) => el("div", {}, el("small", {}, ROLES[one.role] ?? one.role), el("pre", { tabindex: 0 }, visible(spoken(one))))));
    } catch (error) { box.append(el("p.fault", {}, error.message)); }
  }

  action(entry, data) {
    this.usage.actions += 1;
    this.steps += 1;
    const number = this.steps, title = title_of(data.tool, data.input, number);
    this.tell({ usage: this.usage, doing: `${/^Query/.test(title) ? `Query ${number}` : plain(data.tool)} runs` });
    const state = el("small.runs", {}, "runs …"), body = el("div.stack");
    const node = this.item("acts", title, state, data.input ? query(data.input) : null, body);
    this.actions.set(entry.id, { node, state, body, tool: data.tool, input: data.input, number });
    return node;
  }

  result(data) {
    const start = this.actions.get(data.action);
    if (!start) return null;
    const { observation } = data;
    this.tell({ doing: "Thinking" });
    const total = observation.total ?? observation.records.length;
    const many = observation.records.length ? (total > observation.records.length ? `${number(observation.records.length)} of ${count(total, "row")}` : count(total, "row")) : "";
    start.state.className = "";
    start.state.textContent = [many || (observation.error ? "failed" : "no rows"), took(data.seconds)].filter(Boolean).join(" · ");
    if (observation.error) start.node.classList.add("bad");
    if (observation.note) start.body.append(el(observation.error ? "p.fault" : "p.soft", {}, visible(observation.note)));
    for (const one of observation.records) this.records.set(one.id, one);
    const name = observation.records[0]?.id.split(".")[0];
    start.body.append(...records(observation.records, this.cited, start.tool, name ? this.files(name) : ""));
    const copy = navigator.clipboard && start.input ? button("Copy", () => navigator.clipboard.writeText(start.input), { kind: "quiet", "aria-label": `Copy the input of step ${start.number}` }) : null;
    if (copy && this.edit) start.body.append(el("div.tools.change", {}, copy));
    this.with_edit(start.node, { kind: "step", at: String(start.number), action: start.input, observation: observation.note });
    return null;
  }

  span(entry, name, about) {
    const list = el("ol.steps");
    this.lists.set(entry.id, list);
    const item = this.item("span", name, about, list);
    item.firstChild.open = true;
    return item;
  }

  graph_node(entry, data) {
    const node = this.span(entry, data.node, data.source);
    node.firstChild.insertBefore(el("p", {}, visible(data.question)), node.firstChild.lastChild);
    node.classList.add("node");
    this.nodes.set(data.node, node);
    this.tell({ doing: `${data.node}: ${data.question}` });
    return node;
  }

  answer({ answer, reused }) {
    const is_good = answer.status === "answered";
    const words = is_good ? answer.answer : [answer.status, answer.why].filter(Boolean).join(": ");
    const about = [is_good ? plain(answer.attribution) : "", reused ? "kept from the run before" : ""].filter(Boolean).join(" · ");
    const item = this.item(is_good ? "part" : "bad", `Answer: ${words}`, about, answer.support ? el("p.thought", {}, `“${visible(answer.support)}”`) : null);
    for (const one of answer.documents ?? []) this.records.set(one.id, one);
    const node = this.nodes.get(answer.node);
    this.tell({ node: answer.node });
    this.with_edit(item, { kind: "node", at: answer.node, answer: answer.answer, ask: answer.question });
    if (!node) return item;
    node.querySelector(":scope > details > .steps").append(item);
    return null;
  }

  /** What is written just now: the text of a call is its first `keep` characters followed by more. */
  writing(data) {
    let live = this.texts.get(data.call);
    if (data.is_over) {
      live?.node.remove();
      this.texts.delete(data.call);
      return;
    }
    if (!live) {
      const text = el("span.busy");
      live = { letters: [], text, span: data.span, node: el("li.says.live-text", {}, el("pre.writes", {}, text)) };
      this.texts.set(data.call, live);
      this.list(data.span).append(live.node);
    }
    live.letters = [...live.letters.slice(0, data.keep), ...data.text];
    live.text.textContent = visible(live.letters.slice(-1500).join(""));
  }

  /** The run is over: nothing is written any more, records that the decision cites stand out, and steps are folded. */
  end(cited) {
    for (const { node } of this.texts.values()) node.remove();
    this.texts.clear();
    this.cited = new Set(cited);
    for (const id of this.cited) this.node.querySelector(`#r-${CSS.escape(id)}`)?.classList.add("cited");
    for (const { state } of this.actions.values()) if (state.textContent === "runs …") state.textContent = "nothing came back";
    if (this.open) for (const one of this.node.querySelectorAll("li:is(.acts, .plan, .notes) > details[open]")) one.open = false;
  }
}

/** A run that is over, from its entries and the HTML of its result: its story, and the parts of its result. */
export function tell({ entries = [], result = "" }) {
  const story = new Story();
  for (const entry of entries) story.hear(entry);
  story.end(story.decision?.evidence.ids ?? []);
  return { story, nodes: markup(result) };
}
