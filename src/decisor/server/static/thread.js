// A decision: watched while it is made, read when it is there, followed up below, changed and handed on.
import { ask, choices, go, listen } from "./api.js";
import { button, count, el, fault, lasts, lead, markup, money, number, plain, say, took, visible, when } from "./dom.js";
import { editor } from "./change.js";
import { canvas } from "./drawing.js";
import { equip_evidence, is_query } from "./pieces.js";
import { following, names } from "./runs.js";
import { Story } from "./story.js";

const NEAR = 160, DRAWING = 8, MOST_EARLIER = 10;
const FILES = [["page", "Download as one HTML file"], ["markdown", "Download as Markdown"], ["json", "Download as JSON"], ["record-page", "Record of the decision (page)"], ["record", "Record of the decision (JSON)"], ["trace", "Trace file"]];

export async function threadView(id) {
  const [run, offer] = await Promise.all([ask(`/api/runs/${encodeURIComponent(id)}`), choices()]);
  const thread = new Thread(run, { offer, other: run.owner === offer.user ? "" : run.owner });
  return { nodes: [thread.node], title: run.headline || run.question.slice(0, 60), close: () => thread.close(), ready: () => thread.watch() };
}

const where = ({ at, plan }) => plan ? `in its plan${at === "0" ? "" : ` after step ${at}`}` : `at ${/^\d/.test(at ?? "") ? `step ${at}` : at ?? "a step"}`;
const is_over = (run) => !["running", "waiting"].includes(run.state);

/** `side`: it stands beside another one, so nothing can be done there. `other`: whose it is, who shows it to us, if it is not ours. */
export class Thread {
  constructor(run, { side = false, other = "", ended = null, offer = null } = {}) {
    Object.assign(this, { run, side, other, ended, offer, entries: [], is_due: false, at_end: true, step: 1, plan_steps: [], gone: [], fresh: new Set() });
    this.earlier = el("div.earlier.stack");
    this.head = el("header.asked");
    this.top = el("div.result");
    this.drawings = el("div.drawings");
    this.approvals = el("div.approvals", { "aria-live": "polite" });
    this.story = new Story({
      tell: (news) => this.news(news), open: !is_over(run),
      edit: side || other ? null : (place) => editor(this.run, place),
      prompt: async (number) => (await ask(`/api/runs/${run.id}/entries/${number}`)).data.messages,
      files: (name) => `/api/runs/${run.id}/rows/${name}`,
    });
    this.ticks = el("ol.ticks");
    this.status = el("span.status");
    this.spend = el("p.soft.spend");
    this.meter = el("div.meter.row", {}, this.status, side || other ? null : button("Stop", async () => { await ask(`/api/runs/${run.id}/stop`, {}); say("Stopped."); }, { kind: "end" }));
    const how = el("section.how", { "aria-labelledby": `h-story-${run.id}` }, el("h2", { id: `h-story-${run.id}` }, "How it got there"), this.drawings, this.story.node, this.approvals, this.spend);
    this.next = el("section.next");
    this.node = el(side ? "div.run.half" : "div.page.run", {}, this.earlier, this.head, this.top,
      el("div.live", {}, el("section.plan", { "aria-label": "Plan" }, el("h2", {}, "Plan"), this.ticks), how), this.meter, this.next);
    if (side) lead(this.node);
    this.show_head();
    this.show_state();
    if (!side && run.follows) this.show_earlier();
  }

  watch() {
    addEventListener("scroll", this.scrolling = () => this.scrolled());
    this.source = listen(`/api/runs/${this.run.id}/events`, {
      entry: (entry) => this.hear(entry),
      writing: (data) => this.hear({ writing: data }),
      approval: (data) => this.approval(data),
      reading: (data) => this.reading(data),
      count: (words) => { this.doing = words; this.tick(); },
      state: (run) => { this.run = run; this.show_state(); },
      end: (run, source) => { source.close(); this.last = run; if (!this.is_due) this.draw_next(); },
      lost: (for_good) => { if (for_good && !is_over(this.run)) this.status.replaceChildren(fault("The connection was lost. Load the page again to go on watching.")); },
    });
    this.clock = setInterval(() => this.tick(), 500);
  }

