// Questions with quick replies, in the page and on the server.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bubble, closeBrowser, interpose, newContext, online, openPanel, type, until, withServer } from "./support.mjs";

after(closeBrowser);

const LUNCH = { text: "Lunch?", quickReplies: ["noodles", "rice", "nothing"] };

function replies(page, seq = 1) {
  return bubble(page, seq).locator(".reply");
}

function stateOf(page, seq = 1) {
  return bubble(page, seq).locator(".replies-row").getAttribute("data-state");
}

function waitForState(page, state, seq = 1) {
  return bubble(page, seq).locator(`.replies-row[data-state="${state}"]`).waitFor();
}

async function pressedTexts(page, seq = 1) {
  return bubble(page, seq).locator('.reply[aria-pressed="true"]').allInnerTexts();
}

async function assertAllDisabled(page, seq = 1) {
  for (const reply of await replies(page, seq).all()) assert.ok(await reply.isDisabled());
}

async function ask(server, page, session, question = LUNCH, seq = 1) {
  const { messageId } = await server.say(session, question);
  await replies(page, seq).first().waitFor();
  return messageId;
}

// Q7
test("buttons stand below the message in order, a press sends exactly that text, and then all are disabled", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const question = await ask(server, page, session, { text: "Lunch?", quickReplies: ["noodles", " rice  & <b>beans</b> ", "什么都不吃"] });
  assert.deepEqual(await replies(page).evaluateAll((all) => all.map((each) => each.querySelector("span").textContent)), ["noodles", " rice  & <b>beans</b> ", "什么都不吃"]);
  const text = await bubble(page, 1).locator(".bubble").boundingBox();
  const row = await bubble(page, 1).locator(".replies-row").boundingBox();
  assert.ok(row.y >= text.y + text.height);

  await replies(page).nth(1).click();
  await waitForState(page, "answered");

  const answer = (await server.lines(session))[1];
  assert.equal(answer.text, " rice  & <b>beans</b> ");
  assert.equal(answer.inReplyTo, question);
  assert.equal(answer.quickReplyIndex, 1);
  await assertAllDisabled(page);
  assert.equal((await pressedTexts(page)).length, 1);
  assert.equal(await page.locator(".pending").count(), 0);
  assert.equal((await server.lines(session)).length, 2);
}));

// Q7
test("free typing stays possible, and what is typed disables the buttons", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await ask(server, page, session);

  await type(page, "pizza");
  await waitForState(page, "closed");

  await assertAllDisabled(page);
  assert.deepEqual(await pressedTexts(page), []);
  await bubble(page, 1).getByText("Closed by a typed reply").waitFor();
  assert.equal((await server.lines(session))[1].text, "pizza");
}));

// Q7
test("a reload, a second tab and a restart of the server show the same choice", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await ask(server, page, session);
  const other = await openPanel(context, server, session);
  await replies(other).first().waitFor();

  await replies(page).nth(2).click();
  for (const each of [page, other]) await waitForState(each, "answered");
  assert.deepEqual(await pressedTexts(other), ["nothing"]);

  await server.restart("SIGKILL");
  await page.reload();
  for (const each of [page, other]) {
    await online(each);
    await waitForState(each, "answered");
    assert.deepEqual(await pressedTexts(each), ["nothing"]);
    await assertAllDisabled(each);
  }
}));

