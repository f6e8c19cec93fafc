// Drawings of a DAG or a tree: laid out by the server, drawn here, dragged, scrolled and zoomed. Only what is in sight
// is in the page, so thousands of nodes stay smooth.
import { button, el, svg } from "./dom.js";

const WIDE = 224, LINE = 17, PAD = 9, AROUND = 400;

export function canvas(drawing) {
  const root = svg(`svg.${drawing.form}`, { viewBox: `0 0 ${drawing.width} ${drawing.height}`, width: drawing.width, height: drawing.height, role: "group", "aria-label": drawing.title });
  const lines = svg("g"), boxes = svg("g");
  root.append(lines, boxes);
  const box = el("div.canvas", { tabindex: 0, role: "region", "aria-label": `${drawing.title}. Arrow keys move it, plus and minus zoom.` }, root);
  const heights = new Map(drawing.boxes.map((one) => [one.name, 2 * PAD + LINE * Math.max(1, one.lines.length)]));
  const seen = new Map(), strokes = new Map();
  let scale = 1, is_due = false;

  function draw() {
    is_due = false;
    const left = box.scrollLeft / scale - AROUND, top = box.scrollTop / scale - AROUND;
    const right = left + box.clientWidth / scale + 2 * AROUND, bottom = top + box.clientHeight / scale + 2 * AROUND;
    keep(seen, boxes, drawing.boxes, (one) => one.x + WIDE > left && one.x < right && one.y + heights.get(one.name) > top && one.y < bottom, (one) => node(one, heights.get(one.name)));
    keep(strokes, lines, drawing.lines, (one) => {
      const xs = one.corners.map(([x]) => x), ys = one.corners.map(([, y]) => y);
      return Math.max(...xs) > left && Math.min(...xs) < right && Math.max(...ys) > top && Math.min(...ys) < bottom;
    }, (one) => svg(`path.line${one.kind ? `.${one.kind}` : ""}`, { d: curve(one.corners, drawing.form) }));
  }
  const soon = () => { if (!is_due) { is_due = true; requestAnimationFrame(draw); } };

  function zoom(next, x = box.clientWidth / 2, y = box.clientHeight / 2) {
    const before = scale, left = box.scrollLeft + x, top = box.scrollTop + y;
    scale = Math.max(0.05, Math.min(3, next));
    root.setAttribute("width", drawing.width * scale);
    root.setAttribute("height", drawing.height * scale);
    root.classList.toggle("far", scale < 0.35);
    box.scrollLeft = left * scale / before - x;
    box.scrollTop = top * scale / before - y;
    soon();
  }
  const fit = () => Math.min(1, (box.clientWidth - 2) / drawing.width, Math.max(0.35, box.clientHeight / drawing.height));

  drags(box);
  box.addEventListener("scroll", soon, { passive: true });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const place = box.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
  }, { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !"+-=0".includes(event.key)) return;
    event.preventDefault();
    zoom(event.key === "-" ? scale / 1.25 : event.key === "0" ? fit() : scale * 1.25);
  });
  const watch = new ResizeObserver(soon);
  watch.observe(box);
  const tools = el("div.tools", {},
    button("+", () => zoom(scale * 1.25), { "aria-label": "Zoom in" }), button("−", () => zoom(scale / 1.25), { "aria-label": "Zoom out" }),
    button("Fit", () => zoom(fit()), { "aria-label": "Fit the drawing" }), button("1:1", () => zoom(1), { "aria-label": "Full size" }));
  requestAnimationFrame(() => {
    if (drawing.width > box.clientWidth) zoom(Math.max(0.6, fit()));
    if (drawing.form === "tree" && drawing.boxes.length) box.scrollTop = drawing.boxes[0].y * scale - box.clientHeight / 2;
  });
  return el("figure.drawing", {}, el("div.row", {}, el("figcaption", {}, drawing.title), tools), box);
}

/** What is in sight is there; what is not, is not. */
function keep(there, parent, all, is_seen, make) {
  for (const one of all) {
    const node = there.get(one);
    if (is_seen(one)) {
      if (!node) { const made = make(one); there.set(one, made); parent.append(made); }
    } else if (node) { node.remove(); there.delete(one); }
  }
}

function node(one, height) {
  const inside = [svg("title", {}, one.title), svg("rect", { width: WIDE, height, rx: 8 }),
    one.lines.map((text, at) => svg(at ? "text.text" : "text.head", { x: PAD + 2, y: PAD + 12.5 + at * LINE }, text))];
  const kinds = one.kind ? `.${one.kind.split(" ").join(".")}` : "";
  return svg(`g.node${kinds}`, { transform: `translate(${one.x} ${one.y})` }, one.entry ? svg("a", { href: `#s-${one.entry}` }, inside) : inside);
}

function curve(corners, form) {
  let [[x, y]] = corners, path = `M${x} ${y}`;
  for (const [right, down] of corners.slice(1)) {
    const middle = form === "tree" ? (x + right) / 2 : (y + down) / 2;
    path += form === "tree" ? `C${middle} ${y} ${middle} ${down} ${right} ${down}` : `C${x} ${middle} ${right} ${middle} ${right} ${down}`;
    [x, y] = [right, down];
  }
  return path;
}

/** With the mouse; a finger scrolls it by itself. */
function drags(box) {
  let drag = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && !event.button) drag = { x: event.clientX, y: event.clientY, left: box.scrollLeft, top: box.scrollTop, far: false };
  });
  box.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.far && Math.abs(x) + Math.abs(y) > 4) { drag.far = true; box.setPointerCapture(event.pointerId); box.classList.add("moves"); }
    if (drag.far) { box.scrollLeft = drag.left - x; box.scrollTop = drag.top - y; }
  });
  const end = () => {
    if (drag?.far) box.addEventListener("click", (event) => { event.preventDefault(); event.stopPropagation(); }, { capture: true, once: true });
    drag = null;
    box.classList.remove("moves");
  };
  box.addEventListener("pointerup", end);
  box.addEventListener("pointercancel", end);
  box.addEventListener("dragstart", (event) => event.preventDefault());
}
