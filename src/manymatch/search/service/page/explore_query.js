// One query: the methods side by side with lines that join the same item, and why the true item is not first.

import { make, shape } from "/page/dom.js";
import { json } from "/page/service.js";
import { about, asks, go, legend, link, mark, methodNames, param, pictureOf, table, thumb, way } from "/page/explore.js";
import { reasons } from "/page/why.js";

const isTrue = (name) => name === "own" || name === "true";

/** A link to an item as a query of the other direction. */
const asQuery = (item, attributes, ...children) => link({ view: "query", way: way() === "t2i" ? "i2t" : null, row: item.row, why: null }, attributes, children);

const tile = (item, rank) => make("li", {}, asQuery(item, { class: `tile ${item.mark}${way() === "t2i" ? " picture" : ""}`, "data-row": item.row, title: `${item.id}: ${item.text}` },
  way() === "t2i" && thumb(item.row), make("span", { class: "says" }, item.text),
  make("span", { class: "numbers" }, make("b", {}, String(rank)), " ", mark(item.mark), make("small", {}, item.score.toFixed(3)))));

const column = (method) => make("section", { "aria-label": method.name }, make("header", {}, make("h3", {}, method.name),
  make("span", { class: "note" }, `true item at rank ${method.rank.toLocaleString("en")}`)), make("ol", {}, method.items.map((item, i) => tile(item, i + 1))));

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
  const names = methodNames();
  const depth = Math.min(...found.methods.map((one) => one.depth));
  const cell = (one, name) => make("td", { class: one.ranks[name] === 1 ? "one-true" : "" }, one.ranks[name]?.toLocaleString("en") ?? `> ${depth}`);
  return table([make("th", { class: "first", scope: "col" }, "True item"), make("th", { scope: "col" }, "mark"), names.map((name) => make("th", { scope: "col" }, name))],
    found.positives.map((one) => make("tr", {}, make("td", { class: "first" }, asQuery(one, {}, way() === "t2i" && thumb(one.row), make("span", {}, one.text))), make("td", {}, mark(one.mark)), names.map((name) => cell(one, name)))),
    { "aria-label": "Ranks of the true items" });
};

/** A picture and a caption with the explanation of their score by a method. */
const explained = (title, method, image, caption, item, rank) => {
  const frame = make("div", { class: "frame large" }, make("img", { src: pictureOf(image, false), alt: "", onload: ({ target }) => frame.style.setProperty("--ratio", target.naturalWidth / target.naturalHeight) }));
  const draw = (drawing) => {
    frame.querySelector(".attention")?.remove();
    frame.classList.toggle("drawn", drawing !== null);
    if (drawing) frame.append(drawing);
  };
  const why = make("div", { class: "why" }, make("p", { class: "note" }, "The model explains the score. The first time, the model is loaded …"));
  json(asks("explain", { method, image, caption })).then((answer) => why.replaceChildren(make("p", { class: "found" }, make("b", {}, answer.score.toFixed(3))), ...reasons(answer, pictureOf(image), draw)),
    (error) => why.replaceChildren(make("p", { class: "fault", role: "alert" }, error.message)));
  return make("section", {}, make("h3", {}, title, " ", mark(item.mark)), make("p", { class: "note" }, `rank ${rank}: ${item.id}`), frame, make("p", { class: "text" }, way() === "t2i" && make("span", { class: "note" }, "Its first caption: "), item.text), why);
};

const reasonsWhy = (found) => {
  const method = found.methods.find((one) => one.name === param("why")) ?? null;
  const pick = make("span", { class: "pick" }, found.methods.map(({ name }) =>
    make("button", { type: "button", "aria-pressed": String(name === method?.name), onclick: () => go({ why: name }, true) }, name)));
  const parts = [make("h2", {}, "Why is the true item not first?"), make("p", {}, "Explain with ", pick)];
  if (!method) return parts;
  const place = (item) => method.items.findIndex((one) => one.row === item.row) + 1;
  const ranked = found.positives.filter((one) => one.mark === "own").sort((a, b) => (a.ranks[method.name] ?? Infinity) - (b.ranks[method.name] ?? Infinity));
  const winner = method.items.find((one) => !isTrue(one.mark)) ?? method.items[0];
  const pair = (item) => (way() === "t2i" ? [item.row, found.row] : [found.row, item.row]);
  parts.push(make("div", { class: "beside" },
    explained(place(winner) === 1 ? "The winner" : "The best other item", method.name, ...pair(winner), winner, place(winner)),
    explained("The true item", method.name, ...pair(ranked[0]), ranked[0], ranked[0].ranks[method.name] ?? method.rank)));
  return parts;
};

export const showQuery = async (place) => {
  const found = await json(asks("query", { way: way(), row: param("row", "0") }));
  const picture = way() === "i2t" && make("img", { src: pictureOf(found.row, false), alt: found.id });
  const [first, ...others] = found.texts;
  const count = way() === "i2t" ? about.images : about.captions;
  const step = (by, label, text) => found.row + by >= 0 && found.row + by < count && link({ row: found.row + by, why: null }, { "aria-label": label, title: label, class: "plain" }, text);
  const head = make("div", { class: "asked" }, picture, make("div", {},
    make("p", { class: "note" }, link({ view: null, row: null, why: null }, {}, "← All queries"), ` ${found.id}`), make("h1", {}, first), others.map((text) => make("p", { class: "text" }, text)),
    make("p", { class: "pager" }, step(-1, "Previous query", "←"), step(1, "Next query", "→"), make("span", { class: "end" }, make("a", { href: asks("query", { way: way(), row: found.row, k: 100, export: true }), download: "" }, "Save as JSON")))));
  const grid = make("div", { class: "methods" }, found.methods.map(column));
  const light = (row) => { for (const one of grid.querySelectorAll("[data-row]")) one.classList.toggle("lit", one.dataset.row === row); };
  grid.addEventListener("pointerover", (event) => light(event.target.closest?.(".tile")?.dataset.row));
  place(head, make("div", { class: "lines", tabindex: "0", role: "region", "aria-label": "The first ten items of each method" }, grid), legend(), positives(found), reasonsWhy(found));
  new ResizeObserver(() => join(grid)).observe(grid);
};
