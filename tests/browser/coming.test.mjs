// What is coming: the drawer, its countdowns, and what can be done there. And how punctual what came was.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bubble, closeBrowser, openPanel, until, withServer } from "./support.mjs";

after(closeBrowser);

const WIDE = { context: { viewport: { width: 1440, height: 900 } } };
const HOUR = 3_600_000;

function inFuture(millis) {
  return new Date(Date.now() + millis).toISOString();
}

function schedule(server, session, text, millis) {
  return server.ok("POST", "/v1/scheduled", { session_id: session, send_at: inFuture(millis), message_text: text });
}

function item(page, text) {
  return page.locator(".coming-item", { hasText: text });
}

async function gone(page, text) {
  await until(`${text} is gone`, async () => (await item(page, text).count()) === 0);
}

// D11, P10
test("delayed messages, scheduled ones and open questions are listed with a countdown, and the counts below", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await page.getByText("Nothing is planned here.").waitFor();
  await page.getByText("0 delayed").waitFor();

  const delayed = await server.say(session, "delayed tea", { delayMs: 2 * HOUR + 30_000 });
  await schedule(server, session, "scheduled tea", 90_000);
  await server.say(session, { text: "Which tea?", quickReplies: ["green", "black"], answerBy: inFuture(600_000), onTimeout: { action: "expire" } });

  await item(page, "delayed tea").getByText(/in 2 h/).waitFor();
  await item(page, "delayed tea").getByText("Delayed message").waitFor();
  await item(page, "scheduled tea").getByText(/in 1 min/).waitFor();
  await item(page, "Which tea?").getByText("Open question").waitFor();
  await page.getByRole("button", { name: "What is coming: 3" }).waitFor();
  const texts = await page.locator(".coming-text").allInnerTexts();
  assert.deepEqual(texts, ["scheduled tea", "Which tea?", "delayed tea"]);
  await page.getByText("1 delayed").waitFor();
  await page.getByText("1 for you").waitFor();
  assert.match(await item(page, "delayed tea").locator("time").getAttribute("title"), /\d{2}:\d{2}:\d{2}/);
  await item(page, "Which tea?").getByRole("button", { name: "Go to it" }).click();
  await page.locator(".highlighted", { hasText: "Which tea?" }).waitFor();
  await server.ok("DELETE", `/v1/messages/${delayed.messageId}`);
  await page.getByText("0 delayed").waitFor();
  await page.getByText("0 for you").waitFor();
}, WIDE));

// P10: the page reads the list before it hears of changes; what comes in between is not missed.
test("what is planned while the page still opens a chat is in its list", withServer(async (server, context) => {
  const session = await server.session();
  let open;
  const planned = new Promise((resolve) => { open = resolve; });
  await context.route("**/messages?*", async (route) => {
    await planned;
    await route.continue();
  });
  const page = await openPanel(context, server, session);
  await page.getByText("Nothing is planned here.").waitFor();
  await schedule(server, session, "meanwhile", HOUR);
  open();
  await item(page, "meanwhile").waitFor();
}, WIDE));

// P7, P8
test("a countdown runs, and what was due leaves the list and is in the conversation with its mark", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await schedule(server, session, "stretch", 3000);
  await item(page, "stretch").waitFor();

  const seen = new Set();
  await until("it is said", async () => {
    for (const text of await page.locator(".countdown").allInnerTexts()) seen.add(text);
    return (await page.locator('[data-source="scheduled_send"]').count()) === 1;
  });
  await gone(page, "stretch");
  await page.getByText(/written \d\d:\d\d:\d\d, due \d\d:\d\d:\d\d/).waitFor();
  assert.ok(seen.size >= 2, `it counted: ${[...seen]}`);
}, WIDE));

// P10, W
test("the text and the time of a scheduled message are changed, and the sentence is shown as one types", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const { task_id: task } = await schedule(server, session, "buy milk", HOUR);
  await item(page, "buy milk").getByRole("button", { name: "Edit" }).click();

  const when = page.getByLabel("When");
  await when.fill("no time at all, sorry");
  await page.getByText("That is not a time that can be read yet.").waitFor();
  await when.fill("25:00");
  await page.getByText("There is no such time.").waitFor();
  await when.fill("every day at 9");
  await page.getByText("Something that comes again").waitFor();
  assert.ok(await page.getByRole("button", { name: "Save" }).isDisabled());
  await when.fill("tomorrow at 9");
  await page.getByText(/Understood: .* at 09:00 \(UTC\+08:00\)/).waitFor();
  await page.locator(".alternatives button").click();
  await page.getByText(/Understood: .* 21:00:00/).waitFor();
  await page.getByLabel("Text", { exact: true }).fill("buy oat milk");
  await page.getByRole("button", { name: "Save" }).click();
  await item(page, "buy oat milk").waitFor();

  const { task: saved } = await server.ok("GET", `/v1/scheduled/${task}`);
  assert.equal(saved.message_text, "buy oat milk");
  assert.equal(new Date(saved.send_at).getUTCHours(), 13);
}, WIDE));

