// The address holds the whole state of the page: the query, the indexes, the cut-offs, the open item.

export const SHOWN = 60;

/** The state that the address describes. */
export const state = () => {
  const given = new URLSearchParams(location.search);
  const least = {};
  for (const [name, value] of given) {
    if (name.startsWith("least.") && Number.isFinite(Number(value))) least[name.slice(6)] = Number(value);
  }
  return {
    q: given.get("q") ?? "",
    like: given.get("like"),
    picture: given.get("picture"),
    indexes: given.getAll("index"),
    where: given.get("where") ?? "",
    k: Math.min(1000, Math.max(1, Math.round(Number(given.get("k"))) || SHOWN)),
    least,
    item: given.get("item"),
    of: given.get("of"),
  };
};

/** The address of a state. */
export const addressOf = (wanted) => {
  const given = new URLSearchParams();
  for (const name of ["q", "like", "picture"]) if (wanted[name]) given.set(name, wanted[name]);
  for (const name of wanted.indexes) given.append("index", name);
  if (wanted.where) given.set("where", wanted.where);
  if (wanted.k !== SHOWN) given.set("k", wanted.k);
  for (const [name, value] of Object.entries(wanted.least)) given.set(`least.${name}`, value);
  for (const name of ["item", "of"]) if (wanted[name]) given.set(name, wanted[name]);
  const text = given.toString();
  return text ? `/?${text}` : "/";
};

/** The address of the present state with some changes. */
export const changed = (changes) => addressOf({ ...state(), ...changes });

/** Go to the present state with some changes. `replace`: the back button skips the state before. */
export const go = (changes, { replace = false } = {}) => {
  const address = changed(changes);
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new Event("addresschange"));
};
