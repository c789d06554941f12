// Requests to the service that brought the page.

/** The JSON of an answer. An error is one line of text. */
export const json = async (address, options = {}) => {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error ?? `The service answers ${answer.status}.`);
  return content;
};

/** Values as the query of an address. "", null and undefined are left out; of a list each value is there. */
export const query = (values) => {
  const given = Object.entries(values).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return new URLSearchParams(given.filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
};

export const health = () => json("/health");

export const facts = (index, item) => json(`/items/${encodeURIComponent(item)}?${query({ index })}`);

export const upload = (file) => ({ method: "POST", body: file, headers: { "content-type": file.type || "image/unknown" } });

/** Why an item has its score for a text, or for a picture. */
export const explanation = (index, item, q, file) =>
  (file ? json(`/explain?${query({ index, item })}`, upload(file)) : json(`/explain?${query({ index, item, q })}`));

export const pictureOf = (index, item) => `/items/${encodeURIComponent(item)}/picture?${query({ index })}`;

export const thumbnailOf = (index, item) => `/items/${encodeURIComponent(item)}/thumbnail?${query({ index })}`;

/** Where one index answers the query of a state; that of a picture is sent as the body. */
const addressOf = (index, { q, like, k, where }, more = {}) => {
  const settings = query({ index, k, where, ...more });
  return like ? `/items/${encodeURIComponent(like)}/similar?${settings}` : `/search?${settings}&${query({ q })}`;
};

/** The answer of one index to the query of a state; `file` is the picture of a query by picture. */
export const search = (index, now, file, signal) =>
  json(addressOf(index, now), { ...(file && upload(file)), signal });

/** The answer as a CSV file, down to the cut-off. */
export const fileOf = (index, now) => addressOf(index, now, { least: now.least[index], export: "csv" });

/** Some items of an index, spread over the whole index. */
export const examples = (index) => json(`/items?${query({ index })}`);