// Q7
test("of two tabs that race for one question one wins, and the loser is told and shows the winner's choice", withServer(async (server, context) => {
  const session = await server.session();
  const winner = await openPanel(context, server, session);
  const slow = await newContext();
  const held = [];
  let holding = false;
  await interpose(slow, {
    // The loser does not hear of the answer before it has pressed a button itself.
    fromServer: (frame, socket) => {
      if (!holding || frame.op !== "message") return frame;
      held.push(() => socket.say(frame));
      return undefined;
    },
  });
  const loser = await openPanel(slow, server, session);
  await ask(server, winner, session);
  await replies(loser).first().waitFor();

  holding = true;
  await replies(winner).nth(0).click();
  await waitForState(winner, "answered");
  await replies(loser).nth(1).click();
  await bubble(loser, 1).locator(".replies-state").getByText(/answered/).waitFor();
  await assertAllDisabled(loser);
  await until("the line to be held", () => held.length > 0);
  holding = false;
  held.forEach((release) => release());

  await bubble(loser, 1).getByText("Already answered: noodles").waitFor();
  assert.deepEqual(await pressedTexts(loser), ["noodles"]);
  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["Lunch?", "noodles"]);
  assert.equal(await loser.locator(".pending").count(), 0);
  await slow.close();
}));

// Q7
test("two tabs that press at the same moment agree afterwards, and there is one answer", withServer(async (server, context) => {
  const session = await server.session();
  const pages = [await openPanel(context, server, session), await openPanel(context, server, session)];
  for (let round = 0; round < 5; round++) {
    const seq = round * 2 + 1;
    await server.say(session, LUNCH);
    for (const page of pages) await replies(page, seq).first().waitFor();

    await Promise.all(pages.map((page, index) => replies(page, seq).nth(index).evaluate((button) => button.click())));
    for (const page of pages) await waitForState(page, "answered", seq);

    const chosen = (await server.lines(session))[seq].text;
    for (const page of pages) await until("the same choice in both", async () => (await pressedTexts(page, seq)).join() === chosen);
  }
  assert.equal((await server.lines(session)).length, 10);
}));

// Q7
test("a press that fails restores the buttons with the reason, and its retry cannot say it twice", withServer(async (server, context) => {
  const session = await server.session();
  const keys = [];
  await interpose(context, {
    fromPage: (frame, socket) => {
      if (frame.op !== "send") return frame;
      keys.push(frame.key);
      // The worst case: it was stored, and the answer says that it was not.
      if (keys.length === 1) socket.say({ op: "error", key: frame.key, session, error: "storage_failed", message: "the disk says no" });
      return frame;
    },
    // Until the retry nothing of it is heard.
    fromServer: (frame) => (keys.length === 1 && (frame.op === "sent" || frame.op === "message") ? undefined : frame),
  });
  const page = await openPanel(context, server, session);
  await ask(server, page, session);

  await replies(page).nth(1).click();
  await bubble(page, 1).getByText("Your answer was not sent: the disk says no").waitFor();
  for (const reply of await replies(page).all()) assert.ok(await reply.isEnabled());
  await until("it is stored all the same", async () => (await server.lines(session)).length === 2);
  await bubble(page, 1).getByRole("button", { name: "Retry" }).click();
  await until("the retry", () => keys.length === 2);
  await waitForState(page, "pending");
  await page.reload();
  await waitForState(page, "answered");

  assert.deepEqual(await pressedTexts(page), ["rice"]);
  assert.equal(new Set(keys).size, 1);
  assert.equal(await bubble(page, 1).locator(".failure").count(), 0);
  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["Lunch?", "rice"]);
}));

// Q7
test("after a press that failed another button can be pressed", withServer(async (server, context) => {
  const session = await server.session();
  let refusals = 1;
  await interpose(context, {
    fromPage: (frame, socket) => {
      if (frame.op !== "send" || refusals-- <= 0) return frame;
      socket.say({ op: "error", key: frame.key, session, error: "disk_full", message: "no space is left" });
      return undefined;
    },
  });
  const page = await openPanel(context, server, session);
  await ask(server, page, session);

  await replies(page).nth(0).click();
  await bubble(page, 1).getByText("no space is left").waitFor();
  for (const reply of await replies(page).all()) assert.ok(await reply.isEnabled());
  await replies(page).nth(2).click();
  await waitForState(page, "answered");

  assert.deepEqual(await pressedTexts(page), ["nothing"]);
  assert.equal(await bubble(page, 1).locator(".failure").count(), 0);
  assert.equal((await server.lines(session)).length, 2);
}));

