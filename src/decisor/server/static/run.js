// A run: watched while it happens, read when it is over, changed and shared.
import { ask, choices, listen } from "./api.js";
import { button, el, fault, lasts, lead, markup, money, number, plain, say, took, visible } from "./dom.js";
import { go } from "./address.js";
import { editor } from "./change.js";
import { canvas } from "./drawing.js";
import { query } from "./pieces.js";
import { names } from "./runs.js";
import { markOf, share } from "./share.js";
import { Story } from "./story.js";

const NEAR = 160;
const DRAWING = 8;

export async function runView(id) {
  const [run, { user }] = await Promise.all([ask(`/api/runs/${encodeURIComponent(id)}`), choices()]);
  const view = new RunView(run, { other: run.owner === user ? "" : run.owner });
  return { nodes: [view.node], title: view.run.question.slice(0, 60), close: () => view.close(), ready: () => view.watch() };
}

const where = ({ at, plan }) => plan ? `in its plan${at === "0" ? "" : ` after step ${at}`}` : `at ${/^\d/.test(at ?? "") ? `step ${at}` : at ?? "a step"}`;
const is_over = (run) => !["running", "waiting"].includes(run.state);

/** `side`: it stands beside another one, so it has no rail. `other`: whose it is, who shows it to us, if it is not ours. */
export class RunView {
  constructor(run, { side = false, other = "", ended = null } = {}) {
    Object.assign(this, { run, side, other, ended, entries: [], is_due: false, step: 1 });
    this.head = el("header.runhead");
    this.top = el("div.result");
    this.drawings = el("div.drawings");
    this.approvals = el("div.approvals", { "aria-live": "polite" });
    this.story = new Story({
      tell: (news) => this.news(news),
      edit: side || other ? null : (place) => editor(this.run, place),
      prompt: async (number) => (await ask(`/api/runs/${run.id}/entries/${number}`)).data.messages,
    });
    this.plan = el("ol.ticks");
    this.status = el("p.status");
    this.spend = el("dl.spend");
    this.deeds = el("div.deeds");
    this.rail = el("aside.rail", { "aria-label": "Status and plan" }, this.status, this.deeds, this.spend, el("h2", {}, "Plan"), this.plan);
    const happened = el("section", { "aria-labelledby": `h-story-${run.id}` }, el("h2", { id: `h-story-${run.id}` }, "What happened"), this.drawings, this.story.node, this.approvals);
    this.node = el(side ? "div.run.half" : "div.page.run", {}, el("div.body", {}, this.head, this.top, happened), this.rail);
    this.plan_steps = [];
    if (side) lead(this.node);
    this.show_head();
    this.show_state();
  }

  watch() {
    this.source = listen(`/api/runs/${this.run.id}/events`, {
      entry: (entry) => this.hear(entry),
      writing: (data) => this.hear({ writing: data }),
      approval: (data) => this.approval(data),
      reading: (data) => this.reading(data),
      state: (run) => { this.run = run; this.show_state(); },
      end: (run, source) => { source.close(); this.last = run; if (!this.is_due) this.draw_next(); },
      lost: (for_good) => { if (for_good && !is_over(this.run)) this.status.replaceChildren(fault("The connection was lost. Load the page again to go on watching.")); },
    });
    this.clock = setInterval(() => this.tick(), 500);
  }

  close() {
    this.source?.close();
    clearInterval(this.clock);
  }

  /** An entry, or what is being written: both are drawn in their order. */
  hear(entry) {
    this.entries.push(entry);
    if (entry.event === "RunStart") { Object.assign(this.run, { technique: entry.data.technique || this.run.technique, llm: entry.data.llm }); this.show_head(); }
    if (!this.is_due) this.draw_next();
  }

  draw_next() {
    this.is_due = true;
    requestAnimationFrame(() => this.flush(performance.now() + DRAWING));
  }

  /** Draw what was heard, as much as there is time for in a frame: the page stays quick, however much comes. */
  flush(until) {
    const was_near = this.is_near();
    let many = 0;
    while (many < this.entries.length && (many === 0 || performance.now() < until)) {
      const entry = this.entries[many++];
      if (entry.writing) this.story.writing(entry.writing);
      else this.story.hear(entry);
    }
    this.entries.splice(0, many);
    this.is_due = false;
    this.show_spend();
    if (was_near) this.follow();
    if (this.entries.length) this.draw_next();
    else if (this.last) this.end();
  }

