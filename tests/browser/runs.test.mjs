// Runs: each is a card among the lines, from its beginning to its end; what is held stands in the drawer. With real plugins.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { assertAccessible, bubble, closeBrowser, interpose, openPanel, pluginFolder, until, withServer } from "./support.mjs";

after(closeBrowser);

const WIDE = { viewport: { width: 1440, height: 900 } };
const NARROW = { viewport: { width: 360, height: 740 } };
const EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>";

const HANDLERS = {
  echo: `say({"success": True, "data": {"text": args.get("text", "")}})`,
  // Works until the test opens its gate: a file.
  gated: `
say({"progress": {"text": "half of <b>it</b>", "percent": 50}})
while not os.path.exists(args["text"]):
    time.sleep(0.02)
say({"success": True, "data": {"text": "the gate is open"}})`,
  unlucky: `say({"success": False, "error": {"code": "no_luck", "message": "no luck today ${EVIL}"}})`,
  painter: `
with open(os.path.join(out, "red square.png"), "wb") as file:
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\\0" + b"\\xa3\\x29\\x1f" * 480 for _ in range(360))
    file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 480, 360, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
with open(os.path.join(out, "notes.bin"), "wb") as file:
    file.write(b"x" * 1234)
say({"success": True, "data": {"text": "A red square", "files": [
    {"name": "red square.png", "mimeType": "image/png", "bytes": 100}, {"name": "notes.bin", "mimeType": "application/octet-stream", "bytes": 1234}]}})`,
};

/** A test with a server that has the plugins, and a gate that `gated` waits for until it is opened. */
function withPlugins(work, { flags = [], context = WIDE } = {}) {
  return async () => {
    const folder = await pluginFolder(HANDLERS);
    const gates = await mkdtemp(join(tmpdir(), "belfry-gates-"));
    const gate = { path: join(gates, "gate"), open: () => writeFile(join(gates, "gate"), "") };
    try {
      await withServer((server, browser) => work(server, browser, gate), { flags: ["--plugins", folder, ...flags], context })();
    } finally {
      await rm(folder, { recursive: true, force: true });
      await rm(gates, { recursive: true, force: true });
    }
  };
}

function card(page, id) {
  return page.locator(`[data-run="${id}"]`);
}

function step(page, id, index = 0) {
  return card(page, id).locator(`[data-step="${index}"]`);
}

async function ended(page, id, state) {
  await page.locator(`[data-run="${id}"][data-state="${state}"]`).waitFor();
}

/** What stands in the conversation from top to bottom: numbers of lines, and ids of runs. */
function shown(page) {
  return page.$$eval("[data-seq], [data-run]", (all) => all.map((each) => each.dataset.run ?? Number(each.dataset.seq)));
}

async function toolLines(server, session) {
  return (await server.lines(session)).filter((line) => line.source === "tool");
}

async function overflows(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll(".log, .drawer-body")].some((each) => each.scrollWidth > each.clientWidth));
}

// F2, F3, F8
test("a run with a time is a card that works at once, is held when it is done, and tells at its time", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await page.getByText("Nothing is planned here.").waitFor();
  const id = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 5 seconds" }]]);

  await step(page, id).getByText("working", { exact: true }).waitFor();
  await card(page, id).getByRole("button", { name: "gated", expanded: true }).waitFor();
  await step(page, id).getByText(/result at \d\d:\d\d · in 0:0[1-5]/).waitFor();
  await step(page, id).getByText("half of <b>it</b>").waitFor();
  assert.equal(await step(page, id).locator("progress").evaluate((bar) => bar.value), 50);
  await page.locator(".coming-run").getByText("still working").waitFor();
  const ticks = new Set();
  await until("the time goes on", async () => ticks.add(await step(page, id).locator(".run-time").innerText()).size >= 2);

  await gate.open();
  await page.locator('.run-step[data-state="held"]').getByText("ready, held").waitFor();
  assert.equal(await step(page, id).locator("progress").count(), 0);
  await page.locator(".coming-run").getByText("result is ready and held").waitFor();
  assert.equal((await server.lines(session)).length, 0, "what is held is not told");
  assert.equal(await card(page, id).getByRole("status").innerText(), "gated: ready, held");

  await ended(page, id, "completed");
  await bubble(page, 1).getByText("the gate is open").waitFor();
  await bubble(page, 1).getByText("tool: gated").waitFor();
  const run = await server.ok("GET", `/v1/runs/${id}`);
  const [line] = await toolLines(server, session);
  assert.ok(Date.parse(line.saidAt) >= Date.parse(run.steps[0].feedbackAt), "not before its time");
  assert.deepEqual(await shown(page), [id, 1]);
  await until("it is not coming any more", async () => (await page.locator(".coming-run").count()) === 0);
  assert.equal(await step(page, id).count(), 0, "one line when it has ended");
  assert.match(await card(page, id).getByRole("button").innerText(), /gated\s+done · \d\d:\d\d/);
}));

