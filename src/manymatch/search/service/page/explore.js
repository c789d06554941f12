// The explorer: the address holds the state, a view renders the state. This file has the queries.

import { byId, make, shape } from "/page/dom.js";
import { json } from "/page/service.js";
import { showPairs, showSpace } from "/page/explore_more.js";
import { showQuery } from "/page/explore_query.js";

export const MARKS = { own: ["✓", "own pair"], true: ["≈", "judged true"], wrong: ["✗", "not true"], unjudged: ["?", "not judged"] };
const WAYS = { t2i: "text → image", i2t: "image → text" };
const VIEWS = { queries: "Queries", unjudged: "Not judged", space: "Space" };
const SIZE = 50;
export let about = null;
export const renew = (facts) => { about = facts; };

// --- The address ------------------------------------------------------------------------------------

const given = () => new URLSearchParams(location.search);
export const param = (name, otherwise = "") => given().get(name) ?? otherwise;
export const way = () => (param("way") === "i2t" ? "i2t" : "t2i");

/** The address of the present state with some changes; null, "" and [] take a value out. */
const changed = (changes) => {
  const values = given();
  for (const [name, value] of Object.entries(changes)) {
    values.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== "") values.append(name, one);
  }
  const text = values.toString();
  return text ? `/explore?${text}` : "/explore";
};

export const go = (changes, replace = false) => {
  history[replace ? "replaceState" : "pushState"](null, "", changed(changes));
  show();
};

/** A link within the page. */
export const link = (changes, attributes, ...children) => make("a", {
  ...attributes, href: changed(changes),
  onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(changes);
  },
}, ...children);

// --- What all views share ---------------------------------------------------------------------------

