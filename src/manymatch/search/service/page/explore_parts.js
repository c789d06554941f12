// What the views of the explorer share: requests, marks, choices, tables, the pages of a list.

import { go, param, values, way } from "/page/address.js";
import { count, make, picture } from "/page/dom.js";
import { json, query } from "/page/service.js";

/** The sign and the meaning of each mark. */
export const MARKS = {
  own: ["✓", "own pair"], true: ["≈", "judged true"], wrong: ["✗", "not true"], unjudged: ["?", "not judged"],
};
/** The data set, its methods and its judgments; empty before the first answer. */
export const about = {};
export const methods = () => about.methods.map(({ name }) => name);

/** What the address of a query differs in. */
export const asQuery = (row, of = way()) => ({ view: "query", way: of, row, why: null, page: null, sort: null, descending: null });

const addressOf = (path, values) => `/explore/${path}?${query({ way: way(), ...values })}`;
export const ask = (path, values) => json(addressOf(path, values));
export const pictureOf = (row, small = true) => `/explore/images/${row}?${query({ small })}`;
export const small = (row, attributes) => picture([pictureOf(row)], attributes);
export const saved = (path, values, kinds = ["csv", "json"]) => kinds.map((kind) =>
  make("a", { href: addressOf(path, { ...values, export: kind }), download: "" }, kind.toUpperCase()));

export const mark = (name) =>
  make("span", { class: `mark ${name}`, role: "img", "aria-label": MARKS[name][1], title: MARKS[name][1] }, MARKS[name][0]);
export const legend = () =>
  make("p", { class: "facts" }, Object.keys(MARKS).map((name) => make("span", {}, mark(name), ` ${MARKS[name][1]}`)));

/** Buttons, one of which may be chosen. An option is its value, its text and its key. */
export const picks = (options, chosen, press) => make("span", { class: "pick" }, options.map(([value, text = value, key]) =>
  make("button", { type: "button", "aria-pressed": String(value === chosen), "data-key": key, onclick: () => press(value) }, text)));

/** A choice that the address holds, unless the choice is the usual one. */
export const choice = (label, name, options, usual = "") => make("label", {}, label, make("select", {
  onchange: ({ target }) => go({ [name]: target.value === usual ? null : target.value, page: null }),
}, options.map(([value, text = value]) => make("option", { value, selected: value === param(name, usual) }, text))));

export const field = (label, attributes, entered) => make("label", {}, label,
  make("input", { autocomplete: "off", ...attributes, onchange: ({ target }) => entered(target.value.trim()) }));

/** A table. A column is its title, what the cell of a row shows, and the column by which the title sorts. */
export const table = (label, columns, rows, kind = "") => {
  const [by, down] = [param("sort"), param("descending")];
  const sorter = (title, key) => make("button", {
    type: "button", onclick: () => go({ sort: key, descending: by === key && !down ? 1 : null, page: null }),
  }, title, by === key && (down ? " ↓" : " ↑"));
  const head = ([title, , key], i) => make("th", {
    scope: "col", class: !i && "first", "aria-sort": key && (by !== key ? "none" : down ? "descending" : "ascending"),
  }, key ? sorter(title, key) : title);
  const cells = (row) => columns.map(([, cell], i) => make(i ? "td" : "th", { scope: !i && "row", class: !i && "first" }, cell(row)));
  return make("div", { class: `sheet-table ${kind}`, tabindex: "0", role: "region", "aria-label": label }, make("table", { class: "rows" },
    make("thead", {}, make("tr", {}, columns.map(head))), make("tbody", {}, rows.map((row) => make("tr", {}, cells(row))))));
};

/** What lists read of the address, which may hold other names, such as those of a link in a letter. */
const CONDITIONS = ["word", "right", "wrong", "first", "cut", "k", "kind", "method", "sort", "descending"];

/** A page of a list by the conditions in the address, and the buttons to other pages and the links to files. Judged pairs
 * leave the list, so the pairs that follow them move to the present page. */
export const listed = async (path, size, more) => {
  const conditions = Object.entries(values()).filter(([name]) => CONDITIONS.includes(name));
  const [asked, at] = [{ ...Object.fromEntries(conditions), ...more }, Number(param("page", 0))];
  const found = await ask(path, { ...asked, page: at, size });
  const last = Math.ceil(found.total / size) - 1;
  const step = (label, key, text, to) => make("button", {
    type: "button", class: "plain", title: `${label} page (${key})`, "data-key": key, disabled: to < 0 || to > last,
    onclick: () => go({ page: (to > at && document.querySelector("[data-said]") ? at : to) || null }),
  }, text);
  const rows = `${count(at * size + 1)}–${count(Math.min(found.total, (at + 1) * size))} of ${count(found.total)}`;
  return [found, make("div", { class: "settings pager" }, step("Previous", "[", "←", at - 1), found.total ? rows : "none",
    step("Next", "]", "→", at + 1), make("span", { class: "end" }, "Save all as ", saved(path, asked)))];
};
