// What every page has around its parts: the links at the top, the skip link, light and dark, and paper.
import { fill, h } from "./element.js";
import { drawAll } from "./figure.js";
import { toPart } from "./route.js";
import { themeButton } from "./theme.js";

/** Fills the bar for the sections of `home`; `short` has names for those whose heading is long. */
export function frame(home, short, main, show) {
  const links = [...home.querySelectorAll("section")].map((part) =>
    h("a", { href: toPart(part.id) }, short[part.id] ?? part.querySelector("h2").textContent),
  );
  fill(document.getElementById("navigation"), links);
  document.getElementById("tools").append(themeButton());
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    arrive(main.querySelector("h1"));
  });
  addEventListener("hashchange", show);
  addEventListener("beforeprint", drawAll);
  matchMedia("print").addEventListener("change", ({ matches }) => matches && drawAll());
  show();
}

/** Brings the reader, and the keyboard, to a place. */
export function arrive(place) {
  place.focus({ preventScroll: true });
  // What stands above a page's title belongs to it, and nothing above it may hide it.
  if (place.matches("h1")) scrollTo(0, 0);
  else place.scrollIntoView({ block: place.matches("a") ? "center" : "start" });
}
