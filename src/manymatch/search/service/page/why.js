// Why a picture and a text have their score: attention over the picture, words, cosines, the graph.

import { make, note, number, percent, picture, shape } from "/page/dom.js";

const DARKEST = 0.84;
const LEAST = 0.05;

const largest = (values) => Math.max(...values);
const range = (count) => [...Array(count).keys()];

/** Whether the regions cover the picture without overlap, as the cells of a grid do. */
const tiled = (boxes) => {
  const [left, top] = [0, 1].map((i) => Math.min(...boxes.map((box) => box[i])));
  const [right, bottom] = [2, 3].map((i) => Math.max(...boxes.map((box) => box[i])));
  const area = boxes.reduce((sum, [x1, y1, x2, y2]) => sum + (x2 - x1) * (y2 - y1), 0);
  const hull = (right - left) * (bottom - top);
  return Math.abs(area - hull) < 0.01 * hull;
};

/** The attention of one element over a picture: dark where it does not look, or boxes where it looks. */
export const veil = (boxes, weights) => {
  const strongest = largest(weights) || 1;
  const cells = tiled(boxes);
  const order = range(boxes.length).sort((a, b) => weights[a] - weights[b]);
  const drawn = order.map((i) => {
    const [x1, y1, x2, y2] = boxes[i].map((value) => 100 * value);
    const strength = weights[i] / strongest;
    const place = { x: x1, y: y1, width: x2 - x1, height: y2 - y1 };
    if (cells) return shape("rect", { ...place, class: "veil", "fill-opacity": (DARKEST * (1 - strength)).toFixed(2) });
    return strength < LEAST ? null : shape("rect", { ...place, class: "region", "stroke-opacity": strength.toFixed(2) });
  });
  return shape("svg", { class: "attention", viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" }, drawn);
};

/** The words of a text; darker ones are read more. */
const words = (texts, weights, label) => {
  const strongest = weights ? largest(weights) : 0;
  return make("p", { class: "words", "aria-label": label }, texts.flatMap((text, i) => {
    const read = weights ? { title: `${percent(weights[i])} of the attention`, "--v": strongest && weights[i] / strongest } : {};
    return [make("span", read, text), " "];
  }));
};

/** One button for each element of the picture; a press draws its attention over the large picture. */
const pictureElements = (why, small, draw) => {
  const partner = new Map(why.matched);
  const buttons = why.image_attention.map((weights, i) => {
    const best = partner.get(i);
    const fits = best === undefined ? "no partner" : `with text ${best + 1}: ${number(why.cosines[i][best])}`;
    return make("button", {
      type: "button", class: "look", "aria-pressed": "false",
      onclick: () => press(i), onpointerenter: () => show(i), onpointerleave: () => show(pinned),
    },
      make("span", { class: "frame" }, make("img", { src: small, alt: "" }), veil(why.boxes, weights)),
      make("b", {}, `Element ${i + 1}`), make("small", {}, fits));
  });
  let pinned = null;
  const show = (i) => draw(i === null ? null : veil(why.boxes, why.image_attention[i]));
  const press = (pressed) => {
    pinned = pinned === pressed ? null : pressed;
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === pinned)));
    show(pinned);
  };
  return [make("h4", {}, "Where each element of the picture looks"), make("div", { class: "looks" }, buttons)];
};

const textElements = (why) => {
  const title = make("h4", {}, why.text_attention ? "Words that each element of the text reads" : "Words that the model reads");
  if (!why.text_attention) return [title, words(why.words, null, "Words")];
  return [title, make("ol", { class: "readings" }, why.text_attention.map((weights, i) =>
    make("li", {}, make("b", {}, `Text ${i + 1}`), words(why.words, weights, `Element ${i + 1} of the text`))))];
};

/** The cosines of all elements; the pairs of the assignment have a frame. */
const matrix = (why) => {
  const paired = new Set(why.matched.map(([row, column]) => `${row} ${column}`));
  const values = why.cosines.flat();
  const [low, high] = [Math.min(...values), largest(values)];
  const cell = (value, row, column) => {
    const pair = paired.has(`${row} ${column}`);
    const share = high > low ? (value - low) / (high - low) : 1;
    return make("td", { class: pair && "pair", "--v": share }, number(value), pair && make("span", { class: "hidden" }, " matched"));
  };
  const table = make("table", { class: "heat" },
    make("caption", {}, "Cosines of the elements; framed: the best one-to-one pairs"),
    make("thead", {}, make("tr", {}, make("td"), why.cosines[0].map((_, column) => make("th", { scope: "col" }, `text ${column + 1}`)))),
    make("tbody", {}, why.cosines.map((row, i) => make("tr", {}, make("th", { scope: "row" }, `picture ${i + 1}`), row.map((value, j) => cell(value, i, j))))));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Cosines of the elements" }, table);
};

/** The scene graph of the text: its objects with their scores, then its relations. */
const graph = (why) => {
  const { objects, attributes, relations } = why.graph;
  const scores = why.entity_scores;
  const lowest = scores ? scores.indexOf(Math.min(...scores)) : -1;
  const object = (name, i) => {
    const limits = i === lowest && objects.length > 1;
    const share = scores && Math.max(0, Math.min(1, scores[i]));
    return make("li", { class: limits && "limits" },
      make("span", { class: "entity" }, make("b", {}, name), attributes[i].map((text) => make("i", {}, text))),
      scores && make("span", { class: "meter", "aria-hidden": "true" }, make("span", { "--v": share })),
      scores && make("span", { class: "score" }, number(scores[i])),
      limits && make("span", { class: "badge" }, "limits the score"));
  };
  return [
    make("h4", {}, "The text as a scene graph"),
    make("ul", { class: "entities" }, objects.map(object)),
    relations.length > 0 && make("ul", { class: "relations" }, relations.map((edge) =>
      make("li", {}, objects[edge.subject], make("span", {}, ` ${edge.label} `), objects[edge.object]))),
  ];
};

/** A large picture, the first of `sources` that is there, and a function that draws over the picture. */
export const canvas = (sources) => {
  const image = picture(sources, { onload: () => frame.style.setProperty("--ratio", image.naturalWidth / image.naturalHeight) });
  const frame = make("div", { class: "frame large" }, image);
  const draw = (drawing) => {
    frame.querySelector(".attention")?.remove();
    frame.classList.toggle("drawn", drawing !== null);
    if (drawing) frame.append(drawing);
  };
  return { frame, image, draw };
};

/** All that a method knows about the score. `draw` shows a drawing over the large picture, or none. */
export const reasons = (why, small, draw) => {
  const several = why.cosines.length * why.cosines[0].length > 1;
  const parts = [];
  if (why.image_attention && why.boxes) parts.push(...pictureElements(why, small, draw));
  parts.push(...textElements(why));
  if (several) parts.push(make("h4", {}, "How well the elements agree"), matrix(why));
  if (why.graph) parts.push(...graph(why));
  if (why.image_variance !== null && why.text_variance !== null) {
    parts.push(make("h4", {}, "How certain the model is"),
      make("p", {}, `Mean variance: picture ${why.image_variance.toPrecision(3)}, text ${why.text_variance.toPrecision(3)}.`));
  }
  if (!several && !why.graph && !why.image_attention) {
    parts.push(note("The method compares one vector of the picture with one of the text. It has no parts to show."));
  }
  return parts.filter(Boolean);
};