// D16
test("a delayed message is snoozed, sent now and cancelled", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const first = await server.say(session, "first", { delayMs: HOUR });
  const second = await server.say(session, "second", { delayMs: HOUR });
  const due = Date.parse(first.scheduledDeliveryTime);

  await item(page, "first").getByRole("button", { name: "Snooze" }).click();
  await page.getByRole("button", { name: "+10 min" }).click();
  await until("it is moved", async () => Date.parse((await server.ok("GET", `/v1/messages/${first.messageId}`)).deliverAt) === due + 600_000);
  await page.getByText("Moved to").waitFor();
  await item(page, "first").getByRole("button", { name: "Send now" }).click();
  await bubble(page, 1).getByText("first").waitFor();
  await gone(page, "first");
  await item(page, "second").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "No, keep it" }).click();
  await item(page, "second").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Yes, cancel it" }).click();
  await gone(page, "second");

  assert.equal((await server.ok("GET", `/v1/messages/${second.messageId}`)).state, "cancelled");
}, WIDE));

// D16, W
test("the time of a delayed message is changed in words, its text is not offered", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const { messageId } = await server.say(session, "delayed", { delayMs: HOUR });

  await item(page, "delayed").getByRole("button", { name: "Edit" }).click();
  assert.equal(await page.getByLabel("Text", { exact: true }).count(), 0);
  await page.getByLabel("When").fill("明天下午3点");
  await page.getByText(/Understood: .* 15:00/).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Moved to tomorrow 15:00.").waitFor();

  await until("it is moved", async () => new Date((await server.ok("GET", `/v1/messages/${messageId}`)).deliverAt).getUTCHours() === 7);
}, WIDE));

// P10
test("a scheduled message is moved to tomorrow, sent now and cancelled", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const { task_id: task } = await schedule(server, session, "early", HOUR);
  const { task_id: other } = await schedule(server, session, "never", 2 * HOUR);

  await item(page, "early").getByRole("button", { name: "Snooze" }).click();
  await page.getByRole("button", { name: "Tomorrow 9:00" }).click();
  await until("it is moved", async () => new Date((await server.ok("GET", `/v1/scheduled/${task}`)).task.send_at).getUTCHours() === 1);
  await item(page, "never").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Yes, cancel it" }).click();
  await gone(page, "never");
  await item(page, "early").getByRole("button", { name: "Send now" }).click();
  await bubble(page, 1).getByText("early").waitFor();

  assert.equal((await server.ok("GET", `/v1/scheduled/${other}`)).task.status, "cancelled");
  assert.equal((await server.ok("GET", `/v1/scheduled/${task}`)).task.status, "sent");
}, WIDE));

// P10
test("what is too late is said calmly, and the list is right again", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const { task_id: task } = await schedule(server, session, "raced", HOUR);
  await item(page, "raced").getByRole("button", { name: "Cancel" }).click();
  // The page does not hear of the change before the person presses.
  await page.route("**/coming", (route) => route.abort());
  await server.ok("POST", `/v1/scheduled/${task}:send`);
  await page.getByRole("button", { name: "Yes, cancel it" }).click();
  await page.getByText("It was sent already.").waitFor();
  await page.unroute("**/coming");
  await schedule(server, session, "next", HOUR);
  await item(page, "next").waitFor();
  await gone(page, "raced");

  const { task_id: cancelled } = await schedule(server, session, "dropped", HOUR);
  await item(page, "dropped").getByRole("button", { name: "Snooze" }).click();
  await page.route("**/coming", (route) => route.abort());
  await server.ok("DELETE", `/v1/scheduled/${cancelled}`);
  await page.getByRole("button", { name: "+1 h" }).click();
  await page.getByText("It was cancelled already.").waitFor();
}, WIDE));

// D6, P8
test("for each message one can see when it was asked for, due and delivered, and how late that was", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await schedule(server, session, "punctual", 1200);
  await bubble(page, 1).waitFor();

  await bubble(page, 1).getByRole("button", { name: /How punctual was it/ }).click();

  const details = bubble(page, 1).locator(".punctuality");
  assert.deepEqual(await details.locator("dt").allInnerTexts(), ["Asked", "Due", "Delivered", "Lateness"]);
  assert.match(await details.locator("dd").last().innerText(), /on time \(\d+ ms\)|late/);
  await page.keyboard.press("Escape");
  await until("it is closed", async () => (await details.count()) === 0);

  // The same for whoever is faster than the next frame.
  await page.evaluate(() => new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".punctuality")) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      resolve();
    }).observe(document.body, { childList: true, subtree: true });
    document.querySelector(".time-button").click();
  }));
  await until("it is closed at once", async () => (await details.count()) === 0);
}, WIDE));
