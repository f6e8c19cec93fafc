// The page: an address is a view. Each view fills main and may hand back what closes it.
import { go } from "./address.js";
import { ask, choices } from "./api.js";
import { el, fault, pick, say } from "./dom.js";
import { askView } from "./ask.js";
import { compareView } from "./compare.js";
import { evaluationView } from "./evaluation.js";
import { modelView } from "./model.js";
import { recordView } from "./record.js";
import { begin, mark_current } from "./runs.js";
import { runView } from "./run.js";

const VIEWS = [
  [/^\/runs\/([^/]+)\/record$/, (id) => recordView(id)],
  [/^\/runs\/([^/]+)$/, (id) => runView(id)],
  [/^\/models\/([^/]+)$/, (name) => modelView(decodeURIComponent(name))],
  [/^\/evaluations\/([^/]+)$/, (name) => evaluationView(decodeURIComponent(name))],
  [/^\/compare$/, () => compareView(new URLSearchParams(location.search))],
  [/^\//, () => askView(new URLSearchParams(location.search))],
];

let close = null;

let here = "";

async function show(is_move) {
  here = location.pathname + location.search;
  close?.();
  close = null;
  const main = pick("main");
  const [pattern, view] = VIEWS.find(([one]) => one.test(location.pathname));
  toggle(false);
  mark_current();
  try {
    const made = await view(...location.pathname.match(pattern).slice(1));
    main.replaceChildren(...made.nodes);
    close = made.close ?? null;
    document.title = made.title ? `${made.title} – Decisor` : "Decisor";
    made.ready?.();
  } catch (error) {
    if (error.status === 401) main.replaceChildren(token_form());
    else main.replaceChildren(el("div.page", {}, el("h1", {}, "This cannot be shown"), fault(error.message),
      el("p", {}, el("a", { href: "/" }, "Ask a question"))));
  }
  if (is_move) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    say(document.title);
  }
}

function token_form() {
  const field = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const line = el("div");
  const form = el("form.page.card", { on: { submit: async (event) => {
    event.preventDefault();
    try {
      await ask("/api/session", { token: field.value.trim() });
      start();
    } catch (error) { line.replaceChildren(fault(error.message)); }
  } } }, el("h1", {}, "Who are you?"), el("p.soft", {}, "This server asks for a token. It was printed where decisor serve was started, or your administrator has it."),
  el("label", { for: "token" }, "Token"), field, line, el("button.primary", {}, "Sign in"));
  return form;
}

function toggle(open) {
  document.body.classList.toggle("menu", open);
  pick("menu").setAttribute("aria-expanded", String(open));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.hasAttribute("download")) return;
  const address = new URL(link.href instanceof Object ? link.href.baseVal : link.href, location.href);
  if (address.origin !== location.origin || address.pathname.startsWith("/api/") || address.pathname === "/docs") return;
  if (address.pathname === location.pathname && address.search === location.search && address.hash) return;
  event.preventDefault();
  go(address.pathname + address.search);
});
pick("menu").addEventListener("click", () => toggle(!document.body.classList.contains("menu")));
addEventListener("keydown", (event) => { if (event.key === "Escape" && document.body.classList.contains("menu")) { toggle(false); pick("menu").focus(); } });
addEventListener("moved", () => show(true));
addEventListener("popstate", () => { if (here !== location.pathname + location.search) show(true); });

async function start() {
  const token = location.hash.match(/^#([\w-]{20,})$/)?.[1];
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    await ask("/api/session", { token }).catch(() => null);
  }
  await show(false);
  choices().then(begin, () => null);
}

start();
