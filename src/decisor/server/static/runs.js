// The list of runs: searched, told of changes as they happen, and each where it leads.
import { ask, listen } from "./api.js";
import { button, el, pick, when } from "./dom.js";

const lines = new Map();
let words = "", is_more = false, me = "";

/** Once, when the server let us in. */
export function begin(choices) {
  me = choices.user;
  pick("version").replaceChildren(...[`Decisor ${choices.version}${me ? ` · ${me} ` : ""}`, me ? button("Sign out", leave, { kind: "plain" }) : null].filter(Boolean));
  const models = choices.connections.filter((one) => one.model);
  pick("views").replaceChildren(
    ...models.map((one) => el("a", { href: `/models/${encodeURIComponent(one.name)}` }, `What if: ${one.label}`)),
    ...choices.evaluations.map((name) => el("a", { href: `/evaluations/${encodeURIComponent(name)}` }, `Evaluation: ${name}`)));
  mark_current();
  let timer = 0;
  pick("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { words = pick("search").value.trim(); load(); }, 150);
  });
  document.addEventListener("visibilitychange", watch);
  watch();
}

async function leave() {
  await ask("/api/session", undefined, "DELETE");
  location.assign("/");
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
  pick("none").hidden = sorted.length > 0;
  pick("none").textContent = words ? "No run holds these words." : "Your runs will stand here.";
  mark_current();
}

const more = (id) => el("li", {}, el("button.plain", { type: "button", on: { click: () => load(id) } }, "Older runs"));

function line(run) {
  const state = run.mark?.mark || (run.state === "finished" ? run.stopped : run.state);
  return el("li", {}, el("a", { href: `/runs/${run.id}` },
    el(`span.dot.${state}`, { "aria-hidden": "true" }),
    el("span.ask", {}, run.question),
    el("span.soft", {}, run.owner === me ? "" : `from ${run.owner} · `, el("bdi", {}, run.answer || names[state] || state), ` · ${when(run.began)}`)));
}

export const names = { running: "running", waiting: "waiting", failed: "failed", stopped: "stopped", no_answer: "no answer", budget: "limit reached", steps: "step limit", answered: "answered" };

/** Which of the links is where we are. */
export function mark_current() {
  for (const link of pick("side").querySelectorAll("a[href]:not(.brand)")) {
    if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