// F4
test("one that is late is in progress, which is said, and then its result", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const id = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 2 seconds" }]]);

  await page.locator('.run-step[data-state="late"]').getByText("in progress").waitFor();
  await bubble(page, 1).getByText("tool: gated").waitFor();
  assert.equal(await step(page, id).locator(".run-due").count(), 0);
  await gate.open();
  await bubble(page, 2).getByText("the gate is open").waitFor();
  await ended(page, id, "completed");
  assert.deepEqual(await shown(page), [id, 1, 2]);
}));

// F5, F9
test("an error is there at once with its message, as text, and what depends on it is skipped", withPlugins(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const id = await server.startRun(session, [["local__unlucky", { schedule: "in 1 hour" }], ["local__echo", { text: "never" }, [0]], ["local__echo", { text: EVIL }]], { title: `Plan ${EVIL}` });

  await ended(page, id, "failed");
  await page.locator("[data-seq]", { hasText: "no luck today" }).waitFor();
  await card(page, id).getByRole("button").press("Enter");
  await step(page, id, 0).getByText(`no luck today ${EVIL}`).waitFor();
  assert.deepEqual(await card(page, id).locator(".run-step").evaluateAll((all) => all.map((each) => each.dataset.state)), ["failed", "skipped", "reported"]);
  await card(page, id).getByRole("button", { name: "Details" }).click();
  const given = card(page, id).getByRole("region", { name: "echo Result" });
  await given.waitFor();
  assert.deepEqual(JSON.parse(await given.innerText()), { text: EVIL });
  assert.equal(await page.locator(".run img, .run script, .run b, .bubble img, .bubble script").count(), 0);
  assert.ok((await card(page, id).innerText()).startsWith(`Plan ${EVIL}`));
}));

// F8
test("a run is cancelled in its card or in the drawer, if one really wants to", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const first = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 1 hour" }]], { title: "first" });
  const second = await server.startRun(session, [["local__echo", { text: "held", schedule: "in 1 hour" }]], { title: "second" });

  const cancel = card(page, first).getByRole("button", { name: "Cancel" });
  await cancel.click();
  await card(page, first).getByText("Cancel this run?").waitFor();
  await page.keyboard.press("Escape");
  assert.ok(await cancel.evaluate((button) => button === document.activeElement), "the focus is where it was");
  await cancel.press("Enter");
  await page.keyboard.press("Enter");
  await ended(page, first, "cancelled");
  assert.equal((await server.ok("GET", `/v1/runs/${first}`)).state, "cancelled");
  assert.ok(await card(page, first).getByRole("button").evaluate((button) => button === document.activeElement), "the focus is not lost");

  const item = page.locator(".coming-run", { hasText: "second" });
  await item.getByText("result is ready and held").waitFor();
  await item.getByRole("button", { name: "Cancel" }).click();
  await item.getByRole("button", { name: "Yes, cancel it" }).click();
  await ended(page, second, "cancelled");
  await page.getByText("Nothing is planned here.").waitFor();
  assert.deepEqual(await server.lines(session), []);
}));

// F8
test("a page that is loaded again and a second one show the same, at the same place", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  const say = (text) => server.say(session, text);
  const said = (count) => until("it is said", async () => (await server.lines(session)).length === count);
  const early = await server.startRun(session, [["local__echo", { text: "early", schedule: "in 1 hour" }]]);
  await say("one");
  await said(1);
  const a = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 1 hour" }]], { title: "a" });
  const b = await server.startRun(session, [["local__echo", { text: "b", schedule: "in 1 hour" }]], { title: "b" });
  await say("two");
  await said(2);
  await until("the tool has said how far it is, and says nothing more", async () => (await server.ok("GET", `/v1/runs/${a}`)).steps[0].progress?.percent === 50);

  const first = await openPanel(context, server, session);
  const second = await openPanel(context, server, session);
  await first.reload();
  for (const page of [first, second]) {
    await until("all stand in their places", async () => JSON.stringify(await shown(page)) === JSON.stringify([early, 1, a, b, 2]));
    await page.locator(`[data-run="${b}"] [data-state="held"]`).waitFor();
    await page.locator(`[data-run="${a}"] [data-state="running"]`).waitFor();
    await card(page, a).getByRole("progressbar", { name: "Progress of gated" }).waitFor();
  }
  await first.locator(`[data-run="${a}"]`).getByRole("button", { name: "Cancel" }).click();
  await first.getByRole("button", { name: "Yes, cancel it" }).click();
  for (const page of [first, second]) await ended(page, a, "cancelled");
  await second.reload();
  await ended(second, a, "cancelled");
}));

