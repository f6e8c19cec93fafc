// The settings of a technique as fields; what is left as it was is not sent.
import { el, fold, plain } from "./dom.js";

export function settingsOf(technique, llms) {
  const fields = technique.settings.map((one) => [one, field(one, llms)]);
  const labels = fields.map(([one, node]) => el("label", {}, plain(one.name), node));
  const read = () => Object.fromEntries(fields.filter(([, node]) => node.value !== "").map(([one, node]) => [one.name, value(one, node.value)]));
  return { nodes: labels.length ? [fold(`Settings of ${plain(technique.name)}`, el("div.grid", {}, labels))] : [], read };
}

function field(one, llms) {
  const usual = one.default === null || one.default === "" ? "as usual" : `as usual (${one.default === true ? "yes" : one.default === false ? "no" : one.default})`;
  if (one.kind === "number") return el("input", { type: "number", step: "any", placeholder: usual });
  const options = one.kind === "yes or no" ? ["yes", "no"] : one.kind === "llm" ? llms : one.choices;
  return el("select", {}, el("option", { value: "" }, usual), options.map((name) => el("option", { value: name }, name)));
}

function value(one, text) {
  return one.kind === "number" ? Number(text) : one.kind === "yes or no" ? text === "yes" : text;
}
