// Elements made from values. Every text goes in as a text node, marks that hide or
// reorder others made visible: nothing from a model, a row or a file is ever markup.

const SVG = "http://www.w3.org/2000/svg";
const WORDS = new Set(["title", "aria-label", "placeholder"]);

/** An element: `el("p.soft", { id: "x", on: { click } }, "text", child)`. Children that are null or "" are left out. */
export function el(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  return fill(document.createElement(tag || "div"), classes, attributes, children);
}

/** The same in SVG. */
export function svg(spec, attributes = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  return fill(document.createElementNS(SVG, tag), classes, attributes, children);
}

const TAGS = new Set("section,h1,h2,pre,h3,p,b,div,ul,li,a,span,small,figure,figcaption,details,summary,table,caption,thead,tbody,tfoot,tr,th,td,dl,dt,dd,svg,g,title,desc,text,rect,line,path,circle,polygon".split(","));
const DRAWN = new Set("svg,g,title,desc,text,rect,line,path,circle,polygon,a".split(","));
const LETTERS = { lt: "<", gt: ">", amp: "&", quot: '"', "#x27": "'" };
const plain_text = (text) => text.replace(/&(lt|gt|amp|quot|#x27);/g, (_, name) => LETTERS[name]);

/** Nodes of a result that Python wrote with every text escaped: elements, attributes and links that are known alone are made. */
export function markup(html) {
  const root = document.createDocumentFragment(), stack = [root];
  for (const [, end, tag, attributes, text] of (html ?? "").matchAll(/<(\/?)(\w+)((?:\s[\w-]+(?:="[^"]*")?)*)>|([^<]+)/g)) {
    const parent = stack.at(-1);
    if (text !== undefined) { parent.append(plain_text(text)); continue; }
    if (end) { stack.pop(); continue; }
    if (!TAGS.has(tag)) throw new Error(`A result has no element ${tag}.`);
    const in_svg = tag === "svg" || (parent.namespaceURI === SVG && DRAWN.has(tag));
    const node = in_svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [, name, value] of attributes.matchAll(/([\w-]+)(?:="([^"]*)")?/g)) {
      if (/^(on|style|src)/i.test(name) || (name === "href" && !/^(#|data:application\/json;base64,)/.test(value))) continue;
      node.setAttribute(name, plain_text(value ?? ""));
    }
    parent.append(node);
    stack.push(node);
  }
  return [...root.childNodes];
}

function fill(node, classes, attributes, children) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, WORDS.has(name) ? visible(String(value)) : value);
  }
  for (const one of children.flat(Infinity)) {
    if (one !== null && one !== undefined && one !== "" && one !== false) node.append(typeof one === "string" ? visible(one) : one);
  }
  return node;
}

export const pick = (id) => document.getElementById(id);

/** A button that does something; while it is at it, it cannot be pressed again. */
export function button(text, act, attributes = {}) {
  const node = el(`button${attributes.kind ? `.${attributes.kind}` : ""}`, { type: "button", ...attributes, kind: null }, text);
  node.addEventListener("click", async (event) => {
    event.preventDefault();
    node.disabled = true;
    try { await act(node); } finally { node.disabled = false; }
  });
  return node;
}

/** Links within a node lead to its own records: another run beside it may have records of the same names. */
export function lead(node) {
  node.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    for (const one of node.querySelectorAll(".here")) one.classList.remove("here");
    const place = node.querySelector(`[id="${CSS.escape(link.getAttribute("href").slice(1))}"]`);
    unfold(place);
    place?.classList.add("here");
    place?.scrollIntoView({ block: "center" });
  });
}

/** Opens whatever folds a place away. */
export function unfold(place) {
  for (let fold = place?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

/** Told to a screen reader, politely. */
export function say(text) {
  pick("say").textContent = text;
}

/** One line that says what went wrong. */
export const fault = (text) => el("p.fault", { role: "alert" }, text);

export const fold = (title, ...inside) => el("details", {}, el("summary", {}, title), ...inside);

/** Names of things, as people read them. */
export const plain = (name) => String(name).replaceAll("_", " ");

const WHOLE = new Intl.NumberFormat("en"), DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 8 });

/** Eight digits that count, with commas between thousands. */
export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value)) return WHOLE.format(value);
  return Math.abs(value) < 1 ? String(Number(value.toPrecision(8))) : DIGITS.format(value);
}

export const count = (many, name) => `${number(many)} ${name}${many === 1 ? "" : "s"}`;

/** A cell of a table: whole numbers as they are, for they may be years or keys. */
export function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : number(value);
  return typeof value === "object" ? JSON.stringify(value) : visible(String(value));
}

const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])/gu;

/** A text in which marks that hide or reorder others are seen. Joiners stay between letters and emoji that need them. */
export const visible = (text) => text.replace(HIDDEN, (mark) => `\\u${mark.codePointAt(0).toString(16).padStart(4, "0")}`);

/** As `took` in plurals.py. */
export function took(seconds) {
  if (seconds < 0.1) return seconds > 0 ? `${Math.round(1000 * seconds)} ms` : "";
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  return lasts(seconds);
}

/** Of whole seconds. */
export function lasts(seconds) {
  const whole = Math.round(seconds);
  if (whole < 100) return `${whole} s`;
  return whole < 6000 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} min`;
}

/** A price to two digits that count; "" where it is not known. */
export function money(dollars) {
  return dollars === null || dollars === undefined ? "" : dollars === 0 ? "free" : `$${dollars < 1 ? Number(dollars.toPrecision(2)) : dollars.toFixed(2)}`;
}

/** When it was, shortly: a time today, else a day. */
export function when(text) {
  const then = new Date(text), today = new Date();
  const is_today = then.toDateString() === today.toDateString();
  return then.toLocaleString("en", is_today ? { hour: "2-digit", minute: "2-digit", hour12: false } : { day: "numeric", month: "short" });
}