  close() {
    this.source?.close();
    removeEventListener("scroll", this.scrolling);
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
    let many = 0;
    while (many < this.entries.length && (many === 0 || performance.now() < until)) {
      const entry = this.entries[many++];
      if (entry.writing) this.story.writing(entry.writing);
      else this.story.hear(entry);
    }
    this.entries.splice(0, many);
    this.is_due = false;
    this.tick();
    this.follow();
    if (this.entries.length) this.draw_next();
    else if (this.last) this.end();
  }

  /** A person who scrolls up reads there, and one who comes to the end follows again. Steps grow or shrink when they come
   * into sight, which moves everything and is nobody's scrolling. */
  scrolled() {
    const height = document.documentElement.scrollHeight;
    if (innerHeight + scrollY > height - NEAR) this.at_end = true;
    else if (this.scroll - scrollY > Math.max(0, this.height - height)) this.at_end = false;
    Object.assign(this, { scroll: scrollY, height });
  }

  /** Where it came to is noted at once: a person may scroll before the browser tells of this scrolling. */
  follow() {
    if (this.side || !this.at_end || is_over(this.run)) return;
    const height = document.documentElement.scrollHeight;
    scrollTo({ top: height });
    Object.assign(this, { scroll: scrollY, height });
  }

  news(news) {
    if (news.plan) {
      const old = this.plan_steps, is_change = Boolean(news.before);
      say(is_change ? `Changed the plan. It is now: ${news.plan.join("; ")}` : `Plan: ${news.plan.join("; ")}`);
      this.gone = is_change ? [...this.gone, ...old.slice(this.step - 1).filter((one) => !news.plan.includes(one))] : [];
      this.fresh = new Set(is_change ? news.plan.filter((one) => !old.includes(one)) : []);
      this.plan_steps = news.plan;
      this.step = 1;
      this.show_plan();
      this.draw_soon();
    }
    if (news.step) { this.step = news.step; this.show_plan(); }
    if (news.node) { this.step += 1; this.show_plan(); this.draw_soon(); }
    if (news.doing !== undefined) { this.doing = news.doing || "Thinking"; this.tick(); }
  }

  show_head() {
    const { run } = this;
    const parts = [this.other ? `asked by ${this.other}` : "", run.goal && !run.question.includes(run.goal) ? `Objective: ${visible(run.goal)}` : "", labels(run, this.offer).join(", ")].filter(Boolean).join(" · ");
    this.head.replaceChildren(...[
      el(this.side ? "h2" : "h1.question", {}, visible(run.question)), parts ? el("p.soft", {}, parts) : null,
      run.rules ? el("details", {}, el("summary", {}, "Rules"), el("p.rules", {}, visible(run.rules))) : null,
      run.changed_from ? el("p.soft", {}, `Changed ${where(run.edit)} from `, el("a", { href: `/runs/${run.changed_from}` }, "this decision"), ". ", this.side ? null : el("a", { href: `/compare?before=${run.changed_from}&after=${run.id}` }, "Both side by side")) : null].filter(Boolean));
  }

  show_state() {
    const { run } = this;
    this.heard = Date.now();
    this.node.classList.toggle("over", is_over(run));
    if (run.error) this.top.replaceChildren(fault(run.error));
    this.tick();
    if (!is_over(run)) return;
    const { usage } = run, dollars = run.llm ? money(usage.dollars) : "";
    this.spend.textContent = visible([run.llm || "No LLM", plain(run.technique), run.llm ? count(usage.calls, "call") : "", run.llm ? `${number(usage.prompt_tokens + usage.completion_tokens)} tokens` : "", dollars, took(run.seconds),
      new Date(run.began).toLocaleString("en", { dateStyle: "medium", timeStyle: "short", hour12: false })].filter(Boolean).join(" · "));
  }

