// Drawings: dragged with the pointer, zoomed with buttons, + and -, or the wheel with Ctrl. Without it they scroll.
"use strict";
for (const canvas of document.querySelectorAll(".decisor .canvas")) {
  const svg = canvas.firstElementChild;
  const width = svg.width.baseVal.value, height = svg.height.baseVal.value;
  const fit = () => Math.min(1, canvas.clientWidth / width);
  let scale = 1;

  function zoom(next, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const before = scale, left = canvas.scrollLeft + x, top = canvas.scrollTop + y;
    scale = Math.max(0.05, Math.min(3, next));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    svg.classList.toggle("far", scale < 0.35);
    canvas.scrollLeft = left * scale / before - x;
    canvas.scrollTop = top * scale / before - y;
  }

  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [text, name, act] of [["+", "Zoom in", () => zoom(scale * 1.25)], ["−", "Zoom out", () => zoom(scale / 1.25)],
    ["Fit", "Fit the drawing", () => zoom(fit())], ["1:1", "Full size", () => zoom(1)]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", act);
    tools.append(button);
  }
  canvas.before(tools);

  let drag = null;
  canvas.classList.add("drags");
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button) return;
    drag = { x: event.clientX, y: event.clientY, left: canvas.scrollLeft, top: canvas.scrollTop, moved: false };
  });
  addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    drag.moved ||= Math.abs(x) + Math.abs(y) > 4;
    if (!drag.moved) return;
    canvas.classList.add("moves");
    canvas.scrollLeft = drag.left - x;
    canvas.scrollTop = drag.top - y;
  });
  addEventListener("pointerup", () => {
    if (drag?.moved) addEventListener("click", (event) => event.preventDefault(), { capture: true, once: true });
    setTimeout(() => { drag = null; canvas.classList.remove("moves"); });
  });
  canvas.addEventListener("dragstart", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const place = canvas.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !"+-=0".includes(event.key)) return;
    event.preventDefault();
    zoom(event.key === "-" ? scale / 1.25 : event.key === "0" ? fit() : scale * 1.25);
  });
  if (width > canvas.clientWidth) zoom(Math.max(0.6, fit()));
}
