import { announce, byId } from "./dom.js";

/** Makes the button beside the code copy it. */
export function startCopy(): void {
  const button = byId<HTMLButtonElement>("copy");
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(byId("code").textContent!);
      button.textContent = "Copied";
      announce("Copied.");
    } catch {
      getSelection()?.selectAllChildren(byId("code"));
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2500);
  };
}
