// The page: an address is a view. Each view fills main and may hand back what closes it.
import { ask, choices, go } from "./api.js";
import { el, fault, pick, say, unfold } from "./dom.js";
import { compareView } from "./compare.js";
import { recordView } from "./record.js";
import { begin, mark_current } from "./runs.js";
import { startView } from "./start.js";
import { threadView } from "./thread.js";
import { whatIfView } from "./whatif.js";

const VIEWS = [
  [/^\/runs\/([^/]+)\/record$/, (id) => recordView(id)],
  [/^\/runs\/([^/]+)$/, (id) => threadView(id)],
  [/^\/models\/([^/]+)$/, (name) => whatIfView(decodeURIComponent(name))],
  [/^\/compare$/, () => compareView(new URLSearchParams(location.search))],
  [/^\//, () => startView(new URLSearchParams(location.search))],
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
    if (error.status === 401) main.replaceChildren(error.login ? login_form(error.login) : token_form());
    else main.replaceChildren(el("div.page", {}, el("h1", {}, "This cannot be shown"), fault(error.message),
      el("p", {}, el("a", { href: "/" }, "New decision"))));
  }
  if (is_move) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    say(document.title);
  }
}

function login_form(address) {
  const next = encodeURIComponent(location.pathname + location.search);
  return el("div.page", {}, el("h1", {}, "Sign in"), el("p.soft", {}, "Your organisation's sign-in page says who you are and what you may ask."),
    el("p", {}, el("a.button.primary", { href: `${address}?next=${next}`, rel: "external" }, "Sign in")),
    el("details", {}, el("summary", {}, "With a token"), token_form()));
}

function token_form() {
  const field = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const line = el("div");
  const form = el("form.page", { on: { submit: async (event) => {
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
  document.body.classList.toggle("menu-open", open);
  pick("menu").setAttribute("aria-expanded", String(open));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target || link.hasAttribute("download")) return;
  const address = new URL(link.href instanceof Object ? link.href.baseVal : link.href, location.href);
  if (address.origin !== location.origin || address.pathname.startsWith("/api/") || ["/docs", "/login"].includes(address.pathname)) return;
  if (address.pathname === location.pathname && address.search === location.search && address.hash) return;
  event.preventDefault();
  go(address.pathname + address.search);
});
pick("menu").addEventListener("click", () => toggle(!document.body.classList.contains("menu-open")));
addEventListener("keydown", (event) => {
  const is_field = event.target.matches?.("input, textarea, select"), menu = document.querySelector("details.menu[open]");
  if (event.key === "/" && !is_field && !event.ctrlKey && !event.metaKey && !event.altKey && pick("question")) { event.preventDefault(); pick("question").focus(); }
  if (event.key !== "Escape") return;
  if (document.body.classList.contains("menu-open")) { toggle(false); pick("menu").focus(); }
  else if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  else if (is_field && !event.target.closest(".editor")) event.target.blur();
});
document.addEventListener("click", (event) => { for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false; });
addEventListener("hashchange", () => unfold(pick(decodeURIComponent(location.hash.slice(1)))));
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
