// The record of a decision: what it says (as on paper), who stands behind it, and whether it still holds.
import { ask, choices, page_of } from "./api.js";
import { button, count, el, fault, fold, markup, say, visible } from "./dom.js";
import { equip_evidence } from "./pieces.js";
import { readersOf } from "./readers.js";

const STANDING = { holds: "approved", refused: "refused", withdrawn: "withdrawn", "of another content": "The record was changed after this approval.", changed: "This approval was changed after it was made." };
const HOLDS = { holds: "Still holds.", "does not hold": "It does not hold any more.", "cannot be said": "It cannot be said whether it holds." };

export async function recordView(id) {
  const address = `/api/runs/${encodeURIComponent(id)}`;
  const [run, whole, { user }] = await Promise.all([ask(address), page_of(`${address}/record-page`), choices()]);
  const title = `Record: ${run.question.slice(0, 50)}`;
  if (!run.answer) return { nodes: [el("div.page.record", {}, el("h1.question", {}, visible(run.question)), el("p.empty", {}, "There is no decision to record."))], title };
  const parts = markup(whole), node = el("div.page.record", {}, ...parts), { approvals: all, digest } = await ask(`${address}/record/approvals`);
  parts[0].append(" · ", el("a", { href: `/runs/${id}` }, "the decision with its steps"));
  node.querySelector("h1").classList.add("question");
  equip_evidence(parts, (name) => `${address}/rows/${name}`);
  node.querySelector(".signed").replaceWith(
    section("Approvals", approvals(address, user, all, digest)),
    ...user && user === run.owner ? [section("Who else may read it", await readersOf(id))] : [],
    section("Does it still hold?", verification(address)));
  node.append(el("div.row", {}, [["record-page", "The whole record, to print"], ["record?download=1", "JSON, to keep and to verify"]].map(([name, text]) => el("a.button", { href: `${address}/${name}`, download: name.includes("?") }, text))));
  return { nodes: [node], title };
}

const moment = (at) => at ? `${at.slice(0, 10)} ${at.slice(11, 16)} UTC` : "";
const section = (title, ...inside) => el("section", { "aria-label": title }, el("h2", {}, title), ...inside);

/** The list, and a form for one more. `user`: who is here, "" where the server does not know. `digest`: of what is read here. */
function approvals(address, user, first, digest) {
  const list = el("div"), line = el("div");
  const name = el("input", { id: "by", required: true, autocomplete: "name", maxlength: 200 });
  const note = el("input", { id: "approval-note", placeholder: "On what condition, or why not", maxlength: 2000 });
  const review = el("input", { id: "review", type: "date", min: new Date().toISOString().slice(0, 10) });
  const send = async (body) => {
    try {
      show((await ask(`${address}/record/approvals`, body)).approvals);
      line.replaceChildren();
      note.value = "";
      say(`${body.withdraw ? "Withdrawn" : body.refuse ? "Refused" : "Approved"} by ${body.by || user}.`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
  };
  const show = (all) => list.replaceChildren(all.length
    ? el("ul.approvals", {}, all.map((one) => el(`li.${one.standing.replaceAll(" ", "-")}`, {}, el("b", {}, visible(one.by)), " ", el("span.state", {}, STANDING[one.standing]), el("span.soft", {}, ` ${moment(one.at)}`),
      one.review ? el("p", {}, `To be looked at again on ${one.review}.`) : null,
      one.note ? el("p", {}, visible(one.note)) : null, one.withdrawn ? el("p.soft", {}, `Taken back ${moment(one.withdrawn)}${one.why ? `: ${visible(one.why)}` : ""}`) : null,
      one.withdrawn || (user && user !== one.by) ? null : withdrawal(one, send))))
    : el("p.soft", {}, "Nobody has approved this decision."));
  const decide = (refuse) => send({ by: user ? "" : name.value, note: note.value, refuse, digest, review: refuse ? "" : review.value });
  const form = el("form", { on: { submit: (event) => { event.preventDefault(); return decide(false); } } },
    user ? el("p", {}, "You answer for it as ", el("b", {}, user), ".") : [el("label", { for: "by" }, "Your name"), name],
    el("div.two", {}, el("label", {}, "Note", note), el("label", {}, "Look at it again on", review)), line,
    el("div.row", {}, el("button.primary", {}, "Approve"), button("Refuse", () => decide(true))));
  show(first);
  return [list, form, el("p.soft", {}, `Applies to this version only.${user ? "" : " Names are not verified."}`)];
}

function withdrawal(one, send) {
  const why = el("input", { id: `why-${one.at}`, maxlength: 2000 });
  return el("details", {}, el("summary", { "aria-label": `Withdraw what ${one.by} said` }, "Withdraw"), el("label", { for: why.id }, "Why?"), why,
    button("Withdraw", () => send({ by: one.by, note: why.value, withdraw: true })));
}

/** A button, and what comes of it: the queries are asked again, no model is. */
function verification(address) {
  const result = el("div", { role: "status" });
  const verify = button("Compute again", async () => {
    result.replaceChildren(el("p.soft.wait", {}, "The queries run again …"));
    try {
      result.replaceChildren(...verdict(await ask(`${address}/record/verification`, {})));
    } catch (error) { result.replaceChildren(fault(error.message)); }
  });
  return [el("p.soft", {}, "The queries that it rests on run again on the data of today, and the decision model ranks again. No model is asked."), verify, result];
}

function verdict(one) {
  const changes = [...one.changes.map((each) => [each.id, each.before, each.after || "not there"]), ...one.outcomes.map((each) => [each.id, each.before, each.after || "may not be chosen"])];
  return [el(`p.verdict.${one.state.replaceAll(" ", "-")}`, {}, el("b", {}, HOLDS[one.state]), " ", visible(one.why)),
    el("p", {}, `${count(one.records, "cited record")} read again, ${count(one.changes.length, "change")}.`),
    changes.length ? el("div.scroll", { tabindex: 0, role: "group", "aria-label": "What changed" }, el("table", {},
      el("thead", {}, el("tr", {}, ["what", "then", "now"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, changes.map((cells) => el("tr", {}, cells.map((text) => el("td", {}, visible(text)))))))) : null,
    one.others.length ? fold("Queries that bring other rows beside those that it cites", ...one.others.map((text) => el("pre", { tabindex: 0 }, visible(text)))) : null,
    one.rules.length ? el("ul", {}, one.rules.map((rule) => el("li", {}, visible(`Rule ${rule.name}: ${rule.state}${rule.why ? `. ${rule.why}` : ""}`)))) : null].filter(Boolean);
}