  /** Asked before anything is drawn: where everything stands is known then. */
  is_near() {
    return !this.side && !is_over(this.run) && innerHeight + scrollY > document.documentElement.scrollHeight - NEAR;
  }

  follow() {
    scrollTo({ top: document.documentElement.scrollHeight });
  }

  news(news) {
    if (news.plan) {
      if (news.before) say(`Replan. The plan now: ${news.plan.join("; ")}`);
      else say(`Plan: ${news.plan.join("; ")}`);
      this.plan_steps = news.plan;
      this.step = 1;
      this.show_plan();
      this.draw_soon();
    }
    if (news.step) { this.step = news.step; this.show_plan(); }
    if (news.node) { this.step += 1; this.show_plan(); this.draw_soon(); }
    if (news.doing !== undefined) { this.doing = news.doing || "thinks"; this.tick(); }
  }

  show_head() {
    const { run } = this;
    const about = [this.other ? `asked by ${this.other}` : "", plain(run.technique) || "default technique", run.llm || "no model", run.connections.join(", "), new Date(run.began).toLocaleString("en", { dateStyle: "medium", timeStyle: "short", hour12: false })].filter(Boolean).join(" · ");
    this.head.replaceChildren(...[
      el("p.soft", {}, about), el(this.side ? "h2.title" : "h1", {}, visible(run.question)),
      run.goal && !run.question.includes(run.goal) ? el("p", {}, visible(run.goal)) : null,
      run.rules ? el("details", {}, el("summary", {}, "Rules"), el("p.rules", {}, visible(run.rules))) : null,
      run.follows ? el("p.soft", {}, "Follows ", el("a", { href: `/runs/${run.follows}` }, "an earlier decision")) : null,
      run.changed_from ? el("p.soft", {}, `Changed ${where(run.edit)} from `, el("a", { href: `/runs/${run.changed_from}` }, "this run"), ". ", this.side ? null : el("a", { href: `/compare?before=${run.changed_from}&after=${run.id}` }, "Both side by side")) : null].filter(Boolean));
  }

  show_state() {
    const { run } = this;
    this.heard = Date.now();
    const word = run.state === "finished" ? names[run.stopped] ?? run.stopped : run.state;
    this.status.className = `status ${run.state} ${run.stopped}`;
    this.node.classList.toggle("over", is_over(run));
    this.words = el("span.words", {}, word);
    this.status.replaceChildren(el("span.dot", { "aria-hidden": "true" }), this.words);
    const again = { question: run.question };
    const record = run.answer ? el("a.button.plain", { href: `/runs/${run.id}/record` }, "Record") : null;
    this.deeds.replaceChildren(...(this.side ? [] : this.other ? [record, share(run)].filter(Boolean) : is_over(run)
      ? [el("a.button", { href: `/?${new URLSearchParams({ follows: run.id })}` }, "Ask further"), el("a.button.plain", { href: `/?${new URLSearchParams(again)}` }, "Ask again"), run.state !== "finished" || run.stopped === "budget" ? button("Go on", () => this.resume(), { kind: "plain" }) : null, record, share(run, true), markOf(run)].filter(Boolean)
      : [button("Stop", async () => { await ask(`/api/runs/${run.id}/stop`, {}); say("Stopped."); }, { kind: "stop" })]));
    if (run.error) this.top.replaceChildren(fault(run.error));
    this.show_spend();
  }

  /** From where it was stopped or failed; what was bought is not bought again. */
  async resume() {
    try {
      go(`/runs/${(await ask(`/api/runs/${this.run.id}/resume`, { stream: true })).id}`);
    } catch (error) { this.status.append(fault(error.message)); }
  }

  show_plan() {
    const over = is_over(this.run);
    this.plan.replaceChildren(...this.plan_steps.map((step, at) => {
      const state = over || at + 1 < this.step ? "done" : at + 1 === this.step ? "now" : "next";
      return el(`li.${state}`, { "aria-current": state === "now" ? "step" : null }, visible(step.replace(/^Q[\d.]+:\s*/, "")));
    }));
  }

