// Hand a run on: one file, a link, another run to set it against; and say whether it was right.
import { ask } from "./api.js";
import { button, el, fault, say, when } from "./dom.js";
import { go } from "./address.js";

const FILES = [["page", "One HTML file"], ["markdown", "Markdown"], ["json", "JSON"], ["record-page", "Record of the decision (page)"], ["record", "Record of the decision (JSON)"], ["trace", "Trace file"]];

/** `is_own`: it is ours, so others may be let in. */
export function share(run, is_own = false) {
  const line = el("span.soft", { role: "status" });
  const copy = button("Copy the link", async () => {
    try { await navigator.clipboard.writeText(location.href); line.textContent = "Copied."; } catch { line.textContent = location.href; }
  }, { kind: "plain" });
  const compare = el("div");
  const pick_other = button("Compare with …", async () => {
    const { runs } = await ask("/api/runs?most=50");
    const others = runs.filter((one) => one.id !== run.id);
    if (!others.length) { compare.replaceChildren(el("p.soft", {}, "There is no other run yet.")); return; }
    const select = el("select", { "aria-label": "The other run" }, others.map((one) => el("option", { value: one.id }, `${one.question.slice(0, 48)} · ${when(one.began)}`)));
    compare.replaceChildren(select, button("Compare", () => go(`/compare?${new URLSearchParams({ before: select.value, after: run.id })}`)));
    select.focus();
  }, { kind: "plain" });
  const show = is_own && run.owner && run.answer ? el("li", {}, el("a", { href: `/runs/${run.id}/record` }, "Show it to another user")) : null;
  return el("details.share", {}, el("summary.button.plain", {}, "Share"),
    el("ul", {}, FILES.map(([name, text]) => el("li", {}, el("a", { href: `/api/runs/${run.id}/${name}?download=1`, download: true }, text))), el("li", {}, copy, line), show, el("li", {}, pick_other, compare)));
}

/** Right or wrong, and what came of it. */
export function markOf(run) {
  const line = el("div"), now = run.mark?.mark ?? "";
  const note = el("input", { id: "note", placeholder: "What came of it?", value: run.mark?.note ?? "" });
  const answer = el("input", { id: "right", placeholder: "The right answer, if another", value: run.mark?.answer ?? "" });
  const marks = ["right", "wrong"].map((mark) => el("label.check", {}, el("input", { type: "radio", name: "mark", value: mark, checked: now === mark }), el("span", {}, mark)));
  const form = el("form", { on: { submit: async (event) => {
    event.preventDefault();
    const mark = new FormData(form).get("mark") ?? "";
    try {
      await ask(`/api/runs/${run.id}/mark`, { mark, answer: answer.value, note: note.value });
      run.mark = mark ? { mark, answer: answer.value, note: note.value } : null;
      line.replaceChildren(el("p.soft", {}, "Kept."));
      say("Kept.");
    } catch (error) { line.replaceChildren(fault(error.message)); }
  } } }, el("div.bar", {}, marks), el("label.hush", { for: "note" }, "What came of it"), note, el("label.hush", { for: "right" }, "The right answer"), answer, el("button", {}, "Keep"), line);
  return el("details.mark", {}, el("summary.button.plain", {}, now ? `Was ${now}` : "Was it right?"), form);
}
