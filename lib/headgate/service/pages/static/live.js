// Keeps the page as the tables are, without a reload: asks for the same address, and takes over what differs in <main>.
// Nodes stay, so focus, scroll positions, open details and what was typed stay as well.
"use strict";
const POLL_MS = 1000, AWAY_MS = 3000, LONGEST_MS = 120000;
const IDLE = 5, IDLEST_MS = 60000; // nothing is asked for 5 times as long as the answer took: what costs much is made less often
const live = document.getElementById("live");
let etag = document.querySelector("main").dataset.etag, seen = new Date();

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || "" : "";
}

function morph(old, next) {
  for (const { name } of [...old.attributes]) if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const keyed = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let place = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let node = key ? keyed.get(key) : place;
    if (!node || node.nodeName !== wanted.nodeName || keyOf(node) !== key) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (node === place) place = place.nextSibling;
    else old.insertBefore(node, place);
    if (node.nodeType === Node.ELEMENT_NODE) morph(node, wanted);
    else if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function show(page) {
  const focused = document.activeElement;
  morph(document.querySelector("main"), page.querySelector("main"));
  document.title = page.title;
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function say(text, state) {
  if (live.textContent !== text) live.textContent = text;
  live.dataset.state = state;
}

async function poll() {
  const began = performance.now();
  try {
    const headers = etag ? { "If-None-Match": etag } : {};
    const answer = await fetch(location.href, { headers: { Accept: "text/html", ...headers }, cache: "no-store", signal: AbortSignal.timeout(LONGEST_MS) });
    if (answer.status !== 304) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!page.querySelector("main[data-view]")) throw new Error(`${answer.status}`);
      show(page);
      etag = page.querySelector("main").dataset.etag;
    }
    seen = new Date();
    say("Live", "here");
  } catch {
    say(`Server away, last seen ${seen.toISOString().slice(11, 19)} UTC, trying again`, "away");
  }
  const idle_ms = Math.min(Math.max(POLL_MS, IDLE * (performance.now() - began)), IDLEST_MS);
  setTimeout(poll, live.dataset.state === "away" ? AWAY_MS : idle_ms);
}

say("Live", "here");
setTimeout(poll, POLL_MS);