export const asks = (path, values) => `/explore/${path}?${new URLSearchParams(Object.entries(values).flatMap(([name, value]) => [value].flat().filter((one) => one !== "").map((one) => [name, one])))}`;
export const pictureOf = (row, small = true) => `/explore/images/${row}${small ? "?small=true" : ""}`;
/** A picture. A file that the browser cannot show, such as HEIC, is replaced by its thumbnail. */
export const picture = (row, small = true, attributes = {}) => make("img", { src: pictureOf(row, small), alt: "", loading: "lazy", onerror: ({ target }) => {
  if (target.src.endsWith(pictureOf(row))) target.hidden = true;
  else target.src = pictureOf(row);
}, ...attributes });
export const mark = (name) => make("span", { class: `mark ${name}`, title: MARKS[name][1] }, MARKS[name][0], make("span", { class: "hidden" }, ` ${MARKS[name][1]}`));
export const legend = () => make("p", { class: "legend" }, Object.keys(MARKS).map((name) => make("span", {}, mark(name), ` ${MARKS[name][1]}`)));
export const note = (...children) => make("p", { class: "note" }, ...children);
export const count = (value) => value.toLocaleString("en");
export const methodNames = () => about.methods.map(({ name }) => name);
export const keys = (...parts) => parts.map((part, i) => (i % 2 ? ` ${part} ` : make("kbd", {}, part)));
export const saved = (path, values, kinds = ["csv", "json"]) => kinds.map((kind) => make("a", { href: asks(path, { ...values, export: kind }), download: "" }, kind.toUpperCase()));
export const form = (submit, ...children) => make("form", { class: "filter", onsubmit: (event) => { event.preventDefault(); submit(); } }, ...children);
export const select = (attributes, options, value, chosen) => make("select", { ...attributes, onchange: ({ target }) => chosen(target.value) },
  options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
/** A choice that the address holds, unless it is the usual one. */
export const choice = (label, name, options, usual = "") => make("label", {}, label, select({ name }, options, param(name, usual), (value) => go({ [name]: value === usual ? null : value, page: null })));

/** A table. A column is its title, what the cell of a row shows, and the column by which the title sorts. */
export const table = (label, columns, rows, kind = "") => {
  const [by, down] = [param("sort", "row"), param("descending") === "1"];
  const sorter = (title, key) => make("button", { type: "button", onclick: () => go({ sort: key === "row" ? null : key, descending: by === key && !down ? 1 : null, page: null }) }, title, by === key && (down ? " ↓" : " ↑"));
  const head = ([title, , key], i) => make("th", { scope: "col", class: !i && "first", "aria-sort": key && (by !== key ? "none" : down ? "descending" : "ascending") }, key ? sorter(title, key) : title);
  const cells = (row) => columns.map(([, cell], i) => make(i ? "td" : "th", i ? {} : { scope: "row", class: "first" }, cell(row)));
  return make("div", { class: `sheet-table ${kind}`, tabindex: "0", role: "region", "aria-label": label },
    make("table", { class: "rows" }, make("thead", {}, make("tr", {}, columns.map(head))), make("tbody", {}, rows.map((row) => make("tr", {}, cells(row))))));
};

/** Buttons to the other pages of a list, and links to its files. Judged pairs leave the list, so the pairs that follow them
 * move to the present page. */
export const pager = (total, size, path, values) => {
  const page = Number(param("page", "0"));
  const last = Math.max(0, Math.ceil(total / size) - 1);
  const step = (label, text, to) => make("button", { type: "button", class: "plain", "aria-label": label, title: label, disabled: to < 0 || to > last, onclick: () => go({ page: (to > page && document.querySelector("[data-said]") ? page : to) || null }) }, text);
  return make("div", { class: "pager" }, step("Previous page ([)", "←", page - 1),
    make("span", {}, total ? `${count(page * size + 1)}–${count(Math.min(total, (page + 1) * size))} of ${count(total)}` : "none"),
    step("Next page (])", "→", page + 1), make("span", { class: "end" }, "Save all as ", saved(path, values)));
};

// --- The queries ------------------------------------------------------------------------------------

const filters = () => ({
  way: way(), word: param("word"), cut: param("cut", "1"), right: given().getAll("right"), wrong: given().getAll("wrong"),
  first: given().getAll("first"), sort: param("sort", "row"), descending: param("descending") === "1",
});

const filterForm = () => {
  const names = methodNames().map((name) => [name, name]);
  const [, kind, method] = /^([^:]*):?(.*)$/.exec(param("first"));
  const first = (mark, name) => go({ first: mark && `${mark}:${name || names[0][0]}`, page: null });
  const marks = [["", "anything"], ...Object.entries(MARKS).map(([name, [, text]]) => [name, text])];
  return form(() => { go({ word: byId("word").value.trim(), page: null }); byId("word").blur(); },
    make("label", {}, "Words", make("input", { id: "word", type: "search", value: param("word"), maxlength: 200, placeholder: "two dogs", autocomplete: "off" })),
    choice("Right", "right", [["", "any"], ...names]), choice("wrong", "wrong", [["", "any"], ...names]),
    choice("within", "cut", [["1", "rank 1"], ["5", "ranks 1–5"], ["10", "ranks 1–10"]], "1"),
    make("fieldset", {}, make("label", {}, "First item of", select({}, names, method, (name) => first(kind, name))), make("label", {}, "is", select({}, marks, kind, (mark) => first(mark, method)))),
    link({ word: null, right: null, wrong: null, first: null, cut: null, sort: null, descending: null, page: null }, {}, "Reset"));
};

const ranges = () => [...about.bounds, Infinity].map((bound, i) => [i ? about.bounds[i - 1] + 1 : 1, bound]);

/** The histogram of a method's ranks: one bar for each range. */
const bars = (counts, most) => {
  const names = ranges().map(([low, high]) => (low === high ? low : high === Infinity ? `${low} and more` : `${low}–${high}`));
  const label = counts.map((number, i) => `rank ${names[i]}: ${count(number)}`).join("\n");
  return make("span", { title: label }, shape("svg", { class: "bars", viewBox: "0 0 70 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    counts.map((number, i) => {
      const height = most ? (19 * number) / most + (number > 0) : 0;
      return shape("rect", { x: 10 * i + 0.5, y: 20 - height, width: 9, height, class: i === counts.length - 1 ? "far" : "near" });
    })));
};

const summary = (methods) => {
  const most = Math.max(...methods.flatMap((one) => one.histogram));
  const recall = (title, key) => [title, (one) => one[key]?.toFixed(2) ?? "–"];
  const axis = make("span", { class: "axis" }, ranges().map(([, high], i) => make("span", {}, high === Infinity ? "more" : i ? `–${high}` : "rank 1")));
  return table("Recall of the filtered queries", [["Method", (one) => one.name], recall("R@1", "r1"), recall("R@5", "r5"), recall("R@10", "r10"),
    ...(methods.some((one) => "judged_r1" in one) ? [recall("R@1 with judged", "judged_r1")] : []), [axis, (one) => bars(one.histogram, most)]], methods, "facts-table");
};

