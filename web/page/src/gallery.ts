// The gallery of examples: a dialog.

import { h } from "./dom";
import { EXAMPLES, GROUPS, type Example } from "./examples";

export function galleryDialog(open: (example: Example) => void): HTMLDialogElement {
  const card = (e: Example) =>
    h(
      "button",
      { type: "button", class: "example", "data-example": e.id, onclick: () => open(e) },
      h("b", {}, e.title),
      h("span", {}, e.about),
    );
  return h(
    "dialog",
    { class: "gallery", "aria-label": "Examples" },
    h("h2", {}, "Examples"),
    ...GROUPS.flatMap((group) => [
      h("h3", {}, group),
      h("div", { class: "cards" }, ...EXAMPLES.filter((e) => e.group === group).map(card)),
    ]),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
}