// Q7
test("a press while the server is away is kept, and sent once when it is back", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await ask(server, page, session);

  await server.end("SIGKILL");
  await page.waitForSelector(".bar-offline");
  await replies(page).nth(0).click();
  await waitForState(page, "pending");
  await assertAllDisabled(page);
  await bubble(page, 1).getByText("Your answer is kept").waitFor();
  await server.run();
  await waitForState(page, "answered");

  assert.deepEqual(await pressedTexts(page), ["noodles"]);
  assert.deepEqual((await server.lines(session)).map((line) => line.text), ["Lunch?", "noodles"]);
}));

// Q7, Q9
test("a deadline counts down, and what becomes of the question is said in words", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  const soon = () => new Date(Date.now() + 2500).toISOString();
  await server.say(session, { ...LUNCH, answerBy: soon(), onTimeout: { action: "default", index: 1 } });
  await bubble(page, 1).getByText(/Answer in [123] s/).waitFor();
  await waitForState(page, "defaulted");
  await bubble(page, 1).getByText("Time is up: “rice” was taken").waitFor();
  assert.deepEqual(await pressedTexts(page), ["rice"]);

  const before = (await server.lines(session)).at(-1).seq;
  await server.say(session, { ...LUNCH, answerBy: soon(), onTimeout: { action: "expire" } });
  await waitForState(page, "expired", before + 1);
  await bubble(page, before + 1).getByText("Time is up: nobody answered").waitFor();
  await assertAllDisabled(page, before + 1);
}));

// Q7
test("quick replies work by keyboard: arrows, Enter, digits; the focus is not lost", withServer(async (server, context) => {
  const session = await server.session();
  const page = await openPanel(context, server, session);
  await ask(server, page, session);

  await replies(page).nth(0).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await page.evaluate(() => document.activeElement.innerText), "nothing");
  await page.keyboard.press("Enter");
  await waitForState(page, "answered");
  assert.deepEqual(await pressedTexts(page), ["nothing"]);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "group");

  await ask(server, page, session, LUNCH, 3);
  await replies(page, 3).nth(0).focus();
  await page.keyboard.press("2");
  await waitForState(page, "answered", 3);
  assert.deepEqual(await pressedTexts(page, 3), ["rice"]);
}));

// Q6, Q7
test("malformed quick replies are ignored, and the page goes on", withServer(async (server, context) => {
  const session = await server.session();
  const odd = ["yes", 7, { a: 1 }, [1, 2], ["a", null], [], null, [""], Array(40).fill("x")];
  await interpose(context, {
    fromServer: (frame) => (frame.op === "message" ? { ...frame, quickReplies: odd[frame.seq - 1], questionState: "open", answer: 3, closes: "all" } : frame),
  });
  const page = await openPanel(context, server, session);
  for (let count = 0; count < odd.length; count++) await server.say(session, `line ${count}`);
  await bubble(page, odd.length).waitFor();

  assert.equal(await page.locator(".reply").count(), 0);
  assert.equal(await page.locator("[data-seq]").count(), odd.length);
}));

// Q7
test("ten quick replies of 200 characters wrap within the screen, on a phone too", withServer(async (server, context) => {
  const session = await server.session();
  const long = Array.from({ length: 10 }, (_, index) => `${index} ${index % 2 ? "字".repeat(198) : "w".repeat(198)}`);
  await server.say(session, { text: "long", quickReplies: long });
  for (const viewport of [{ width: 390, height: 844 }, { width: 1440, height: 900 }]) {
    const page = await openPanel(context, server, session);
    await page.setViewportSize(viewport);
    await replies(page).nth(9).waitFor();

    assert.equal(await replies(page).count(), 10);
    for (const reply of await replies(page).all()) {
      const box = await reply.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= viewport.width);
    }
    assert.ok(await page.evaluate(() => document.querySelector(".log").scrollWidth <= document.querySelector(".log").clientWidth));
    await page.close();
  }
}));