// F8
test("what was missed while the connection was away is read again, and nothing goes backwards", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  let deaf = false;
  let follows = false;
  const old = [];
  const sockets = await interpose(context, {
    fromServer: (frame) => {
      follows ||= frame.op === "caughtUp";
      if (frame.op === "run" && frame.run.state === "running") old.push(frame);
      return deaf && (frame.op === "run" || frame.op === "message") ? undefined : frame;
    },
  });
  const page = await openPanel(context, server, session);
  await until("it follows the chat", () => follows);
  const id = await server.startRun(session, [["local__gated", { text: gate.path }]]);
  await step(page, id).getByText("working", { exact: true }).waitFor();

  deaf = true;
  await gate.open();
  await until("it has ended", async () => (await server.ok("GET", `/v1/runs/${id}`)).state === "completed");
  assert.equal(await card(page, id).getAttribute("data-state"), "running");
  deaf = false;
  await sockets.cutAll();
  await ended(page, id, "completed");

  assert.ok(old.length > 0);
  for (const socket of sockets.open) {
    for (const frame of old) socket.say(frame);
    socket.say({ op: "run", session, run: { runId: "strange", state: "dancing", createdAt: new Date().toISOString(), lastEvent: 1, steps: [{ aiName: "local__x", state: "singing" }, 3] } });
  }
  await card(page, "strange").getByRole("button", { name: "dancing" }).waitFor();
  assert.equal(await card(page, id).getAttribute("data-state"), "completed");
}));

// F3, G9
test("the server is killed while a result is held: the card comes back, and the result is told once at its time", withPlugins(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const id = await server.startRun(session, [["local__echo", { text: "still here", schedule: "in 6 seconds" }]]);
  await page.locator('.run-step[data-state="held"]').waitFor();
  await server.restart("SIGKILL");
  await ended(page, id, "completed");
  await bubble(page, 1).getByText("still here").waitFor();
  assert.deepEqual(await shown(page), [id, 1]);
  const run = await server.ok("GET", `/v1/runs/${id}`);
  assert.ok(Date.parse((await toolLines(server, session))[0].saidAt) >= Date.parse(run.steps[0].feedbackAt));
}));

// F8
test("cards slide with the lines: far from the end of a long chat they are not there, and going back they are", withPlugins(async (server, context) => {
  const session = await server.session();
  const id = await server.startRun(session, [["local__echo", { text: "first words" }]]);
  await until("its line", async () => (await toolLines(server, session)).length === 1);
  await server.batch(session, Array.from({ length: 400 }, (_, index) => `line ${index}`));
  const page = await openPanel(context, server, session);
  await bubble(page, 401).waitFor();
  assert.equal(await card(page, id).count(), 0);
  await until("the beginning", async () => {
    await page.locator(".log").evaluate((log) => { log.scrollTop = 0; });
    return (await card(page, id).count()) === 1;
  });
  assert.deepEqual((await shown(page)).slice(0, 3), [id, 1, 2]);
}));

// F8
test("of a chat with many runs the older ones are read as one goes back", withPlugins(async (server, context) => {
  const session = await server.session();
  const ids = [];
  for (let index = 0; index < 120; index++) ids.push(await server.startRun(session, [["local__echo", { text: "held", schedule: "in 1 hour" }]], { title: `run ${index}` }));
  for (const text of ["one", "two"]) await server.say(session, text);
  const page = await openPanel(context, server, session);
  await bubble(page, 2).waitFor();
  await until("all of them", async () => (await page.locator(".run").count()) === ids.length);
  const all = await shown(page);
  assert.deepEqual(all.slice(0, ids.length).sort(), ids.sort(), "each once");
  assert.deepEqual(all.slice(ids.length), [1, 2], "above the first line");
}));

// F8
test("times of a card follow the server's clock, not the browser's", withPlugins(async (server, context, gate) => {
  await context.addInitScript(() => {
    const real = Date.now;
    Date.now = () => real() + 3 * 3_600_000;
  });
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const id = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 10 minutes" }]]);
  await step(page, id).getByText(/in (9:5\d|10:00)/).waitFor();
  assert.match(await step(page, id).locator(".run-time").innerText(), /^0:\d\d/);
}));

