const names = { todo: "To do", doing: "Doing", done: "Done" };

const button = (text, label, action) => {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.title = label;
  element.addEventListener("click", action);
  return element;
};

/** Returns the element of a card; `update(row)` shows another state of it. */
export const card = (row, lanes, attempt, change) => {
  const item = document.createElement("li");
  item.className = "card";
  item.dataset.id = row.id;
  const place = lanes.indexOf(row.lane);

  const title = document.createElement("input");
  title.maxLength = 200;
  title.setAttribute("aria-label", "Title");
  title.addEventListener("change", () => attempt(() =>
    change("update", { id: row.id, title: title.value.trim() || row.title })));

  const move = (step, text) => {
    const lane = lanes[place + step];
    if (!lane) return [];
    return [button(text, `Move to ${names[lane]}`, () => attempt(() =>
      change("update", { id: row.id, lane })))];
  };
  const remove = button("✕", "Delete", () => attempt(() => change("delete", { id: row.id })));

  item.append(...move(-1, "←"), title, ...move(1, "→"), remove);
  item.update = (next) => {
    row = next;
    if (document.activeElement !== title) title.value = next.title;
  };
  return item;
};
