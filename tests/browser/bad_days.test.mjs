// Bad days: a server that is slow, refuses, has another token or is somebody else's. The page says what is, and goes on.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { bubble, closeBrowser, newContext, online, openPanel, Server, shownTexts, type, until, watch, withServer } from "./support.mjs";

after(closeBrowser);

const WIDE = { context: { viewport: { width: 1440, height: 900 } } };

// G9
test("a server that stands still for a while: what is typed is being sent, and is said once when it goes on", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  server.process.kill("SIGSTOP");

  await type(page, "are you there?");
  await page.locator(".pending-sending").getByText("Sending…").waitFor();
  await type(page, "hello?");
  await until("both wait", async () => (await page.locator(".pending-sending").count()) === 2);
  server.process.kill("SIGCONT");
  await bubble(page, 2).waitFor();

  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["are you there?", "hello?"]);
  await until("nothing pends", async () => (await page.locator(".pending").count()) === 0);
}));

// P13
test("a slow answer is waited for in words", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "worth the wait");
  const page = await context.newPage();
  page.seen = watch(page, server.url);
  let release;
  const held = new Promise((done) => { release = done; });
  await page.route("**/v1/sessions?*", async (route) => { await held; await route.continue(); });
  await page.goto(`${server.url}/#${session}`);
  await page.getByText("Loading…").first().waitFor();
  release();
  await bubble(page, 1).waitFor();
}));

// P13
test("what cannot be read is said with the reason, and can be tried again", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "hello");
  const page = await context.newPage();
  page.seen = watch(page, server.url);
  const refuse = (message) => (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "overloaded", message }) });
  const places = ["**/v1/sessions?*", "**/messages?*", "**/coming"];
  for (const place of places) await page.route(place, refuse(`too much <b>${place}</b>`));
  let looks = 0;
  page.on("response", (response) => { if (response.url().endsWith("/coming")) looks++; });
  await page.goto(`${server.url}/#${session}`);

  await page.getByText("The chats could not be read: too much <b>**/v1/sessions?*</b>").waitFor();
  await page.unroute(places[0]);
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("The conversation could not be read: too much").waitFor();
  await page.getByText("What is coming could not be read.").waitFor();
  const before = looks;
  await page.unroute(places[1]);
  await page.locator(".conversation").getByRole("button", { name: "Retry" }).click();
  await bubble(page, 1).waitFor();
  // Once it hears of changes, it looks again by itself; from then on only when it is told to.
  await until("it has looked again", () => looks > before);
  await page.unroute(places[2]);
  await page.locator(".drawer").getByRole("button", { name: "Retry" }).click();
  await page.getByText("Nothing is planned here.").waitFor();
  await type(page, "still here");
  await bubble(page, 2).waitFor();
}, WIDE));

// P13
test("a token that is changed while the page is open leads to the login, and what was typed is sent behind it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "belfry-token-"));
  const token = join(folder, "token");
  await writeFile(token, "the-first-token-of-all\n", { mode: 0o600 });
  const server = await Server.start(["--token-file", token]);
  const context = await newContext();
  try {
    const page = await context.newPage();
    page.seen = watch(page, server.url);
    await page.goto(server.url);
    await page.getByLabel("Token").fill("the-first-token-of-all");
    await page.keyboard.press("Enter");
    await page.getByText("Say something to concierge").waitFor();
    await server.end("SIGKILL");
    await page.waitForSelector(".bar-offline");
    await type(page, "help");
    await page.waitForSelector(".pending-queued");
    await writeFile(token, "the-second-token-of-all\n", { mode: 0o600 });
    await server.run();

    await page.getByText("That token was not accepted.").waitFor();
    await page.getByLabel("Token").fill("the-second-token-of-all");
    await page.keyboard.press("Enter");
    await page.locator(".own[data-seq]", { hasText: "help" }).waitFor();
    await until("it is answered", async () => (await shownTexts(page)).length === 2);
    assert.deepEqual(page.seen, { errors: [], strays: [], dialogs: [] });
  } finally {
    await context.close();
    await server.remove();
    await rm(folder, { recursive: true });
  }
});

