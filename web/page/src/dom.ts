// Creation of DOM elements without a framework.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

/** Creates an element: `on…` properties are listeners; `class`, `data-…`, `aria-…` and others are attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (name in element && !name.includes("-") && name !== "list") Object.assign(element, { [name]: value });
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children
      .filter((c): c is Node | string | number => c !== null && c !== undefined && c !== false)
      .map((c) => (typeof c === "number" ? String(c) : c)),
  );
  return element;
}

/** Replaces the children of an element. */
export function fill(element: HTMLElement, ...children: Child[]): void {
  element.replaceChildren();
  element.append(h("div", {}, ...children));
}

/** A button with a tooltip that names its key. */
export function button(label: string, title: string, onclick: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", title, onclick, ...props }, label);
}

/** A labelled select element. */
export function select(
  label: string,
  options: [value: string, text: string][],
  value: string,
  onchange: (value: string) => void,
): HTMLSelectElement {
  const element = h("select", { "aria-label": label, title: label, onchange: () => onchange(element.value) });
  for (const [v, text] of options) element.append(h("option", { value: v, selected: v === value }, text));
  return element;
}

/** Replaces the options of a select element if they differ, and keeps the selected one if it still exists. */
export function options(element: HTMLSelectElement, list: [value: string, text: string][]): void {
  const old = [...element.options];
  if (old.length === list.length && list.every(([v, text], i) => old[i].value === v && old[i].text === text)) return;
  const { value } = element;
  element.replaceChildren(...list.map(([v, text]) => h("option", { value: v }, text)));
  element.value = list.some(([v]) => v === value) ? value : (list[0]?.[0] ?? "");
}

/** A bar of tabs with their panels; arrow keys move between tabs. */
export class Tabs {
  readonly bar: HTMLElement;
  readonly body: HTMLElement;
  private tabs = new Map<string, { tab: HTMLButtonElement; panel: HTMLElement }>();
  current = "";

  constructor(label: string) {
    this.bar = h("div", {
      role: "tablist",
      "aria-label": label,
      class: "tabs",
      onkeydown: (e: KeyboardEvent) => this.key(e),
    });
    this.body = h("div", { class: "tab-body" });
  }

  add(name: string, title: string, panel: HTMLElement): void {
    const tab = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `panel-${name}`,
        onclick: () => this.show(name),
      },
      title,
    );
    panel.id = `panel-${name}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    panel.tabIndex = 0;
    this.bar.append(tab);
    this.body.append(panel);
    this.tabs.set(name, { tab, panel });
    if (!this.current) this.show(name);
    else this.show(this.current);
  }

  show(name: string): void {
    this.current = name;
    for (const [key, { tab, panel }] of this.tabs) {
      const on = key === name;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      panel.hidden = !on;
    }
  }

  /** The text next to a tab's title: a count. */
  badge(name: string, text: string): void {
    const tab = this.tabs.get(name)?.tab;
    if (!tab) return;
    tab.querySelector(".badge")?.remove();
    if (text) tab.append(h("span", { class: "badge" }, text));
  }

  private key(e: KeyboardEvent): void {
    const names = [...this.tabs.keys()];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = names[(names.indexOf(this.current) + step + names.length) % names.length];
    this.show(next);
    this.tabs.get(next)?.tab.focus();
    e.preventDefault();
  }
}

/** Debounces a function: calls it after a period without further calls. */
export function debounce(ms: number, f: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(f, ms);
  };
}
