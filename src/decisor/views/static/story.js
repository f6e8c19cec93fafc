// What happened, as a list that grows: hears the entries of a trace in order and draws each where it belongs.
import { count, el, markup, number, plain, took, visible } from "./dom.js";
import { difference, plan, query, records } from "./pieces.js";

const THOUGHT = /^\W*thought\W*:\s*(.+)/im;
const LIST = 20;
const ROLES = { user: "sent", system: "system", assistant: "the model before", tool: "result of a tool" };
const MOST_THOUGHT = 1500;
const cut = (text) => text.length > MOST_THOUGHT ? `${text.slice(0, MOST_THOUGHT)}…` : text;

/** What a message says, its calls of tools too. */
const spoken = ({ content, calls = [] }) => [content, ...calls.map((call) => `${call.name} ${call.arguments}`)].filter(Boolean).join("\n\n");

export class Story {
  /** `tell`: called with what others want to know: {plan}, {doing}, {usage}, {step}. `edit`: given a place and what it
      holds, a button that changes it, or null. `prompt`: fetches the messages of the call with that entry. */
  constructor({ tell = () => {}, edit = null, prompt = null } = {}) {
    Object.assign(this, { tell, edit, fetch_prompt: prompt, plan: [], steps: 0, cited: new Set(), records: new Map(), decision: null });
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
      case "Span": return this.span(entry, plain(data.name), "");
      case "NodeSpan": return this.graph_node(entry, data);
      case "NodeResult": return this.answer(data);
      case "Conclusion":
        if (entry.span) return this.note("Decides", data.decision.answer || "nothing");
        this.decision = data.decision;
        return null;
      case "Cut": return this.note("…", `${count(data.entries, "event")} left out here`);
      case "UnreadableReply": return this.note("Asked again", plain(data.reason), "bad");
      case "FailedCall": return this.note("The model failed", data.text, "bad");
      case "ShortenedPrompt": return this.shortened(data);
      case "TechniqueChoice": return this.note(`Takes ${plain(data.technique)}`, data.why);
      case "SearchMatch": return this.note("Compares", `${data.nodes[0]} against ${data.nodes[1]}: ${data.score === 1 ? "the first" : data.score === 0 ? "the second" : "neither"} wins`);
      case "SearchProblem": return this.note(plain(data.problem), data.text, "bad");
      case "QueryScores": return data.queries.length > 1 ? this.note("Queries scored", data.queries.map((text, at) => `${data.scores[at].toFixed(2)}  ${text}`).join("\n")) : null;
      case "UnscoredAnswer": case "Note": return data.text ? this.note("Note", data.text) : null;
      default: return null;
    }
  }

  item(kind, title, rest, ...inside) {
    return el(`li.${kind}`, {}, el("div.what", {}, el("b", {}, title), rest.filter(Boolean).map((one) => typeof one === "string" ? el("span", {}, one) : one)), inside);
  }

  note(title, text, kind = "notes") {
    return this.item(kind, title, [], el("p", {}, visible(text)));
  }

  shortened(data) {
    const results = data.left_out.filter((id) => /^o\d+$/.test(id)), records = data.left_out.length - results.length;
    const parts = [results.length ? `${count(results.length, "result")} (${results.join(", ")})` : "", records || !results.length ? count(records, "record") : ""];
    return this.note("Shortened", `${parts.filter(Boolean).join(" and ")} left out of the prompt: there is room for ${number(data.room)} tokens.`);
  }

  first_plan(steps) {
    this.plan = steps;
    this.tell({ plan: steps });
    return this.item("plan", "Plan", [], plan(steps));
  }

  replan(data) {
    const before = this.plan;
    this.plan = data.steps;
    this.tell({ plan: data.steps, before });
    return this.item("replan", "Replan", [data.after_step ? `after step ${data.after_step}` : ""], el("p", {}, visible(data.why) || "No reason given."), difference(before, data.steps));
  }

  /** A plan of steps, each of which can be changed. */
  changeable(item, at, steps) {
    const tool = this.edit?.({ kind: "plan", at: String(at), node: item, plan: steps });
    if (tool) item.firstChild.append(tool);
    return item;
  }

  call(entry, data) {
    this.usage.calls += 1;
    this.usage.tokens += data.usage.prompt_tokens + data.usage.completion_tokens;
    this.usage.dollars = this.usage.dollars === null || data.usage.dollars === null ? null : this.usage.dollars + data.usage.dollars;
    const text = data.turn ? spoken(data.turn) : data.texts.join("\n\n");
    const thoughts = data.turn ? [data.thoughts, data.turn.content] : [text.match(THOUGHT)?.[1]];
    const now = [...text.matchAll(/current step\W{0,6}(?:step\W{0,3})?(\d{1,3})/gi)].at(-1);
    this.tell({ usage: this.usage, doing: "", ...(now ? { step: Number(now[1]) } : {}) });
    const about = [data.model, `${number(data.usage.prompt_tokens + data.usage.completion_tokens)} tokens`, took(data.usage.seconds), data.replayed ? "not paid for again" : ""].filter(Boolean).join(", ");
    const prompt = this.fetch_prompt ? el("details.prompt", {}, el("summary", {}, "What it was sent")) : null;
    prompt?.addEventListener("toggle", () => this.prompt(prompt, entry.id), { once: true });
    const box = el("details", {}, el("summary", {}, `The model wrote (${about})`), el("pre", { tabindex: 0 }, visible([data.thoughts, text].filter(Boolean).join("\n\n"))), prompt);
    return el("li.says", {}, thoughts.filter((one) => one?.trim()).map((one) => el("p.thought", {}, visible(cut(one)))), box);
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
    const number = this.steps;
    this.tell({ usage: this.usage, doing: `${data.tool} runs` });
    const state = el("span.state", {}, "runs …"), body = el("div");
    const node = this.item("acts", data.tool, [state, el("small.step", {}, `step ${number}`)], data.input ? query(data.input) : null, body);
    this.actions.set(entry.id, { node, state, body, tool: data.tool, input: data.input, number });
    return node;
  }

  result(data) {
    const start = this.actions.get(data.action);
    if (!start) return null;
    const { observation } = data;
    this.tell({ doing: "the model thinks" });
    const total = observation.total ?? observation.records.length;
    const many = observation.records.length ? (total > observation.records.length ? `${number(observation.records.length)} of ${count(total, "record")}` : count(total, "record")) : "";
    start.state.textContent = [many, took(data.seconds)].filter(Boolean).join(", ");
    if (observation.error) start.node.classList.add("bad");
    if (observation.note) start.body.append(el(observation.error ? "p.fault" : "p.soft", {}, visible(observation.note)));
    for (const one of observation.records) this.records.set(one.id, one);
    start.body.append(...records(observation.records, this.cited, start.tool));
    const tool = this.edit?.({ kind: "step", at: String(start.number), node: start.node, action: start.input, observation: observation.note });
    if (tool) start.node.firstChild.append(tool);
    return null;
  }

  span(entry, name, about) {
    const list = el("ol.steps");
    this.lists.set(entry.id, list);
    return el("li.span", {}, el("div.what", {}, el("b", {}, name), about ? el("span", {}, about) : null), list);
  }

  graph_node(entry, data) {
    const node = this.span(entry, data.node, data.source);
    node.insertBefore(el("p", {}, visible(data.question)), node.lastChild);
    node.classList.add("node");
    this.nodes.set(data.node, node);
    this.tell({ doing: `${data.node}: ${data.question}` });
    return node;
  }

  answer({ answer, reused }) {
    const is_good = answer.status === "answered";
    const words = is_good ? answer.answer : [answer.status, answer.why].filter(Boolean).join(": ");
    const item = this.item(is_good ? "answer" : "bad", "Answer", [is_good ? plain(answer.attribution) : "", reused ? "kept from the run before" : ""], el("p", {}, visible(words)), answer.support ? el("p.thought", {}, `“${visible(answer.support)}”`) : null);
    for (const one of answer.documents ?? []) this.records.set(one.id, one);
    const node = this.nodes.get(answer.node);
    this.tell({ node: answer.node });
    const tool = this.edit?.({ kind: "node", at: answer.node, node: item, answer: answer.answer, ask: answer.question });
    if (tool) item.firstChild.append(tool);
    if (!node) return item;
    node.lastChild.append(item);
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
      const text = el("pre.writes", {}, "");
      live = { letters: [], text, span: data.span, node: el("li.says.live", {}, el("div.what", {}, el("b", {}, "Thinks")), text) };
      this.texts.set(data.call, live);
      this.list(data.span).append(live.node);
    }
    live.letters = [...live.letters.slice(0, data.keep), ...data.text];
    live.text.textContent = visible(live.letters.slice(-1500).join(""));
  }

  /** The run is over: nothing is written any more, and records that the decision cites stand out. */
  end(cited) {
    for (const { node } of this.texts.values()) node.remove();
    this.texts.clear();
    this.cited = new Set(cited);
    for (const id of this.cited) this.node.querySelector(`#r-${CSS.escape(id)}`)?.classList.add("cited");
    for (const { state } of this.actions.values()) if (state.textContent === "runs …") state.textContent = "nothing came back";
  }
}

/** A run that is over, from its entries and the HTML of its result: its story, and the parts of its result. */
export function tell({ entries = [], result = "" }) {
  const story = new Story();
  for (const entry of entries) story.hear(entry);
  story.end(story.decision?.evidence.ids ?? []);
  return { story, nodes: markup(result) };
}
