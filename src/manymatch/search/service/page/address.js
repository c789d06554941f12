// The address holds the whole state of a page: the query, the indexes, the cut-offs, the open item; filters and the view.

import { make } from "/page/dom.js";
import { query } from "/page/service.js";

export const SHOWN = 60;

const given = () => new URLSearchParams(location.search);

export const param = (name, otherwise = "") => given().get(name) ?? otherwise;

/** All values of each name. */
export const values = () => Object.fromEntries([...given().keys()].map((name) => [name, given().getAll(name)]));

/** The direction in which the explorer asks. */
export const way = () => param("way", "t2i");

/** The state of a search. */
export const state = () => {
  const least = {};
  for (const [name, value] of given()) {
    if (name.startsWith("least.") && Number.isFinite(Number(value))) least[name.slice(6)] = Number(value);
  }
  return {
    q: param("q"),
    like: param("like", null),
    picture: param("picture", null),
    indexes: given().getAll("index"),
    where: param("where"),
    k: Math.min(1000, Math.max(1, Math.round(Number(param("k"))) || SHOWN)),
    least,
    item: param("item", null),
    of: param("of", null),
  };
};

/** What a new search takes out of the address. */
export const cleared = () => ({
  q: null, like: null, picture: null, item: null, of: null,
  ...Object.fromEntries(Object.keys(state().least).map((name) => [`least.${name}`, null])),
});

/** The address of the page with some changes; null, "" and [] take a value out. */
export const changed = (changes) => {
  const text = query({ ...values(), ...changes });
  return text ? `${location.pathname}?${text}` : location.pathname;
};

/** Go to the address with some changes. `replace`: the back button skips the state before. */
export const go = (changes, { replace = false } = {}) => {
  const address = changed(changes);
  if (address !== location.pathname + location.search) history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("addresschange"));
};

/** A link to the address with some changes, which leaves the page as it is. */
export const link = (changes, attributes, ...children) => make("a", {
  ...attributes,
  href: changed(changes),
  onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(changes);
  },
}, ...children);