  show_spend() {
    const { run, story } = this;
    const own = is_over(run) ? { calls: run.usage.calls, tokens: run.usage.prompt_tokens + run.usage.completion_tokens, dollars: run.usage.dollars, actions: run.usage.actions } : story.usage;
    const pairs = [["Calls", number(own.calls)], ["Tokens", number(own.tokens)], ["Price", own.dollars === null ? "unknown" : money(own.dollars)], ["Actions", number(own.actions)], ...(is_over(run) ? [["Time", took(run.seconds) || "–"]] : [])];
    this.spend.replaceChildren(...pairs.map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))));
  }

  tick() {
    if (is_over(this.run)) return;
    const seconds = this.run.seconds + (Date.now() - this.heard) / 1000;
    this.words.textContent = this.run.state === "waiting" ? "waits for a place" : this.approvals.childElementCount ? "waiting for your answer" : `${this.doing ?? "starts"} · ${lasts(Math.floor(seconds))}`;
  }

  approval(data) {
    const there = this.approvals.querySelector(`[data-number="${data.number}"]`);
    if ("allow" in data) { there?.remove(); return; }
    const why = el("input", { id: `why-${data.number}`, placeholder: "Why not? The model reads it." });
    const decide = (allow) => ask(`/api/runs/${this.run.id}/approvals/${data.number}`, { allow, why: why.value });
    this.wait(el("section.card.approval", { "data-number": data.number, "aria-label": "A query waits" },
      el("b", {}, `May ${data.tool} run this?`), query(data.input), el("div.bar", {},
        button("Run it", () => decide(true), { kind: "primary" }), el("label.hush", { for: why.id }, "Why not"), why, button("Refuse", () => decide(false)))));
    say(`${data.tool} is waiting for approval.`);
  }

  /** Something that waits for a person is brought into sight, unless they look elsewhere. */
  wait(card) {
    const was_near = this.is_near();
    this.approvals.append(card);
    if (was_near) this.follow();
  }

  reading(data) {
    const there = this.approvals.querySelector(`[data-reading="${data.number}"]`);
    if ("answer" in data) { there?.remove(); return; }
    const own = el("input", { id: `means-${data.number}`, placeholder: "In your own words" });
    const tell = (answer) => ask(`/api/runs/${this.run.id}/readings/${data.number}`, { answer });
    const words = data.asks ? data.words : `What is meant by “${data.words}”?`;
    this.wait(el("section.card.approval", { "data-reading": data.number, "aria-label": data.asks ? "A question waits" : "Words wait for what they mean" },
      el("b", {}, words),
      el("div.bar", {}, ...data.choices.map((choice, at) => button(choice, () => tell(String(at + 1)), at ? {} : { kind: "primary" }))),
      ...(data.asks ? [] : [el("div.bar", {}, el("label.hush", { for: own.id }, "Or"), own, button("Take this", () => own.value.trim() && tell(own.value)), button("Compute both", () => tell("")))])));
    say(words);
  }

  draw_soon() {
    clearTimeout(this.drawing);
    this.drawing = setTimeout(() => this.picture(), is_over(this.run) ? 0 : 700);
  }

  async picture() {
    const seen = await ask(`/api/runs/${this.run.id}/picture`).catch((error) => ({ drawings: [], fault: error.message }));
    this.drawings.replaceChildren(...seen.drawings.map(canvas));
    return seen;
  }

  async end() {
    this.run = this.last;
    const { result } = this.run;
    clearTimeout(this.drawing);
    this.show_head();
    this.show_state();
    this.show_plan();
    this.story.end(result?.evidence.ids ?? []);
    const seen = await this.picture();
    if (result) {
      this.top.replaceChildren(...[...(seen.fault ? [fault(seen.fault)] : markup(seen.result)), this.run.state === "stopped" ? el("p.soft", {}, "You stopped this run. What it had stays.") : null].filter(Boolean));
    } else if (!this.run.error) this.top.replaceChildren(el("p.soft", {}, this.run.state === "stopped" ? "Stopped before there was a decision. What it had stands below." : "There is no decision."));
    say(result?.answer ? `Decision: ${result.answer}` : `The run is over: ${this.run.state}`);
    this.ended?.(this.run);
  }
}

