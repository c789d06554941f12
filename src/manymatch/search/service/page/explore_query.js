// One query: the methods side by side with lines that join the same item, and why the true item is not first.

import { make, shape } from "/page/dom.js";
import { json } from "/page/service.js";
import { about, asks, count, go, legend, link, mark, methodNames, note, param, picture, pictureOf, table, way } from "/page/explore.js";
import { canvas, reasons } from "/page/why.js";

const isTrue = (name) => name === "own" || name === "true";

/** A link to an item as a query of the other direction. */
const asQuery = (item, attributes, ...children) => link({ view: "query", way: way() === "t2i" ? "i2t" : null, row: item.row, why: null }, attributes, way() === "t2i" && picture(item.row), children);

const tile = (item, i) => make("li", {}, asQuery(item, { class: `tile ${item.mark}${way() === "t2i" ? " picture" : ""}`, "data-row": item.row, title: `${item.id}: ${item.text}` },
  make("span", { class: "says" }, item.text), make("span", { class: "numbers" }, make("b", {}, i + 1), " ", mark(item.mark), make("small", {}, item.score.toFixed(3)))));

const column = (method) => make("section", { "aria-label": method.name }, make("header", {}, make("h3", {}, method.name),
  make("span", { class: "note" }, `true item at rank ${count(method.rank)}`)), make("ol", {}, method.items.map(tile)));

/** Lines between the tiles of one item in neighbouring columns. */
const join = (grid) => {
  grid.querySelector("svg")?.remove();
  const origin = grid.getBoundingClientRect();
  const columns = [...grid.querySelectorAll("section")].map((section) => new Map([...section.querySelectorAll(".tile")].map((one) => [one.dataset.row, one])));
  const paths = columns.slice(1).flatMap((right, i) => [...columns[i]].filter(([row]) => right.has(row)).map(([row, from]) => {
    const [a, b] = [from.getBoundingClientRect(), right.get(row).getBoundingClientRect()];
    const [x1, y1, x2, y2] = [a.right - origin.left, a.top + a.height / 2 - origin.top, b.left - origin.left, b.top + b.height / 2 - origin.top];
    const middle = (x1 + x2) / 2;
    return shape("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "data-row": row, class: from.matches(".own, .true") ? "is-true" : "other" });
  }));
  grid.append(shape("svg", { "aria-hidden": "true" }, paths));
};

const positives = (found) => {
  const depth = Math.min(...found.methods.map((one) => one.depth));
  const rank = (name) => [name, ({ ranks }) => make("span", { class: ranks[name] === 1 && "one-true" }, ranks[name] ? count(ranks[name]) : `> ${depth}`)];
  return table("Ranks of the true items", [["True item", (one) => asQuery(one, {}, make("span", {}, one.text))], ["mark", (one) => mark(one.mark)], ...methodNames().map(rank)], found.positives);
};

/** A picture and a caption with the explanation of their score by a method. */
const explained = (title, method, image, caption, item, rank) => {
  const { frame, draw } = canvas([pictureOf(image, false), pictureOf(image)]);
  const why = make("div", { class: "why" }, note("The model explains the score. The first time, the model is loaded …"));
  json(asks("explain", { method, image, caption })).then((answer) => why.replaceChildren(make("p", { class: "found" }, make("b", {}, answer.score.toFixed(3))), ...reasons(answer, pictureOf(image), draw)),
    (error) => why.replaceChildren(make("p", { class: "fault", role: "alert" }, error.message)));
  return make("section", {}, make("h3", {}, title, " ", mark(item.mark)), note(`rank ${count(rank)}: ${item.id}`), frame, make("p", { class: "text" }, way() === "t2i" && make("span", { class: "note" }, "Its first caption: "), item.text), why);
};

const reasonsWhy = (found) => {
  const method = found.methods.find((one) => one.name === param("why"));
  const pick = make("span", { class: "pick" }, methodNames().map((name) => make("button", { type: "button", "aria-pressed": String(name === method?.name), onclick: () => go({ why: name }, true) }, name)));
  const head = [make("h2", {}, "Why is the true item not first?"), make("p", {}, "Explain with ", pick)];
  if (!method) return head;
  const place = (item) => method.items.findIndex((one) => one.row === item.row) + 1;
  const best = found.positives.filter((one) => one.mark === "own").reduce((a, b) => ((b.ranks[method.name] ?? Infinity) < (a.ranks[method.name] ?? Infinity) ? b : a));
  const winner = method.items.find((one) => !isTrue(one.mark)) ?? method.items[0];
  const pair = (item) => (way() === "t2i" ? [item.row, found.row] : [found.row, item.row]);
  return [...head, make("div", { class: "beside" },
    explained(place(winner) === 1 ? "The winner" : "The best other item", method.name, ...pair(winner), winner, place(winner)),
    explained("The true item", method.name, ...pair(best), best, best.ranks[method.name] ?? method.rank))];
};

export const showQuery = async (place) => {
  const found = await json(asks("query", { way: way(), row: param("row", "0") }));
  const [first, ...others] = found.texts;
  const total = way() === "i2t" ? about.images : about.captions;
  const step = (by, label, text) => found.row + by >= 0 && found.row + by < total && link({ row: found.row + by, why: null }, { "aria-label": label, title: label, class: "plain" }, text);
  const file = make("a", { href: asks("query", { way: way(), row: found.row, k: 100, export: true }), download: "" }, "Save as JSON");
  const head = make("div", { class: "asked" }, way() === "i2t" && picture(found.row, false, { alt: found.id }), make("div", {},
    note(link({ view: null, row: null, why: null }, {}, "← All queries"), ` ${found.id}`), make("h1", {}, first), others.map((text) => make("p", { class: "text" }, text)),
    make("p", { class: "pager" }, step(-1, "Previous query", "←"), step(1, "Next query", "→"), make("span", { class: "end" }, file))));
  const grid = make("div", { class: "methods" }, found.methods.map(column));
  const light = (row) => { for (const one of grid.querySelectorAll("[data-row]")) one.classList.toggle("lit", one.dataset.row === row); };
  grid.addEventListener("pointerover", (event) => light(event.target.closest?.(".tile")?.dataset.row));
  place(head, make("div", { class: "lines", tabindex: "0", role: "region", "aria-label": "The first ten items of each method" }, grid), legend(), positives(found), reasonsWhy(found));
  new ResizeObserver(() => join(grid)).observe(grid);
};
