// Elements are made of text, never of markup: captions and file names cannot bring a script.

const SVG = "http://www.w3.org/2000/svg";

const filled = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
};

/** An HTML element; a key such as `onclick` is a listener. */
export const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** An SVG element. */
export const shape = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

export const number = (value) => value.toFixed(3);

export const percent = (share) => (share > 0 && share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);
