// Elements made from plain values. Texts become text nodes, never markup.

/** Returns an element: `on` holds listeners, other attributes are set as they are; false and null leave one out. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  const { on = {}, ...plain } = attributes;
  for (const [key, value] of Object.entries(plain)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(key, String(value));
  }
  for (const [type, listener] of Object.entries(on)) element.addEventListener(type, listener);
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  const kept = children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
  return kept.map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** Returns a part of the page with a heading, which the heading names. */
export function section(id, title, ...children) {
  const heading = h("h2", { id: `${id}-title`, tabindex: -1 }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** Returns a block that opens on demand; what it holds is made when it is opened first. */
export function onDemand(label, make) {
  const block = h("details", {}, h("summary", {}, label));
  block.addEventListener("toggle", () => block.childElementCount === 1 && block.append(...nodes([make()])));
  return block;
}
