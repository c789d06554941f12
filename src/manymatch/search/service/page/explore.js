// The explorer: the address holds the state, a view renders the state. This file has the queries.

import { go, link, param, way } from "/page/address.js";
import { byId, count, keys, make, note, say } from "/page/dom.js";
import "/page/keys.js";
import { about, ask, choice, field, legend, listed, mark, MARKS, methods, picks, small, table } from "/page/explore_parts.js";
import { showPairs, showSpace } from "/page/explore_more.js";
import { showQuery } from "/page/explore_query.js";

const WAYS = [["t2i", "text → image"], ["i2t", "image → text"]];

const filters = () => {
  const names = methods().map((name) => [name]);
  const firsts = methods().flatMap((name) => Object.entries(MARKS).map(([kind, [, text]]) => [`${kind}:${name}`, `${name}: ${text}`]));
  return make("div", { class: "settings", role: "search" },
    field("Words", { id: "word", "data-key": "/", type: "search", value: param("word"), maxlength: 200, placeholder: "two dogs" },
      (word) => go({ word, page: null })),
    choice("Right", "right", [["", "any"], ...names]), choice("wrong", "wrong", [["", "any"], ...names]),
    choice("within", "cut", [["1", "rank 1"], ["5", "ranks 1–5"], ["10", "ranks 1–10"]], "1"),
    choice("First item", "first", [["", "anything"], ...firsts]),
    make("a", { href: `/explore?way=${way()}` }, "Reset"));
};

/** The recalls of each method, and the histogram of its ranks: a column for each range. */
const summary = (found) => {
  const most = Math.max(...found.flatMap((one) => one.histogram));
  const recall = (title, key) => [title, (one) => one[key]?.toFixed(2) ?? "–"];
  const bar = (title, i) => [title, ({ histogram }) =>
    make("span", { class: "bar", "--v": most && histogram[i] / most }, count(histogram[i]))];
  return table("Recall and ranks of the filtered queries", [
    ["Method", (one) => one.name], recall("R@1", "r1"), recall("R@5", "r5"), recall("R@10", "r10"),
    ...(found.some((one) => "judged_r1" in one) ? [recall("R@1 with judged", "judged_r1")] : []),
    ...[...about.bounds.map((bound, i, all) => (i ? `${all[i - 1] + 1}–${bound}` : "rank 1")), "more"].map(bar),
  ], found, "facts-table");
};

const rank = (name) => [name, (row) => {
  const [own, judged, first] = ["rank", "judged", "first"].map((kind) => row[`${kind}_${name}`]);
  return [make(own === 1 ? "b" : "span", {}, count(own), " ", first && mark(first)),
    judged && judged < own && make("small", {}, `judged ${judged}`)];
}, `rank_${name}`];

const showQueries = async (place, whole = false) => {
  const [{ rows, methods: recalls }, pager] = await listed("queries", 50, { whole });
  if (whole && document.activeElement === byId("word")) return; // A text that is not sent yet stays.
  const number = (title, key) => [title, (row) => row[key], key];
  const query = ({ row, text }) =>
    link({ view: "query", row }, { class: "open", title: text }, way() === "i2t" && small(row), make("span", { class: "says" }, text));
  place(filters(), summary(recalls), table("Queries", [
    [way() === "t2i" ? "Caption" : "Image", query, "row"], ...methods().map(rank),
    ["differ", (row) => `×${row.spread.toFixed(1)}`, "spread"], number("true items", "positives"), number("words", "words"),
    ...(rows.some((row) => "objects" in row) ? [number("objects", "objects")] : []),
  ], rows), pager, legend(),
  note("A rank is that of the first annotated item. The sign behind a rank tells what the method's first item is. ",
    keys("/", "words,", "↑↓", "rows,", "Enter", "open,", "[ ]", "pages,", "1 2 3", "views,", "w", "direction")));
  if (rows.some((row) => !(`first_${methods()[0]}` in row))) await showQueries(place, true); // Large files are read meanwhile.
};

// --- Showing the state ------------------------------------------------------------------------------

const VIEWS = { "": ["Queries", showQueries], unjudged: ["Not judged", showPairs], space: ["Space", showSpace] };
let turn = 0;

const show = async () => {
  const mine = (turn += 1);
  const view = Object.hasOwn(VIEWS, param("view")) ? param("view") : "";
  const [title, render] = param("view") === "query" ? ["Queries", showQuery] : VIEWS[view];
  const tab = ([name, [text]], i) => link({ view: name, page: null, row: null, why: null, sort: null, descending: null },
    { class: "tab", "data-key": i + 1, "aria-current": text === title && "page" }, text);
  byId("views").replaceChildren(...Object.entries(VIEWS).map(tab));
  byId("ways").replaceChildren(picks(WAYS.map(([key, text]) => [key, text, key !== way() && "w"]), way(), (key) =>
    go({ way: key, page: null, row: null, why: null, ...(param("view") === "query" && { view: null }) })));
  const place = (...parts) => mine === turn && byId("view").replaceChildren(...parts.flat().filter(Boolean));
  try {
    if (!about.methods) {
      say("Loading …");
      Object.assign(about, await ask("about"));
    }
    document.title = `${title} – ${about.dataset}`;
    byId("about").textContent = `${about.dataset}, ${about.split}: ${count(about.images)} images, ${count(about.captions)} captions, `
      + `${about.methods.length} methods`;
    await render(place);
    if (mine === turn) say("");
  } catch (error) {
    if (mine === turn) say(error.message);
  }
};

for (const change of ["popstate", "addresschange"]) addEventListener(change, show);
show();
