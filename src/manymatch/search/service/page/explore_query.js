// One query: the methods side by side with lines that join the same item, and why the true item is not first.

import { go, link, param, way } from "/page/address.js";
import { count, fill, make, note, number, picture, shape } from "/page/dom.js";
import { about, ask, asQuery, legend, mark, methods, picks, pictureOf, saved, small, table } from "/page/explore_parts.js";
import { canvas, reasons } from "/page/why.js";

/** A link to an item as a query of the other direction. */
const itemLink = (item, attributes, ...more) =>
  link(asQuery(item.row, way() === "t2i" ? "i2t" : "t2i"), { title: `${item.id}: ${item.text}`, ...attributes },
    way() === "t2i" && small(item.row), make("span", { class: "says" }, item.text), ...more);

const tile = (item, i) => make("li", {}, itemLink(item, { class: `tile ${item.mark}`, "data-row": item.row },
  make("span", { class: "numbers" }, make("b", {}, i + 1), " ", mark(item.mark), make("small", {}, ` ${number(item.score)}`))));

const column = (method) => make("section", { "aria-label": method.name },
  make("header", {}, make("h3", {}, method.name), make("span", { class: "note" }, `true item at rank ${count(method.rank)}`)),
  make("ol", {}, method.items.map(tile)));

/** Lines between the tiles of one item in neighbouring columns. */
const join = (grid) => {
  grid.querySelector("svg")?.remove();
  const { left, top } = grid.getBoundingClientRect();
  const paths = [...grid.querySelectorAll(".tile")].map((from) => {
    const to = from.closest("section").nextElementSibling?.querySelector(`[data-row="${from.dataset.row}"]`);
    if (!to) return null;
    const [a, b] = [from, to].map((one) => one.getBoundingClientRect());
    const [x1, y1, x2, y2] = [a.right - left, a.top + a.height / 2 - top, b.left - left, b.top + b.height / 2 - top];
    const d = `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
    return shape("path", { d, "data-row": from.dataset.row, class: from.matches(".own, .true") && "is-true" });
  });
  grid.append(shape("svg", { "aria-hidden": "true" }, paths));
};

const positives = (found) => {
  const depth = Math.min(...found.methods.map((one) => one.depth));
  const rank = (name) => [name, ({ ranks }) =>
    make(ranks[name] === 1 ? "b" : "span", {}, ranks[name] ? count(ranks[name]) : `> ${depth}`)];
  return table("Ranks of the true items",
    [["True item", (one) => itemLink(one)], ["mark", (one) => mark(one.mark)], ...methods().map(rank)], found.positives);
};

/** A picture and a caption with the explanation of their score by a method. */
const explained = (title, method, query, item, rank) => {
  const [image, caption] = way() === "t2i" ? [item.row, query] : [query, item.row];
  const { frame, draw } = canvas([pictureOf(image, false), pictureOf(image)]);
  const why = make("div", { class: "why" }, note("The model explains the score. The first time, the model is loaded …"));
  fill(why, ask("explain", { method, image, caption }), (answer) =>
    [make("p", { class: "found" }, make("b", {}, number(answer.score))), ...reasons(answer, pictureOf(image), draw)]);
  return make("section", {}, make("h3", {}, title, " ", mark(item.mark)), note(`rank ${count(rank)}: ${item.id}`), frame,
    make("p", { class: "text" }, way() === "t2i" && make("span", { class: "note" }, "Its first caption: "), item.text), why);
};

const reasonsWhy = (found) => {
  const method = found.methods.find((one) => one.name === param("why"));
  const pick = picks(methods().map((name) => [name]), method?.name, (why) => go({ why }, { replace: true }));
  const head = [make("h2", {}, "Why is the true item not first?"), make("p", {}, "Explain with ", pick)];
  if (!method) return head;
  const rank = (item) => item.ranks[method.name] ?? Infinity;
  const best = found.positives.filter((one) => one.mark === "own").reduce((a, b) => (rank(b) < rank(a) ? b : a));
  const wrong = method.items.findIndex((one) => !["own", "true"].includes(one.mark));
  const other = Math.max(0, wrong); // All shown items may be true.
  return [...head, make("div", { class: "beside" },
    explained(other ? "The best other item" : "The winner", method.name, found.row, method.items[other], other + 1),
    explained("The true item", method.name, found.row, best, best.ranks[method.name] ?? method.rank))];
};

export const showQuery = async (place) => {
  const found = await ask("query", { row: param("row", "0") });
  const [first, ...others] = found.texts;
  const total = way() === "i2t" ? about.images : about.captions;
  const step = (row, label, text) => row >= 0 && row < total && link({ row, why: null }, { title: label, class: "plain" }, text);
  const head = make("div", { class: "asked" },
    way() === "i2t" && picture([pictureOf(found.row, false), pictureOf(found.row)], { alt: found.id }),
    make("div", {},
      note(link({ view: null, row: null, why: null }, { "data-key": "Escape" }, "← All queries"), ` ${found.id}`),
      make("h1", {}, first), others.map((text) => make("p", { class: "text" }, text)),
      make("p", { class: "settings" }, step(found.row - 1, "Previous query", "←"), step(found.row + 1, "Next query", "→"),
        make("span", { class: "end" }, "Save as ", saved("query", { row: found.row, k: 100 }, ["json"])))));
  const grid = make("div", { class: "methods" }, found.methods.map(column));
  grid.addEventListener("pointerover", ({ target }) => {
    const row = target.closest?.(".tile")?.dataset.row;
    for (const one of grid.querySelectorAll("[data-row]")) one.classList.toggle("lit", one.dataset.row === row);
  });
  place(head, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The first ten items of each method" }, grid),
    legend(), positives(found), reasonsWhy(found));
  new ResizeObserver(() => join(grid)).observe(grid);
};
