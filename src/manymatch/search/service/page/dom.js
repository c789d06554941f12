// Elements are made of text, never of markup: captions and file names cannot bring a script.

const SVG = "http://www.w3.org/2000/svg";

const filled = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
};

/** An HTML element; a key such as `onclick` is a listener, and one such as `--v` a property of its style. */
export const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** An SVG element. */
export const shape = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

/** The first of some pictures that is there and that the browser can show. */
export const picture = ([first, ...others], attributes = {}) => make("img", {
  src: first, alt: "", loading: "lazy", ...attributes,
  onerror: ({ target }) => {
    if (others.length) target.src = others.shift();
    else target.replaceWith(make("span", { class: "missing" }, "no picture"));
  },
});

/** Fill a place when an answer is there, or say why there is none. */
export const fill = (place, answer, render) => answer.then((content) => place.replaceChildren(...render(content)))
  .catch((error) => place.replaceChildren(make("p", { class: "fault", role: "alert" }, error.message)));

export const byId = (id) => document.getElementById(id);

export const note = (...children) => make("p", { class: "note" }, ...children);

/** Keys, and after each what the key does. */
export const keys = (...parts) => parts.map((part, i) => (i % 2 ? ` ${part} ` : make("kbd", {}, part)));

/** Say something at the top of the page; `aloud`: to screen readers alone. */
export const say = (text, { aloud = false } = {}) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("hidden", aloud || !text);
};

export const count = (value) => value.toLocaleString("en");

export const number = (value) => value.toFixed(3);

export const percent = (share) => (share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);
