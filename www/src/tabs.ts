// The pattern "Tabs" of the ARIA Authoring Practices: one tab in the page's order, arrows move between them. The
// address names the open tab, so that it can be linked to.

const tabs = [...document.querySelectorAll<HTMLButtonElement>("[role=tab]")];
const panelOf = (tab: HTMLButtonElement) => document.getElementById(tab.getAttribute("aria-controls")!)!;
const watchers: ((name: string) => void)[] = [];

/** The name of the open tab. */
export let open = "";

/** Calls now and whenever another tab is opened. */
export function onTab(watcher: (name: string) => void): void {
  watchers.push(watcher);
  if (open) watcher(open);
}

/** Opens a tab by its name; the first where there is no such tab. */
export function show(name: string): void {
  const chosen = tabs.find((tab) => tab.dataset.tab === name) ?? tabs[0]!;
  for (const tab of tabs) {
    const selected = tab === chosen;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
    panelOf(tab).hidden = !selected;
  }
  open = chosen.dataset.tab!;
  const hash = chosen === tabs[0] ? "" : `#${open}`;
  if (location.hash !== hash) history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
  for (const watcher of watchers) watcher(open);
}

/** Makes the tabs work. */
export function startTabs(): void {
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(tab.dataset.tab!));
    tab.addEventListener("keydown", ({ key }) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 }[key];
      if (to === undefined) return;
      const next = tabs.at(to % tabs.length)!;
      show(next.dataset.tab!);
      next.focus();
    });
  }
  addEventListener("hashchange", () => show(location.hash.slice(1)));
  show(location.hash.slice(1));
}