  show_plan() {
    const done = is_over(this.run);
    const gone = this.gone.map((step) => el("li.gone", {}, el("span", {}, el("span.hush", {}, "Dropped: "), visible(step))));
    this.ticks.replaceChildren(...gone, ...this.plan_steps.map((step, at) => {
      const state = done || at + 1 < this.step ? "done" : at + 1 === this.step ? "now" : "next", is_new = this.fresh.has(step);
      return el(`li.${state}${is_new ? ".new" : ""}`, { "aria-current": state === "now" ? "step" : null }, el("span", {}, is_new ? el("span.hush", {}, "New: ") : null, visible(step.replace(/^Q[\d.]+:\s*/, ""))));
    }));
  }

  tick() {
    if (is_over(this.run)) { this.status.textContent = this.run.state === "finished" ? names[this.run.stopped] ?? this.run.stopped : names[this.run.state]; return; }
    const seconds = this.run.seconds + (Date.now() - this.heard) / 1000, { calls, tokens, dollars } = this.story.usage;
    const doing = this.run.state === "waiting" ? "Waiting for a place" : this.approvals.childElementCount ? "Waiting for you" : this.doing ?? "Starting";
    this.status.textContent = visible([doing, lasts(Math.floor(seconds)), calls ? count(calls, "call") : "", tokens ? `${number(tokens)} tokens` : "", calls && dollars ? money(dollars) : ""].filter(Boolean).join(" · "));
  }

  /** Earlier decisions that this one follows, the first at the top, each in a few words. */
  async show_earlier() {
    for (let id = this.run.follows, many = 0; id && many < MOST_EARLIER; many++) {
      const run = await ask(`/api/runs/${id}`).catch(() => null);
      if (!run) return;
      this.earlier.prepend(short(run));
      id = run.follows;
    }
  }

  approval(data) {
    const there = this.approvals.querySelector(`[data-number="${data.number}"]`);
    if ("allow" in data) { there?.remove(); this.tick(); return; }
    const field = el("textarea.sql-field", { id: `query-${data.number}`, spellcheck: "false" }), why = el("input", { id: `why-${data.number}`, placeholder: "Reason (shown to the model)" });
    field.value = data.input;
    const decide = (body) => ask(`/api/runs/${this.run.id}/approvals/${data.number}`, body);
    const run = () => decide(field.value.trim() === data.input.trim() ? { allow: true } : { allow: false, instead: field.value });
    const reason = el("div.row", { hidden: true }, el("label.hush", { for: why.id }, "Reason"), why, button("Send refusal", () => decide({ allow: false, why: why.value })));
    const refuse = () => { reason.hidden = false; why.focus(); };
    const card = el("section.card.approval", { "data-number": data.number, "aria-label": "A query waits for you", tabindex: 0, on: { keydown: (event) => {
      if (event.target !== card || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "a") run(); else if (event.key === "r") { event.preventDefault(); refuse(); }
    } } }, el("h3", {}, is_query(data.input) ? "Run this query?" : `Run this with ${plain(data.tool)}?`), el("label.hush", { for: field.id }, "The query, which you may change"), field,
    el("div.row", {}, button("Run query", run, { kind: "primary" }), button("Refuse", refuse), el("small", {}, "A changed query goes back to the model as yours.")), reason);
    this.wait(card);
    say("A query is waiting for you.");
  }

  /** Something that waits for a person is brought into sight, unless they look elsewhere. */
  wait(card) {
    this.approvals.append(card);
    this.follow();
    this.tick();
  }

  reading(data) {
    const there = this.approvals.querySelector(`[data-reading="${data.number}"]`);
    if ("answer" in data) { there?.remove(); this.tick(); return; }
    const own = el("input", { id: `means-${data.number}`, placeholder: "In your own words" });
    const tell = (answer) => ask(`/api/runs/${this.run.id}/readings/${data.number}`, { answer });
    const words = data.asks ? data.words : `What is meant by “${data.words}”?`;
    this.wait(el("section.card.approval", { "data-reading": data.number, "aria-label": data.asks ? "A question waits" : "Words wait for what they mean" },
      el("h3", {}, words),
      el("div.row", {}, ...data.choices.map((choice, at) => button(choice, () => tell(String(at + 1)), at ? {} : { kind: "primary" }))),
      ...(data.asks ? [] : [el("div.row", {}, el("label.hush", { for: own.id }, "Or"), own, button("Take this", () => own.value.trim() && tell(own.value)), button("Compute both", () => tell("")))])));
    say(words);
  }

