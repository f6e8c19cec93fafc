// The list of cases. Everything is set as text, never as markup: what models and data say is shown, not run.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const { names, rows } = data;
  const [BENCH, CASE, WHO, REPEAT, STATE, GROUP, ANSWER, GOLD, FAILURE, CALLS, TOKENS, DOLLARS, SECONDS, BEFORE, AT, TEXT] = [...Array(16).keys()];
  rows.forEach((row, at) => { row[AT] = at; });
  const STEP = 60;
  const list = document.getElementById("list"), count = document.getElementById("count"), more = document.getElementById("more");
  const pick = (id) => document.getElementById(id);
  let found = [], shown = 0, state = "";

  function el(tag, kind, ...inside) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    for (const one of inside) if (one !== null && one !== undefined && one !== "") made.append(one);
    return made;
  }
  const words = (value) => value.replaceAll("_", " ");
  const num = (value, digits = 0) => value.toLocaleString("en", { maximumFractionDigits: digits });

  function text(row) {
    return row[TEXT] ??= [row[CASE], row[ANSWER], row[GOLD], row[FAILURE], names.who[row[WHO]], names.group[row[GROUP]]].join("\n").toLowerCase();
  }

  function filter() {
    const asked = pick("text").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [["bench", BENCH], ["who", WHO], ["group", GROUP]].map(([id, at]) => [at, pick(id)?.value ?? ""]).filter(([, value]) => value !== "");
    const change = pick("change")?.value ?? "";
    const failure = pick("failure")?.value ?? "";
    const kept = rows.filter((row) => wanted.every(([at, value]) => row[at] === +value) && (!failure || row[FAILURE] === failure) &&
      (!change || changed(row, change)) && asked.every((word) => text(row).includes(word)));
    const by = pick("sort").value;
    found = kept.filter((row) => state === "" || row[STATE] === +state);
    if (by) found = found.slice().sort((a, b) => b[by] - a[by]);
    for (const chip of document.querySelectorAll(".chips button")) {
      const of = chip.dataset.state === "" ? kept.length : kept.reduce((sum, row) => sum + (row[STATE] === +chip.dataset.state), 0);
      chip.querySelector("small").textContent = num(of);
      chip.setAttribute("aria-pressed", String(chip.dataset.state === state));
    }
    count.textContent = `${num(found.length)} of ${num(rows.length)} outcomes`;
    list.replaceChildren();
    shown = 0;
    show();
  }

  function changed(row, how) {
    if (row[BEFORE] === null) return how === "new";
    const now = row[STATE] === 0, then = row[BEFORE] === 0;
    return how === "gained" ? now && !then : how === "lost" ? then && !now : how === "other" ? row[STATE] !== row[BEFORE] && now === then : false;
  }

  function show() {
    const part = document.createDocumentFragment();
    for (const row of found.slice(shown, shown + STEP)) part.append(line(row));
    shown = Math.min(found.length, shown + STEP);
    list.append(part);
    more.hidden = shown >= found.length;
    more.firstElementChild.textContent = `Show ${Math.min(STEP, found.length - shown)} more`;
  }

  function line(row) {
    const at = row[AT], name = names.state[row[STATE]];
    const said = el("span", "said", row[ANSWER] || "no answer");
    if (name !== "right" && row[GOLD]) said.append(el("span", "gold", `  instead of ${row[GOLD]}`));
    const before = row[BEFORE] !== null && row[BEFORE] !== row[STATE] ? ` was ${words(names.state[row[BEFORE]])}` : "";
    const button = el("button", "row",
      el("span", `pill ${name}`, words(name)),
      el("span", "id", row[CASE], el("small", "", `${row[REPEAT] ? ` try ${row[REPEAT] + 1}` : ""}${row[FAILURE] ? ` ${words(row[FAILURE])}` : ""}${before}`)),
      el("span", "who", names.who[row[WHO]]), said,
      el("span", "cost", `${num(row[CALLS])} call${row[CALLS] === 1 ? "" : "s"}`));
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => toggle(button, at));
    const item = el("li", "", button);
    item.dataset.at = at;
    return item;
  }

  function toggle(button, at) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) button.nextElementSibling.remove();
    else button.after(story(rows[at], JSON.parse(document.getElementById(`s${at}`)?.textContent ?? "{}")));
  }

  function story(row, told) {
    const box = el("div", "story"), cited = new Set();
    (function look(items) {
      for (const item of items ?? []) { (item.evidence ?? []).forEach((id) => cited.add(id)); look(item.items); }
    })(told.items);
    if (told.question) box.append(el("h4", "", "Question"), el("p", "ask", told.question));
    if (told.goal && told.goal !== told.question) box.append(el("p", "", told.goal));
    if (told.rules) box.append(fold("Rules", el("p", "", told.rules)));
    box.append(facts(row, told));
    if (told.reasons?.length) box.append(el("h4", "", "Reasons"), ...told.reasons.map((reason) => el("p", "", reason)));
    if (told.items?.length) box.append(el("h4", "", "What happened"), steps(told.items, cited, box));
    else box.append(el("p", "note", "No trace was kept of this case."));
    return box;
  }

  function fold(title, ...inside) {
    return el("details", "", el("summary", "", title), ...inside);
  }

  function facts(row, told) {
    const box = el("dl", "facts");
    const add = (name, value) => { if (value !== "" && value !== null && value !== undefined) box.append(el("div", "", el("dt", "", name), el("dd", "", String(value)))); };
    add("Answer", row[ANSWER] || "none"); add("Accepted", row[GOLD]);
    if (told.text && told.text !== row[ANSWER]) add("As written", told.text);
    add("Technique", names.who[row[WHO]]); add("Group", names.group[row[GROUP]]); add("Ended", words(told.stopped ?? ""));
    add("Failure", words(row[FAILURE])); add("Kinds", (told.tags ?? []).map(words).join(", "));
    add("LM calls", num(row[CALLS])); add("Tokens", num(row[TOKENS]));
    add("Cost", row[DOLLARS] === null ? "price unknown" : `$${row[DOLLARS].toFixed(4)}`);
    add("Seconds", `${num(row[SECONDS], 2)}${told.critical ? `, of these ${num(told.critical, 2)} on the critical path` : ""}`);
    for (const [name, value] of Object.entries({ ...told.metrics, ...told.counts })) add(words(name), num(value, 3));
    return box;
  }

  function steps(items, cited, box) {
    const made = el("ol", "steps");
    for (const item of items) made.append(step(item, cited, box));
    return made;
  }

  const plan = (lines) => el("ol", "", ...lines.map((line) => el("li", "", line)));
  function took(seconds) {
    const whole = Math.round(seconds);
    if (whole >= 6000) return `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} min`;
    if (whole >= 100) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return seconds >= 0.1 ? `${num(seconds, 2)} s` : seconds > 0 ? `${num(1000 * seconds)} ms` : "";
  }

  function step(item, cited, box) {
    const made = el("li", item.kind + (item.error ? " failed" : ""));
    const head = (title, ...rest) => made.append(el("div", "what", el("b", "", title), ...rest.filter(Boolean).map((one) => el("span", "", one))));
    if (item.kind === "plan") { head("Plan"); made.append(plan(item.plan)); }
    else if (item.kind === "replan") { head("Replan", item.after ? `after step ${item.after}` : ""); if (item.why) made.append(el("p", "", item.why)); made.append(plan(item.plan)); }
    else if (item.kind === "says") {
      const short = el("summary", "what", el("b", "", "LM"), el("span", "", [item.model, `${num(item.tokens)} tokens`, took(item.seconds)].filter(Boolean).join(", ")));
      const thought = item.texts.join("\n").match(/^\W*thought\W*:\s*(.+)/im);
      if (thought) made.append(el("p", "thought", thought[1]));
      made.append(el("details", "", short, ...item.texts.map((one) => el("pre", "", one))));
    }
    else if (item.kind === "acts") acts(item, cited, made, head);
    else if (item.kind === "span") { head(item.name || "part", item.about); made.append(steps(item.items, cited, box)); }
    else if (item.kind === "decides") decides(item, made, head, box);
    else if (item.kind === "cut") head("…", `${num(item.items)} events left out here`);
    else { head("Note", item.about); if (item.text) made.append(el("p", "", item.text)); }
    return made;
  }

  function acts(item, cited, made, head) {
    const rowsOf = item.total > item.shown ? `${num(item.shown)} of ${num(item.total)} records shown` : item.total ? `${num(item.total)} record${item.total === 1 ? "" : "s"}` : "";
    head(item.tool, rowsOf, took(item.seconds));
    if (item.input) made.append(el("pre", "", item.input));
    if (item.note) made.append(el("p", item.error ? "error" : "", item.note));
    for (const table of item.tables ?? []) {
      const body = el("tbody");
      for (const cells of table.rows) {
        const line = el("tr", cited.has(cells[0]) ? "cited" : "", ...cells.map((cell) => el("td", "", cell)));
        line.dataset.id = cells[0];
        body.append(line);
      }
      const top = el("tr", "", el("th", "", "id"), ...table.columns.map((name) => el("th", "", name)));
      const holder = el("div", "rows", el("table", "", el("thead", "", top), body));
      holder.tabIndex = 0;
      made.append(holder);
    }
  }

  function decides(item, made, head, box) {
    head("Decision", item.stopped === "answered" ? "" : words(item.stopped));
    made.append(el("p", "ask", item.answer || "none"), ...item.reasons.map((reason) => el("p", "", reason)));
    if (item.evidence.length) {
      const chips = item.evidence.map((id) => {
        const chip = el("button", "cite", id);
        chip.type = "button";
        chip.addEventListener("click", () => point(box, id));
        return chip;
      });
      made.append(el("div", "what", el("span", "", "Evidence"), ...chips));
    }
    for (const text of item.doubts ?? []) made.append(el("p", "error", text));
    for (const text of item.objections) made.append(el("p", "error", text));
    if (item.ranking.length) {
      const cells = item.ranking.flatMap(([name, outcome, tie]) => [el("span", tie ? "tie" : "", name), el("span", "n", typeof outcome === "number" ? num(outcome, 6) : String(outcome))]);
      made.append(fold(`Ranking: ${item.measure}`, el("div", "rank", ...cells)));
    }
  }

  function point(box, id) {
    const line = [...box.querySelectorAll("tr[data-id]")].find((one) => one.dataset.id === id);
    if (!line) return;
    line.scrollIntoView({ block: "center" });
    line.classList.add("flash");
    setTimeout(() => line.classList.remove("flash"), 1600);
  }

  for (const button of document.querySelectorAll(".pubs")) button.addEventListener("click", () => {
    for (const line of button.closest("tbody").querySelectorAll("tr.pub[hidden]")) line.hidden = false;
    button.remove();
  });

  let waiting = 0;
  pick("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  for (const one of document.querySelectorAll(".filters select")) one.addEventListener("change", filter);
  for (const chip of document.querySelectorAll(".chips button")) chip.addEventListener("click", () => { state = chip.dataset.state; filter(); });
  more.firstElementChild.addEventListener("click", show);
  filter();
  document.documentElement.dataset.ready = "yes";
})();
