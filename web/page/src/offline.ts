// The page without a network.

import { MODULE } from "./engine";

/** Caches the page for use without a network. */
export async function keep(): Promise<void> {
  const registration = await navigator.serviceWorker.register("sw.js");
  await navigator.serviceWorker.ready;
  const files = performance.getEntriesByType("resource").map((entry) => entry.name);
  const page = location.origin + location.pathname;
  const worker = registration.active ?? registration.waiting ?? registration.installing;
  const channel = new MessageChannel();
  channel.port1.onmessage = () => document.body.classList.add("kept");
  const own = files.filter((url) => url.startsWith(location.origin) && !url.endsWith("sw.js"));
  // The module is loaded by a worker and therefore missing in the list.
  worker?.postMessage([...new Set([page, MODULE, ...own])], [channel.port2]);
}
