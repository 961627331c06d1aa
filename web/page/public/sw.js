// Caches the page's files, so that the page opens without a network. The page sends the list of files when it has started.

const CACHE = "wavesim-playground";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("message", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(CACHE);
      const wanted = new Set(event.data);
      for (const request of await cache.keys()) if (!wanted.has(request.url)) await cache.delete(request);
      const missing = [];
      for (const url of wanted) if (url.endsWith("/") || !(await cache.match(url))) missing.push(url);
      await cache.addAll(missing);
      event.ports[0]?.postMessage("kept");
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || new URL(event.request.url).origin !== self.location.origin) return;
  // Network first: a new version of the page takes effect at once.
  event.respondWith(
    fetch(event.request).catch(
      async () => (await caches.match(event.request, { ignoreSearch: true })) ?? Response.error(),
    ),
  );
});
