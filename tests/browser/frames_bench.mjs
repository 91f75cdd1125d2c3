// How long a frame takes while one scrolls through 10,000 lines, beside a page with an empty conversation.
//
//   node frames_bench.mjs [SECONDS]       one line of JSON; the ratio of the medians and of the 95th percentiles
//
// Both pages are scrolled by the same steps in every frame, some 7,000 pixels a second; what is measured is the time from
// one frame to the next.
import { bubble, closeBrowser, newContext, openPanel, Server } from "./support.mjs";

const SECONDS = Number(process.argv[2] ?? 5);
const LINES = 10_000;

function quantile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** Scrolls up for so long; the pauses between frames, in milliseconds. */
function measure(page) {
  return page.evaluate((seconds) => new Promise((done) => {
    const log = document.querySelector(".log");
    const pauses = [];
    const begin = performance.now();
    let before = begin;
    const frame = (now) => {
      pauses.push(now - before);
      before = now;
      log.scrollTop -= 120;
      if (now - begin < seconds * 1000) requestAnimationFrame(frame);
      else done(pauses.slice(5));
    };
    requestAnimationFrame(frame);
  }), SECONDS);
}

function summary(pauses) {
  const sorted = [...pauses].sort((a, b) => a - b);
  const round = (value) => Math.round(value * 100) / 100;
  return { frames: sorted.length, p50: round(quantile(sorted, 0.5)), p95: round(quantile(sorted, 0.95)), p99: round(quantile(sorted, 0.99)), max: round(sorted.at(-1)) };
}

const server = await Server.start();
const full = await server.session("full");
const empty = await server.session("empty");
await server.batch(full, Array.from({ length: LINES }, (_, index) => `line **${index + 1}** ${"some words ".repeat(index % 20)}`), "full");
const context = await newContext();
const page = await openPanel(context, server, empty);
await page.locator(".log").waitFor();
const quiet = summary(await measure(page));
const long = await openPanel(context, server, full);
await bubble(long, LINES).waitFor();
const scrolled = summary(await measure(long));
const reached = await long.$eval("[data-seq]", (each) => Number(each.dataset.seq));
const nodes = await long.locator(".message").count();
const ratio = (name) => Math.round((scrolled[name] / quiet[name]) * 100) / 100;
console.log(JSON.stringify({ lines: LINES, empty: quiet, full: scrolled, ratioP50: ratio("p50"), ratioP95: ratio("p95"), reached, nodes }));
await closeBrowser();
await server.remove();
