// The server: addresses, requests, and streams of events. A refusal is an Error whose message is for people.

/** Go to an address of ours; app.js shows it. */
export function go(address) {
  history.pushState(null, "", address);
  dispatchEvent(new Event("moved"));
}

/** `body`: a value that is sent as JSON, or a file, as it is. */
export async function ask(path, body = undefined, method = body === undefined ? "GET" : "POST") {
  const is_file = body instanceof Blob, headers = body === undefined ? {} : { "content-type": is_file ? "application/octet-stream" : "application/json" };
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined || is_file ? body : JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer. Is decisor serve still running?");
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let value = null;
  try { value = parsed(text); } catch { /* said below */ }
  if (!response.ok) {
    const error = new Error(value?.error ?? `The server answered ${response.status}.`);
    error.status = response.status;
    error.login = value?.login;
    throw error;
  }
  return value;
}

/** The main part of a page of ours, as markup, without its style. */
export async function page_of(path) {
  const response = await fetch(path), text = await response.text();
  return text.match(/<main[^>]*>(?:<style>.*?<\/style>)?(.*)<\/main>/s)?.[1] ?? "";
}

const LONG = /\d{16}/;

/** A value from JSON. A whole number with more digits than a number of JavaScript keeps is its text: it may be a key. */
function parsed(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, from) => typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(from?.source ?? "") ? from.source : value);
}

const enough = {};

/** The choices of the server, fetched once; `anew` when they have changed. */
export async function choices(anew = false) {
  if (anew) delete enough.choices;
  enough.choices ??= ask("/api/choices");
  try {
    return await enough.choices;
  } catch (error) {
    delete enough.choices;
    throw error;
  }
}

/** Hears the events of a stream until it ends or is closed: `listen(path, { entry: (data) => … })`. */
export function listen(path, hear) {
  const source = new EventSource(path);
  for (const [name, act] of Object.entries(hear)) {
    if (name !== "lost") source.addEventListener(name, (event) => act(parsed(event.data), source));
  }
  source.addEventListener("error", () => hear.lost?.(source.readyState === EventSource.CLOSED));
  addEventListener("pagehide", () => source.close(), { once: true });
  return source;
}