// P13
test("an address that makes no sense opens the page all the same", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "hello");
  for (const address of ["#%E0%A4%A", "#<script>", `#${"x".repeat(3000)}`, "?person=user&person=%00#%"]) {
    const page = await context.newPage();
    page.seen = watch(page, server.url);
    await page.goto(`${server.url}/${address}`);
    await online(page);
    await bubble(page, 1).waitFor();
    await page.close();
  }
}));

// P13
test("a person that cannot be is said, and the page is not blank", withServer(async (server, context) => {
  await server.addAgent("bot");
  for (const person of ["bot", "%3Cb%3E", "a%20b"]) {
    const page = await context.newPage();
    page.seen = watch(page, server.url);
    await page.goto(`${server.url}/?person=${person}`);
    await page.locator(".empty, .login").first().waitFor();
    await page.locator(".person").waitFor();
    assert.ok((await page.locator(".app").innerText()).length > 20);
    await page.close();
  }
}));

// G9
test("when too much waits, what is typed is not taken and stays in the field", withServer(async (server, context) => {
  const session = await server.session();
  await context.addInitScript((id) => {
    if (localStorage.length > 0) return;
    const entries = Array.from({ length: 200 }, (_, index) => ({ key: `k${index}`, person: "user", session: id, text: `waits ${index}`, at: 0, state: "failed", after: 0 }));
    localStorage.setItem("belfry.outbox.gone", JSON.stringify(entries));
  }, session);
  const page = await openPanel(context, server, session);
  await page.locator(".pending-failed", { hasText: "waits 199" }).waitFor();

  await type(page, "one too many");
  await page.getByText("Too many messages wait to be sent.").waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Write a message" }).inputValue(), "one too many");
  // What is said there lies above the end of the log, and a button below it could be missed.
  await page.locator(".notice button").click();
  await page.locator(".notice").waitFor({ state: "detached" });
  const last = page.locator(".pending-failed", { hasText: "waits 199" });
  await last.getByRole("button", { name: "Discard" }).click();
  await last.waitFor({ state: "detached" });
  await page.getByRole("textbox", { name: "Write a message" }).press("Enter");
  await bubble(page, 1).waitFor();
  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["one too many"]);
}));

// P13
test("notifications that the browser does not allow are said to be so", withServer(async (server, context) => {
  await context.addInitScript(() => {
    window.Notification = class {
      static permission = "denied";
      static async requestPermission() { return "denied"; }
    };
  });
  const page = await openPanel(context, server, await server.session());
  await page.locator(".person").click();
  await page.getByLabel("Notify me about new messages").click();
  await page.getByText("The browser does not allow notifications for this page.").waitFor();
  assert.ok(!(await page.getByLabel("Notify me about new messages").isChecked()));
}));

// G19
test("a page of another origin can neither listen nor speak", withServer(async (server, context) => {
  const session = await server.session();
  await server.say(session, "private");
  const stranger = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>stranger</title>"));
  await new Promise((done) => stranger.listen(0, "127.0.0.1", done));
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${stranger.address().port}/`);
    const heard = await page.evaluate(async ([url, id]) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`);
      const frames = [];
      socket.onmessage = (event) => frames.push(event.data);
      socket.onopen = () => socket.send(JSON.stringify({ op: "hello", sessions: [{ id, after: 0 }] }));
      const ended = await new Promise((done) => { socket.onclose = () => done("closed"); });
      const body = JSON.stringify({ text: "forged" });
      const calls = [[`${url}/v1/sessions/${id}/messages`, { method: "POST", body }], [`${url}/v1/sessions/${id}/messages`, { method: "POST", body, mode: "no-cors" }], [`${url}/v1/sessions`, {}]];
      const answers = [];
      for (const [address, request] of calls) answers.push(await fetch(address, request).then((answer) => answer.text(), () => "refused"));
      return { ended, frames, answers };
    }, [server.url, session]);

    assert.deepEqual(heard, { ended: "closed", frames: [], answers: ["refused", "refused", "refused"] });
    assert.deepEqual((await server.lines(session)).map((line) => line.text), ["private"]);
    assert.equal((await server.call("GET", "/v1/sessions", undefined, { origin: "http://evil.example" })).status, 403);
  } finally {
    stranger.close();
  }
}));
