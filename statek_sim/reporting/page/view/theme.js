// Light or dark: as the system says, until the reader says otherwise.
import { h } from "./element.js";

const SYSTEM_DARK = matchMedia("(prefers-color-scheme: dark)");
const KEY = "statek-report-theme";

/** Returns the button that changes between light and dark. */
export function themeButton() {
  const button = h("button", {
    type: "button",
    class: "quiet",
    on: { click: () => choose(dark() ? "light" : "dark") },
  });
  const label = () => (button.textContent = dark() ? "Light colours" : "Dark colours");
  const choose = (theme) => {
    document.documentElement.dataset.theme = theme;
    remember(theme);
    label();
  };
  const before = remembered();
  if (before === "light" || before === "dark") document.documentElement.dataset.theme = before;
  SYSTEM_DARK.addEventListener("change", label);
  label();
  return button;
}

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : SYSTEM_DARK.matches;
}

// A browser may refuse storage to a file that was opened from a disk: the choice then lasts as long as the page.
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
}
