// The list of decisions: searched, told of changes as they happen, and each where it leads.
import { ask, listen } from "./api.js";
import { button, el, pick, when } from "./dom.js";

const lines = new Map();
let words = "", is_more = false, me = "";

/** Once, when the server let us in. */
export function begin(choices) {
  me = choices.user;
  pick("version").replaceChildren(...[`Decisor ${choices.version}${me ? ` · ${me} ` : ""}`, me ? button("Sign out", leave, { kind: "quiet" }) : null].filter(Boolean));
  const models = choices.connections.filter((one) => one.model);
  pick("links").replaceChildren(
    ...models.map((one) => el("a", { href: `/models/${encodeURIComponent(one.name)}` }, `What if: ${one.label}`)),
    ...choices.evaluations.map((name) => el("a", { href: `/api/evaluations/${encodeURIComponent(name)}/page`, target: "_blank", rel: "noopener" }, `Evaluation: ${name}`)));
  pick("links").append(...choices.budgets.filter((one) => one.warns).map((one) => el("p.budget", { role: "status" }, `Spent of the budget of ${one.name}: ${budget_words(one)}`)));
  mark_current();
  let timer = 0;
  pick("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { words = pick("search").value.trim(); load(); }, 150);
  });
  document.addEventListener("visibilitychange", watch);
  watch();
}

function budget_words({ dollars, spent_dollars, tokens, spent_tokens }) {
  const parts = [dollars && `$${spent_dollars.toFixed(2)} of $${dollars.toFixed(2)}`, tokens && `${spent_tokens.toLocaleString("en")} of ${tokens.toLocaleString("en")} tokens`];
  return parts.filter(Boolean).join(", ");
}

async function leave() {
  const { address } = await ask("/api/session", undefined, "DELETE");
  location.assign(address || "/");
}

let source = null;

/** Only while somebody looks: a browser has few connections to one server, and each window would take one. */
function watch() {
  source?.close();
  source = null;
  if (document.hidden) return;
  load();
  source = listen("/api/events", { run: (run) => { if (!words || lines.has(run.id)) { lines.set(run.id, run); draw(); } } });
}

async function load(before = "") {
  const query = new URLSearchParams({ search: words, most: "50", before });
  const reply = await ask(`/api/runs?${query}`).catch(() => ({ runs: [] }));
  if (!before) lines.clear();
  for (const run of reply.runs) lines.set(run.id, run);
  is_more = reply.runs.length === 50;
  draw();
}

function draw() {
  const sorted = [...lines.values()].sort((a, b) => b.began.localeCompare(a.began) || b.id.localeCompare(a.id));
  pick("runs").replaceChildren(...sorted.map(line), ...(is_more ? [more(sorted.at(-1).id)] : []));
  pick("nothing").hidden = sorted.length > 0;
  pick("nothing").textContent = words ? "No decision holds these words." : "Your decisions will stand here.";
  mark_current();
}

const more = (id) => el("li", {}, el("button.quiet", { type: "button", on: { click: () => load(id) } }, "Older"));

/** Of an answer the decision and below it the question; of anything else its state. */
function line(run) {
  const state = run.state === "finished" ? run.stopped : run.state, marked = run.mark ? ` · was ${run.mark.mark}` : "";
  const title = run.headline || names[state] || state;
  return el("li", {}, el("a", { href: `/runs/${run.id}` }, el("b", {}, el("bdi", {}, title)),
    el("small", {}, `${run.owner === me ? "" : `from ${run.owner} · `}`, el("bdi", {}, run.question), ` · ${when(run.began)}${marked}`)));
}

export const names = { running: "Running", waiting: "Waiting for a place", failed: "Failed", stopped: "Stopped", no_answer: "Cannot be decided from these data", budget: "Limit reached", steps: "Step limit reached", answered: "Decided" };

/** The decisions that follow one, as far as the list shows them. */
export const following = (id) => [...lines.values()].filter((run) => run.follows === id);

/** Which of the links is where we are. */
export function mark_current() {
  for (const link of pick("side").querySelectorAll("a[href]:not(.brand)")) {
    if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
