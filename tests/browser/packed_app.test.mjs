// An app that html_to_app has packed: one file, opened from a disk in a browser without a network.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { closeBrowser, newContext, ROOT, watch } from "./support.mjs";

after(closeBrowser);

const COUNTER = {
  app_name: "Counter",
  html: `<!doctype html><html><head><link rel="stylesheet" href="style.css"><script src="count.js" defer></script></head>
    <body><button>Count</button><output>0</output><img src="dot.png" alt="dot"><p id="trick"></p></body></html>`,
  files: {
    "style.css": "output { color: rgb(1, 2, 3); } body { background: url(dot.png); }",
    // It needs the whole page, and has in a string what would end it.
    "count.js": `const shown = document.querySelector("output");
      document.querySelector("button").addEventListener("click", () => { shown.textContent = Number(shown.textContent) + 1; });
      document.querySelector("#trick").textContent = "</script><script>window.tricked = true</script> <!-- <script> /* it's */";`,
    "dot.png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  },
};

/** Runs the plugin as Belfry does. */
function pack(args, outputDir) {
  return new Promise((done, fail) => {
    const folder = join(ROOT, "plugins/html_to_app");
    const child = spawn(join(folder, "handler"), { cwd: folder, env: { PATH: process.env.PATH, HOME: outputDir, LANG: "C.UTF-8" } });
    let said = "";
    child.stdout.on("data", (piece) => { said += piece; });
    child.once("error", fail);
    child.once("close", () => done(JSON.parse(said.trim().split("\n").at(-1))));
    child.stdin.end(`${JSON.stringify({ args, context: { runId: "r1", stepIndex: 0, timeoutMs: 60_000, outputDir } })}\n`);
  });
}

/** Packs an app, opens the one file that this gives, and looks at the page. */
async function withApp(args, work) {
  const folder = await mkdtemp(join(tmpdir(), "belfry-app-"));
  const context = await newContext({ offline: true });
  try {
    const { success, data } = await pack(args, folder);
    assert.ok(success);
    assert.deepEqual(await readdir(folder), [data.files[0].name]);
    const page = await context.newPage();
    page.seen = watch(page, "file:");
    await page.goto(pathToFileURL(join(folder, data.files[0].name)).href);
    await work(page);
  } finally {
    await context.close();
    await rm(folder, { recursive: true, force: true });
  }
}

// F12
test("a packed app runs from its one file: styles, pictures, and a button that counts", () => withApp(COUNTER, async (page) => {
  assert.equal(await page.title(), "Counter");
  for (const expected of ["1", "2", "3"]) {
    await page.getByRole("button", { name: "Count" }).click();
    assert.equal(await page.locator("output").textContent(), expected);
  }
  assert.equal(await page.locator("output").evaluate((element) => getComputedStyle(element).color), "rgb(1, 2, 3)");
  assert.equal(await page.locator("img").evaluate((element) => element.naturalWidth), 1);
  assert.equal(await page.locator("#trick").textContent(), "</script><script>window.tricked = true</script> <!-- <script> /* it's */");
  assert.equal(await page.evaluate(() => window.tricked), undefined);
  assert.deepEqual(page.seen, { errors: [], strays: [], dialogs: [] });
}));

// F12
test("a packed app asks nobody, even if there is a network", async () => {
  const heard = [];
  const server = createServer((request, answer) => { heard.push(request.url); answer.end("{}"); });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}`;
  const script = `(async () => {
    const outcomes = [];
    await fetch("${url}/fetch", { mode: "no-cors" }).then(() => outcomes.push("fetched"), () => outcomes.push("refused"));
    const image = new Image();
    image.src = "${url}/image";
    await new Promise((done) => { image.onload = image.onerror = done; });
    navigator.sendBeacon("${url}/beacon", "x");
    document.body.dataset.outcomes = outcomes;
  })();`;
  const folder = await mkdtemp(join(tmpdir(), "belfry-app-"));
  const context = await newContext();
  try {
    for (const [allow_network, outcome] of [[false, "refused"], [true, "fetched"]]) {
      const { data } = await pack({ app_name: "Caller", html: '<body><script src="a.js"></script></body>', files: { "a.js": script }, allow_network }, folder);
      const page = await context.newPage();
      await page.goto(pathToFileURL(join(folder, data.files[0].name)).href);
      assert.equal(await page.waitForFunction(() => document.body.dataset.outcomes).then((found) => found.jsonValue()), outcome);
      assert.equal(heard.length > 0, allow_network, heard.join());
    }
  } finally {
    await context.close();
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
