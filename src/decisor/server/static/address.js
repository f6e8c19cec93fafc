// The address of the page.

/** Go to one of ours; app.js shows it. */
export function go(address) {
  history.pushState(null, "", address);
  dispatchEvent(new Event("moved"));
}
