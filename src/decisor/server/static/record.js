// The record of a decision: what it says, who stands behind it, and whether it still holds.
import { ask, choices } from "./api.js";
import { button, count, el, fault, fold, markup, say, visible } from "./dom.js";
import { equip_evidence, query } from "./pieces.js";
import { readersOf } from "./readers.js";

const STANDING = { holds: "approved", refused: "refused", withdrawn: "withdrawn", "of another content": "The record was changed after this approval.", changed: "This approval was changed after it was made." };
const HOLDS = { holds: "Still holds.", "does not hold": "It does not hold any more.", "cannot be said": "It cannot be said whether it holds." };

export async function recordView(id) {
  const address = `/api/runs/${encodeURIComponent(id)}`;
  const [run, record, picture, { user }] = await Promise.all([ask(address), ask(`${address}/record`), ask(`${address}/picture`), choices()]);
  const { content } = record, facts = [content.request.by ? `asked by ${content.request.by}` : "", moment(content.request.at), `run ${id}`].filter(Boolean).join(" · ");
  const head = [el("p.soft", {}, "Record of a decision · ", el("a", { href: `/runs/${id}` }, facts)), el("h1.question", {}, visible(content.request.question))];
  if (!content.decision.answer) return { nodes: [el("div.page.record", {}, ...head, el("p.empty", {}, "There is no decision to record."))], title: "Record" };
  const whole = [["record-page", "The whole record, to print"], ["record?download=1", "JSON, to keep and to verify"]].map(([name, text]) => el("a.button", { href: `${address}/${name}`, download: name.includes("?") }, text));
  const [decision, ...rest] = markup(picture.result);
  equip_evidence(rest, (name) => `${address}/rows/${name}`);
  const node = el("div.page.record", {}, ...head, decision,
    section("Approvals", approvals(address, user, await ask(`${address}/record/approvals`), record.digest)),
    user && user === run.owner ? section("Who else may read it", await readersOf(id)) : null,
    section("Does it still hold?", verification(address)),
    ...rest,
    listed("Warnings", content.warnings), rules(content.rules),
    listed("Open points", content.open_points.map((one) => `${one.what} – ${one.settles}`)),
    queries(content.evidence.queries), el("div.row", {}, whole),
    el("p.soft", {}, "SHA-256 of its content: ", el("code", {}, record.digest)));
  return { nodes: [node], title: `Record: ${content.request.question.slice(0, 50)}` };
}

const moment = (at) => at ? `${at.slice(0, 10)} ${at.slice(11, 16)} UTC` : "";
const section = (title, ...inside) => el("section", { "aria-label": title }, el("h2", {}, title), ...inside);
const listed = (title, texts) => texts.length ? el("section", {}, el("h2", {}, title), el("ul", {}, texts.map((text) => el("li", {}, visible(text))))) : null;
const rules = (tests) => listed("Rules", tests.map((one) => `${one.name}: ${one.state}${one.why ? `. ${one.why}` : ""}`));

/** Each is where the records lead to that it brought. */
const queries = (all) => el("section", {}, el("h2", {}, "Queries"), all.map((one) => el("div.stack", {}, one.rows.map((row) => el("span", { id: `r-${row.id}` })),
  el("p.row", {}, el("b", {}, visible(one.tool)), el("span.soft", {}, count(one.brought, "row"))), query(one.input))));

/** The list, and a form for one more. `user`: who is here, "" where the server does not know. `digest`: of what is read here. */
function approvals(address, user, first, digest) {
  const list = el("div"), line = el("div");
  const name = el("input", { id: "by", required: true, autocomplete: "name", maxlength: 200 });
  const note = el("input", { id: "approval-note", placeholder: "On what condition, or why not", maxlength: 2000 });
  const send = async (body) => {
    try {
      show(await ask(`${address}/record/approvals`, body));
      line.replaceChildren();
      note.value = "";
      say(`${body.withdraw ? "Withdrawn" : body.refuse ? "Refused" : "Approved"} by ${body.by || user}.`);
    } catch (error) { line.replaceChildren(fault(error.message)); }
  };
  const show = ({ approvals: all }) => list.replaceChildren(all.length
    ? el("ul.approved", {}, all.map((one) => el(`li.${one.standing.replaceAll(" ", "-")}`, {}, el("b", {}, visible(one.by)), " ", el("span.pill", {}, STANDING[one.standing]), el("span.soft", {}, ` ${moment(one.at)}`),
      one.note ? el("p", {}, visible(one.note)) : null, one.withdrawn ? el("p.soft", {}, `Taken back ${moment(one.withdrawn)}${one.why ? `: ${visible(one.why)}` : ""}`) : null,
      one.withdrawn || (user && user !== one.by) ? null : withdrawal(one, send))))
    : el("p.soft", {}, "Nobody has approved this decision."));
  const decide = (refuse) => send({ by: user ? "" : name.value, note: note.value, refuse, digest });
  const form = el("form", { on: { submit: (event) => { event.preventDefault(); return decide(false); } } },
    user ? el("p", {}, "You answer for it as ", el("b", {}, user), ".") : [el("label", { for: "by" }, "Your name"), name],
    el("label", { for: "approval-note" }, "Note"), note, line,
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
    rules(one.rules)].filter(Boolean);
}