  /** While it happens; the end draws once more. */
  draw_soon() {
    clearTimeout(this.drawing);
    if (!is_over(this.run)) this.drawing = setTimeout(() => this.picture(), 700);
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
      const parts = seen.fault ? [fault(seen.fault)] : markup(seen.result);
      equip_evidence(parts, (name) => this.story.files(name));
      if (this.run.state === "stopped") parts.push(el("p.soft", {}, "You stopped this. What it had stays."));
      this.top.replaceChildren(...parts);
    } else if (!this.run.error) this.top.replaceChildren(el("p.soft", {}, this.run.state === "stopped" ? "Stopped before there was a decision. What it had stands below." : "There is no decision."));
    if (!this.side) this.show_deeds();
    if (!this.side) document.title = `${this.run.headline || this.run.question.slice(0, 60)} – Decisor`;
    say(result?.answer ? `Decision: ${this.run.headline}` : `It is over: ${names[this.run.state] ?? this.run.state}`);
    this.ended?.(this.run);
  }

  /** One primary button, What if where there is a model, and the rest under More; the follow-up below. */
  show_deeds() {
    const { run, offer } = this, line = el("div");
    const models = (offer?.connections ?? []).filter((one) => one.model && run.connections.includes(one.name));
    const can_resume = !this.other && (run.state !== "finished" || run.stopped === "budget");
    const resume = button("Continue", async () => {
      try { go(`/runs/${(await ask(`/api/runs/${run.id}/resume`, { stream: true })).id}`); } catch (error) { line.replaceChildren(fault(error.message)); }
    }, { kind: can_resume && !run.answer ? "primary" : null });
    const deeds = el("div.row.deeds", {}, run.answer ? el("a.button.primary", { href: `/runs/${run.id}/record` }, "Review and approve") : null, can_resume ? resume : null,
      run.answer ? models.map((one) => el("a.button", { href: `/models/${encodeURIComponent(one.name)}` }, "What if")) : null, menu(run, this.other, offer), line);
    const place = this.top.querySelector(".decision");
    if (place) place.append(deeds); else this.top.append(deeds);
    if (!this.other) this.next.replaceChildren(...run.answer ? [markOf(run)] : [], ...followUp(run, offer));
  }
}

/** The names of its data, as they are called everywhere. */
const labels = (run, offer) => run.connections.map((name) => offer?.connections.find((one) => one.name === name)?.label ?? name);

/** A decision in a few words, which leads to the whole. */
const short = (run) => el("article.reply", {}, el("p.soft", {}, visible(run.question)), el("h2", {}, el("a", { href: `/runs/${run.id}` }, visible(run.headline || names[run.stopped] || names[run.state]))),
  run.result?.reasons?.[0] ? el("p", {}, visible(run.result.reasons[0].replace(/\s*\[o\d[^\]]*\]/g, "").split(/(?<=[.!?])\s+(?=\p{Lu})/u)[0])) : null);

/** The body of a question that is asked as this one was. */
function like(run, offer) {
  const row = offer.techniques.find((one) => one.name === run.technique);
  return { connections: run.connections, technique: row?.asks_llm ? row.name : "", llm: offer.llms.includes(run.llm) ? run.llm : "", asks: true, stream: true };
}