// F8
test("a picture that comes in above what one reads does not move it", withPlugins(async (server, context) => {
  const session = await server.session();
  await server.startRun(session, [["local__painter"]]);
  await until("its line", async () => (await toolLines(server, session)).length === 1);
  await server.batch(session, Array.from({ length: 60 }, (_, index) => `line ${index}`));
  let release;
  const held = new Promise((done) => { release = done; });
  await context.route("**/v1/files/**", async (route) => {
    await held;
    await route.continue();
  });
  const page = await openPanel(context, server, session);
  await bubble(page, 61).waitFor();
  await page.locator(".log").evaluate((log) => { log.scrollTop = log.querySelector('[data-seq="20"]').offsetTop; });
  await page.getByRole("button", { name: "Jump to newest" }).waitFor();
  const place = () => bubble(page, 20).evaluate((line) => Math.round(line.getBoundingClientRect().top));
  const before = await place();
  release();
  await until("it is drawn", () => page.locator(".picture img").evaluate((image) => image.naturalWidth > 0 && image.getBoundingClientRect().height > 250));
  await until("it stands where it stood", async () => Math.abs((await place()) - before) <= 1);
}));

// F8
test("a chat that ends with pictures and cards opens at its end, and stays there as they come in", withPlugins(async (server, context, gate) => {
  const session = await server.session();
  await server.batch(session, Array.from({ length: 40 }, (_, index) => `line ${index}`));
  for (let index = 0; index < 3; index++) await server.startRun(session, [["local__painter"]]);
  await server.startRun(session, [["local__gated", { text: gate.path }], ["local__unlucky"], ["local__echo", { text: "", schedule: "in 1 hour" }]]);
  await until("the pictures", async () => (await toolLines(server, session)).length === 4);
  for (let round = 0; round < 5; round++) {
    const page = await openPanel(context, server, session);
    await until("they are drawn", async () => (await page.locator(".picture img").count()) === 3 && (await page.locator(".run").count()) === 4);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.ok((await page.locator(".log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight)) <= 32);
    assert.equal(await page.getByRole("button", { name: "Jump to newest" }).count(), 0);
    await page.close();
  }
}));

// F8
test("a tool's picture is shown with the token, opens in full size, and other files can be downloaded", async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-token-"));
  await writeFile(join(folder, "token"), "correct-horse\n", { mode: 0o600 });
  const headers = { authorization: "Bearer correct-horse" };
  try {
    await withPlugins(async (server, context) => {
      const plain = server.call.bind(server);
      server.call = (method, path, body, more) => plain(method, path, body, { ...headers, ...more });
      const session = await server.session();
      await context.addInitScript(() => sessionStorage.setItem("belfry.token", "correct-horse"));
      const page = await openPanel(context, server, session);
      await server.startRun(session, [["local__painter"]]);

      const picture = bubble(page, 1).getByRole("img", { name: "A red square" });
      await picture.waitFor();
      await until("it is drawn", () => picture.evaluate((image) => image.naturalWidth > 0));
      assert.ok((await picture.evaluate((image) => image.getBoundingClientRect().height)) <= 321);
      await bubble(page, 1).getByRole("button", { name: "A red square" }).click();
      await page.getByRole("dialog", { name: "red square.png" }).getByRole("img").waitFor();
      await assertAccessible(page, "a picture");
      await page.keyboard.press("Escape");

      const [download] = await Promise.all([page.waitForEvent("download"), bubble(page, 1).getByRole("button", { name: "Download notes.bin 1 kB" }).click()]);
      assert.equal(download.suggestedFilename(), "notes.bin");
      assert.equal((await readFile(await download.path())).length, 1234);
    }, { flags: ["--token-file", join(folder, "token")] })();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

for (const colorScheme of ["light", "dark"]) {
  // F8, G10
  test(`cards have nothing that axe-core calls serious, and fit into 360 pixels, ${colorScheme}`, withPlugins(async (server, context, gate) => {
    const session = await server.session();
    const page = await openPanel(context, server, session);
    const long = "A rather long title for a run that has to stand in one line of a narrow page";
    await server.startRun(session, [["local__echo", { text: "done" }], ["local__unlucky"]], { title: `${long}, ended` });
    const id = await server.startRun(session, [["local__gated", { text: gate.path, schedule: "in 1 hour" }], ["local__echo", { text: "held", schedule: "in 2 hours" }], ["local__unlucky"], ["local__painter"]], { title: long });
    await page.locator(`[data-run="${id}"] [data-state="held"]`).waitFor();
    await page.locator(".picture img").waitFor();
    await page.locator("progress").waitFor();
    for (const head of await page.locator('.run-head[aria-expanded="false"]').all()) await head.click();
    for (const details of await page.getByRole("button", { name: "Details" }).all()) await details.click();
    await page.locator(".run-json").nth(3).waitFor();
    await assertAccessible(page, "cards");
    assert.ok(!(await overflows(page)), "nothing is wider than the page");
    await card(page, id).getByRole("button", { name: "Cancel" }).click();
    await assertAccessible(page, "a question");
    await page.locator(".coming-button").click();
    await page.locator(".coming-run").nth(1).waitFor();
    await assertAccessible(page, "the drawer");
    assert.ok(!(await overflows(page)), "nor than the drawer");
  }, { context: { ...NARROW, colorScheme } }));
}
