// Elements, colours and numbers. Data becomes text only: there is no innerHTML on this page.

const data = JSON.parse(document.getElementById("data").textContent);
const NOISE = -1, NOT_LABELLED = -2;
const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc6fa5", "#b58900", "#3a97d4", "#7b4fb5", "#8a5a2b"];
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star"];
const GREY = "#8c96a0";
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listen] of Object.entries(value)) made.addEventListener(event, listen);
    else if (name === "style") Object.assign(made.style, value);
    else if (value === true) made.setAttribute(name, "");
    else made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

function button(text, listen, attributes = {}) {
  return element("button", { type: "button", on: { click: listen }, ...attributes }, text);
}

function select(label, options, chosen, listen, attributes = {}) {
  const box = element("select", { "aria-label": label, on: { change: () => listen(box.value) }, ...attributes });
  for (const [value, text] of options) {
    box.append(element("option", { value, selected: String(value) === String(chosen) }, text));
  }
  return box;
}

function field(label, control) {
  const id = `field-${label.replace(/\W+/g, "-").toLowerCase()}`;
  control.id = id;
  return element("div", { class: "field" }, element("label", { for: id }, label), control);
}

function section(id, title, lead, ...content) {
  return element(
    "section", { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title),
    lead ? element("p", { class: "lead" }, lead) : null,
    ...content,
  );
}

function table(headings, rows, numbers = new Set(), chosen = () => false) {
  const kind = (place) => (numbers.has(place) ? "number" : null);
  const head = element("tr", {}, ...headings.map((text, place) => element("th", { scope: "col", class: kind(place) }, text)));
  const body = rows.map((cells, at) => element(
    "tr", { class: chosen(at) ? "chosen" : null },
    ...cells.map((cell, place) => element("td", { class: kind(place) }, cell instanceof Node ? cell : String(cell ?? ""))),
  ));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": headings.join(", ") },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}

function percent(share) {
  return share > 0 && share < 0.005 ? "<1 %" : `${Math.round(100 * share)} %`;
}

function count(n, noun) {
  return `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;
}

const SHAPES = {
  circle: () => svg("circle", { cx: 8, cy: 8, r: 6 }),
  square: () => svg("rect", { x: 2.5, y: 2.5, width: 11, height: 11 }),
  triangle: () => svg("path", { d: "M8 1.5 15 14H1z" }),
  diamond: () => svg("path", { d: "M8 .8 13.5 8 8 15.2 2.5 8z" }),
  inverted_triangle: () => svg("path", { d: "M8 14.5 15 2H1z" }),
  hex: () => svg("path", { d: "M8 1.2 14 4.6v6.8L8 14.8 2 11.4V4.6z" }),
  star: () => svg("path", { d: "m8 .8 2.1 4.9 5.3.4-4 3.5 1.2 5.2L8 12 3.4 14.8l1.2-5.2-4-3.5 5.3-.4z" }),
};

function swatch(style) {
  const shape = SHAPES[style.marker]();
  shape.setAttribute("fill", style.color);
  return svg("svg", { viewBox: "0 0 16 16", class: "swatch", "aria-hidden": "true" }, shape);
}