const rank = (name) => (row) => {
  const [own, judged, first] = ["rank", "judged", "first"].map((kind) => row[`${kind}_${name}`]);
  return [make("span", { class: own === 1 && "one-true" }, count(own), " ", first && mark(first)), judged && judged < own && make("small", {}, `judged ${judged}`)];
};

const showQueries = async (place, whole = false) => {
  const asked = filters();
  const found = await json(asks("queries", { ...asked, page: param("page", "0"), size: SIZE, whole }));
  if (whole && document.activeElement?.id === "word") return; // A text that is not sent yet stays.
  const number = (title, key) => [title, (row) => row[key], key];
  const columns = [
    [asked.way === "t2i" ? "Caption" : "Image", (row) => link({ view: "query", row: row.row }, { class: "open", title: row.text }, asked.way === "i2t" && picture(row.row), make("span", {}, row.text)), "row"],
    ...methodNames().map((name) => [name, rank(name), `rank_${name}`]),
    ["differ", (row) => `×${row.spread.toFixed(1)}`, "spread"], number("true items", "positives"), number("words", "words"),
    ...(found.rows.some((row) => "objects" in row) ? [number("objects", "objects")] : [])];
  place(filterForm(), summary(found.methods), table("Queries", columns, found.rows), pager(found.total, SIZE, "queries", asked), legend(),
    note("A rank is that of the first annotated item. The sign behind a rank tells what the method's first item is. ",
      keys("/", "words,", "↑↓", "rows,", "Enter", "open,", "[ ]", "pages,", "1 2 3", "views,", "w", "direction")));
  if (found.rows.some((row) => !(`first_${methodNames()[0]}` in row))) await showQueries(place, true); // The first answer does not wait for large files.
};

// --- Showing the state ------------------------------------------------------------------------------

const RENDER = { queries: showQueries, query: showQuery, unjudged: showPairs, space: showSpace };
let turn = 0;

export const show = async () => {
  const mine = (turn += 1);
  const view = RENDER[param("view")] ? param("view") : "queries";
  byId("views").replaceChildren(...Object.entries(VIEWS).map(([key, text]) =>
    link({ view: key === "queries" ? null : key, page: null, row: null, sort: null }, { class: "tab", "aria-current": (key === view || (key === "queries" && view === "query")) && "page" }, text)));
  byId("ways").replaceChildren(make("span", { class: "pick" }, Object.entries(WAYS).map(([key, text]) =>
    make("button", { type: "button", "aria-pressed": String(key === way()), onclick: () => turnTo(key) }, text))));
  document.title = `${VIEWS[view] ?? "One query"} – ${about?.dataset ?? "ManyMatch"}`;
  const place = (...parts) => { if (mine === turn) byId("view").replaceChildren(...parts.flat().filter(Boolean)); };
  try {
    about ??= await json("/explore/about");
    byId("about").textContent = `${about.dataset}, ${about.split}: ${count(about.images)} images, ${count(about.captions)} captions, ${about.methods.length} methods`;
    say("");
    await RENDER[view](place);
  } catch (error) {
    if (mine === turn) say(error.message);
  }
};
const turnTo = (key) => go({ way: key === "t2i" ? null : key, page: null, ...(param("view") === "query" ? { view: null, row: null } : {}) });
export const say = (text) => {
  byId("status").textContent = text;
  byId("status").classList.toggle("hidden", !text);
};

addEventListener("popstate", show);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, select")) {
    if (event.key === "Escape") event.target.blur?.();
    return;
  }
  const rows = [...document.querySelectorAll(".open")];
  const press = (label) => document.querySelector(`.pager [aria-label^="${label}"]:not(:disabled)`)?.click();
  const actions = {
    "/": () => byId("word")?.focus(), "[": () => press("Previous"), "]": () => press("Next"), w: () => turnTo(way() === "t2i" ? "i2t" : "t2i"),
    1: () => go({ view: null, page: null, row: null }), 2: () => go({ view: "unjudged", page: null }), 3: () => go({ view: "space", page: null }),
    Escape: () => param("view") === "query" && go({ view: null, row: null, why: null }),
    ArrowDown: () => rows[Math.min(rows.length - 1, rows.indexOf(document.activeElement) + 1)]?.focus(),
    ArrowUp: () => rows[Math.max(0, rows.indexOf(document.activeElement) - 1)]?.focus(),
  };
  if (!actions[event.key] || (event.key.startsWith("Arrow") && !rows.length)) return;
  event.preventDefault();
  actions[event.key]();
});
show();