function followUp(run, offer) {
  const after = following(run.id), line = el("div"), field = el("textarea", { id: "question", rows: 2, required: true, maxlength: 20000, placeholder: "Ask a follow-up" });
  const submit = el("button.end", { type: "submit" }, "Ask");
  async function send(event) {
    event?.preventDefault();
    if (!field.value.trim()) { field.focus(); return; }
    submit.disabled = true;
    try { go(`/runs/${(await ask("/api/ask", { ...like(run, offer), question: field.value.trim(), follows: run.id })).id}`); } catch (error) { line.replaceChildren(fault(error.message)); submit.disabled = false; }
  }
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(); });
  const second = run.result?.ranking?.options?.[1]?.name ?? run.result?.runner_up?.match(/^[^,:;(\d]{2,40}(?=[,:;(])/)?.[0];
  const ideas = run.answer && second ? [`Why not ${second.trim()}?`, `What would have to change for ${second.trim()} to win?`] : [];
  return [...after.map(short), el("h2.hush", {}, "Ask a follow-up"),
    el("form.ask-box", { on: { submit: send } }, el("label.hush", { for: "question" }, "Follow-up question"), field, el("div.row", {}, el("small", {}, "Knows this decision, its data and rules"), submit)), line,
    ideas.length ? el("div.chips", {}, ideas.map((text) => button(text, () => { field.value = text; field.focus(); }))) : ""].filter(Boolean);
}

function menu(run, other, offer) {
  const line = el("p.soft", { role: "status" });
  const copy = button("Copy the link", async () => { try { await navigator.clipboard.writeText(location.href); line.textContent = "Copied."; } catch { line.textContent = location.href; } });
  const items = FILES.map(([name, text]) => el("a", { href: `/api/runs/${run.id}/${name}?download=1`, download: true }, text));
  if (other) return el("details.menu", {}, el("summary.button", {}, "More"), el("div", {}, el("ul", {}, [copy, ...items].map((one) => el("li", {}, one))), line));
  const compare = el("div");
  const beside = button("Compare with …", async () => {
    const { runs } = await ask("/api/runs?most=50"), others = runs.filter((one) => one.id !== run.id);
    if (!others.length) { line.textContent = "There is no other decision yet."; return; }
    const select = el("select", { "aria-label": "The other decision" }, others.map((one) => el("option", { value: one.id }, `${one.question.slice(0, 48)} · ${when(one.began)}`)));
    compare.replaceChildren(select, button("Compare", () => go(`/compare?${new URLSearchParams({ before: select.value, after: run.id })}`)));
    select.focus();
  });
  const again = button("Run again and compare", async () => {
    const { asks, ...body } = like(run, offer);
    try { go(`/compare?${new URLSearchParams({ before: run.id, after: (await ask("/api/ask", { ...body, technique: run.technique, question: run.question, rules: run.rules, goal: run.goal })).id })}`); } catch (error) { line.textContent = error.message; }
  });
  const forget = button("Delete", async () => {
    if (forget.textContent === "Delete") { forget.textContent = "Delete for good?"; return; }
    await ask(`/api/runs/${run.id}`, undefined, "DELETE");
    go("/");
  });
  const change = el("a", { href: `/?${new URLSearchParams({ question: run.question })}` }, "Change the question");
  const show = run.owner && run.answer ? el("a", { href: `/runs/${run.id}/record` }, "Show it to another user") : null;
  return el("details.menu", {}, el("summary.button", {}, "More"), el("div", {},
    el("ul", {}, [copy, ...items, again, change, beside].map((one) => el("li", {}, one)), el("li", {}, compare), show ? el("li", {}, show) : null, el("li", {}, forget)), line));
}

/** Right or wrong in one click, and then what came of it. */
function markOf(run) {
  const line = el("div", { role: "status" }), now = run.mark?.mark ?? "";
  const note = el("input", { id: "note", placeholder: "What came of it?", value: run.mark?.note ?? "" }), answer = el("input", { id: "right", placeholder: "The right answer, if another", value: run.mark?.answer ?? "" });
  const title = el("span.soft", {}, now ? `Was ${now}` : "Was this right?"), more = el("div.row", { hidden: !now }, el("label.hush", { for: "note" }, "What came of it"), note, el("label.hush", { for: "right" }, "The right answer"), answer, button("Keep the note", () => keep(run.mark.mark)));
  const keep = async (mark) => {
    try {
      run.mark = { mark, answer: answer.value, note: note.value };
      await ask(`/api/runs/${run.id}/mark`, run.mark);
      title.textContent = `Was ${mark}`;
      more.hidden = false;
      line.replaceChildren(el("p.soft", {}, "Kept."));
    } catch (error) { line.replaceChildren(fault(error.message)); }
  };
  return el("div.mark.stack", {}, el("div.row", {}, title, button("Right", () => keep("right"), { kind: "quiet" }), button("Wrong", () => keep("wrong"), { kind: "quiet" })), more, line);
}
