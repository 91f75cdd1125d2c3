// Pictures of the panel in the states that people meet, to be looked at: node screenshots.mjs [FOLDER]
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bubble, closeBrowser, newContext, online, openPanel, pluginFolder, Server, type, until } from "./support.mjs";

const FOLDER = process.argv[2] ?? "shots";
const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

const PLAN = `Here is the plan for **Friday**:

1. Freeze the branch at \`v0.3\`
2. Run the long tests
   - soak, 4 hours
   - crash, 10,000 kills
3. Write the notes

\`\`\`cpp
co_await clock_.sleep_until(due);   // never early
\`\`\`

| step | who | hours |
|---|---|---:|
| freeze | ann | 0.5 |
| soak | runner | 4 |

> What is not measured is not known. See https://example.org/notes`;

async function fill(server, language) {
  const english = language === "en";
  const session = await server.session("planner");
  const say = (payload, more) => server.say(session, payload, { from: "planner", ...more });
  const write = (text) => server.ok("POST", `/v1/sessions/${session}/messages`, { text });
  await write(english ? "What is left to do for the release?" : "发布前还剩什么？");
  await say(english ? PLAN : "周五的计划：\n\n1. 冻结分支 `v0.3`\n2. 跑长测试\n   - 压力测试 4 小时\n   - 崩溃测试一万次\n3. 写发布说明\n\n```cpp\nco_await clock_.sleep_until(due);   // 绝不提前\n```");
  await write(english ? "Good. Who reviews it?" : "好的，谁来评审？");
  const lunch = await say({ text: english ? "Shall I ask Bob?" : "要我去问 Bob 吗？", quickReplies: english ? ["Yes, ask him", "No, I do it"] : ["好，问他", "不用，我来"] });
  await until("the question", async () => (await server.lines(session)).some((line) => line.messageId === lunch.messageId));
  await server.ok("POST", `/v1/sessions/${session}/messages`, { inReplyTo: lunch.messageId, quickReplyIndex: 0 });
  await say({ text: english ? "He has time at three, four or five. Which one shall I take?" : "他三点、四点、五点有空，选哪个？",
    quickReplies: english ? ["15:00", "16:00", "17:00", "None of them, ask for tomorrow instead"] : ["15:00", "16:00", "17:00", "都不行，改问明天"],
    answerBy: new Date(Date.now() + 9 * 60_000).toISOString(), onTimeout: { action: "expire" } });
  await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: new Date(Date.now() + 185_000).toISOString(), message_text: english ? "Stand up and stretch." : "站起来活动一下。" });
  await server.ok("POST", "/v1/scheduled", { session_id: session, send_at: new Date(Date.now() + 22 * 3_600_000).toISOString(), message_text: english ? "The freeze is in one hour." : "一小时后冻结分支。" });
  await say(english ? "Results of the soak test" : "压力测试的结果", { delayMs: 3 * 3_600_000 });
  const other = await server.session("research");
  await server.say(other, english ? "I found three papers on timing wheels." : "我找到三篇关于时间轮的论文。", { from: "research" });
  return session;
}

async function shoot(page, name) {
  await page.evaluate(() => document.fonts.ready);
  await page.evaluate(() => Promise.all(document.getAnimations().filter((each) => each.effect?.getTiming().iterations !== Infinity).map((each) => each.finished.catch(() => undefined))));
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  console.log(name);
}

async function withPage(server, session, options, work) {
  const context = await newContext(options);
  const page = await openPanel(context, server, session);
  await work(page);
  await context.close();
}

async function busy(language, scheme, size, name) {
  const server = await Server.start();
  const session = await fill(server, language);
  const options = { viewport: size, colorScheme: scheme, locale: language === "zh" ? "zh-CN" : "en-GB" };
  await withPage(server, session, options, async (page) => {
    await page.waitForSelector('.reply:enabled');
    await page.waitForSelector(`[aria-label^="${language === "zh" ? "接下来" : "What is coming"}: 4"]`);
    await shoot(page, `busy-${name}`);
    if (size === PHONE) {
      await page.click(".coming-button");
      await page.waitForSelector(".coming-item");
      await shoot(page, `drawer-${name}`);
      await page.keyboard.press("Escape");
      await page.click('.conversation-head button[aria-label*="menu"], .conversation-head button[aria-label*="菜单"]');
      await shoot(page, `chats-${name}`);
      return;
    }
    await page.locator(".time-button").nth(1).click();
    await page.locator(".coming-item").first().getByRole("button", { name: /^(Edit|编辑)$/ }).click();
    await page.locator(".when input").fill(language === "zh" ? "明天9点" : "tomorrow at 9");
    await page.waitForSelector(".alternatives");
    await shoot(page, `editing-${name}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.locator("input[type=search]").fill(language === "zh" ? "测试" : "plan");
    await page.waitForSelector(".result");
    await shoot(page, `search-${name}`);
    await page.keyboard.press("Escape");
    await page.locator(".person").click();
    await page.waitForSelector("dialog[open]");
    await shoot(page, `settings-${name}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Alt+n");
    await page.waitForSelector("dialog[open] .agent");
    await page.locator(".agent").nth(0).click();
    await page.locator(".agent").nth(1).click();
    await shoot(page, `new-${name}`);
    await page.keyboard.press("Escape");
    await page.locator(".replies .reply:enabled").first().click();
    await page.waitForSelector('[data-state="answered"] >> nth=1');
    await server.ok("POST", `/v1/sessions/${session}/drafts`, { from: "planner", draftId: "d1", text: language === "zh" ? "我去问 Bob，然后" : "I am asking Bob and will" });
    await page.waitForSelector(".draft");
    await shoot(page, `draft-${name}`);
    await server.end("SIGTERM");
    await page.waitForSelector(".bar-offline, .bar-stopping");
    await type(page, language === "zh" ? "你还在吗？" : "Are you still there?");
    await page.waitForSelector(".pending");
    await page.waitForSelector(".bar-offline");
    await shoot(page, `offline-${name}`);
  });
  await server.remove();
}

const TOOLS = {
  realtime_search: `say({"success": True, "data": {"text": args.get("text", "")}})`,
  image_draw: `
rows = b"".join(b"\\0" + bytes(value for x in range(480) for value in (120 + x // 6, 84 + y // 6, 40)) for y in range(320))
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open(os.path.join(out, "bell.png"), "wb") as file:
    file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 480, 320, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
say({"success": True, "data": {"text": args.get("text", ""), "files": [{"name": "bell.png", "mimeType": "image/png", "bytes": 4321},
    {"name": "sources.zip", "mimeType": "application/zip", "bytes": 123456}]}})`,
  html_to_app: `
while True:
    say({"progress": {"text": args.get("text", ""), "percent": 42}})
    time.sleep(0.3)`,
  github_repo_info: `say({"success": False, "error": {"code": "not_found", "message": args.get("text", "")}})`,
};

async function runs(language, scheme, size, name) {
  const english = language === "en";
  const folder = await pluginFolder(TOOLS);
  const server = await Server.start(["--plugins", folder]);
  const session = await server.session("planner");
  const begin = (steps, more) => server.startRun(session, steps, more, "planner");
  const said = (count) => until("the lines", async () => (await server.lines(session)).length === count);
  await server.ok("POST", `/v1/sessions/${session}/messages`, { text: english ? "Draw me a bell, please." : "请画一口钟。" });
  await begin([["local__image_draw", { text: english ? "A bell at dusk." : "黄昏的钟。" }]]);
  await said(2);
  await server.ok("POST", `/v1/sessions/${session}/messages`, { text: english ? "Now make a page about it, and tell me in two hours." : "再做一个介绍页面，两小时后告诉我。" });
  await begin([["local__realtime_search", { text: english ? "Three sources on bells." : "三份资料。", schedule: english ? "in 90 seconds" : "90秒后" }]]);
  const id = await begin([["local__realtime_search", { text: english ? "Bells in towers" : "钟楼" }],
    ["local__html_to_app", { text: english ? "setting the page" : "正在排版", schedule: english ? "in 2 hours" : "2小时后" }],
    ["local__github_repo_info", { text: english ? "there is no repository bells/tower" : "没有仓库 bells/tower" }],
    ["local__image_draw", {}, [2]]], { title: english ? "A page about bells" : "介绍钟的页面" });
  const options = { viewport: size, colorScheme: scheme, locale: english ? "en-GB" : "zh-CN" };
  await withPage(server, session, options, async (page) => {
    await page.waitForSelector("progress");
    await page.waitForSelector(`[data-run="${id}"] [data-state="failed"]`);
    await page.waitForSelector(".picture img");
    await shoot(page, `runs-${name}`);
    await page.locator(".picture").first().evaluate((picture) => picture.scrollIntoView({ block: "center" }));
    await page.locator(".run-head").first().click();
    await page.locator(".run .buttons .quiet").first().click();
    await page.waitForSelector(".run-json");
    await shoot(page, `runs-details-${name}`);
    await page.locator(".picture").first().click();
    await page.waitForSelector("dialog[open] img");
    await shoot(page, `picture-${name}`);
    await page.keyboard.press("Escape");
    if (size !== PHONE) return;
    await page.click(".coming-button");
    await page.waitForSelector(".coming-run");
    await shoot(page, `runs-drawer-${name}`);
  });
  await server.remove();
  await rm(folder, { recursive: true, force: true });
}

async function empty(language, scheme, size, name) {
  const server = await Server.start();
  await withPage(server, undefined, { viewport: size, colorScheme: scheme, locale: language === "zh" ? "zh-CN" : "en-GB" }, async (page) => {
    await page.waitForSelector(".example");
    await shoot(page, `empty-${name}`);
  });
  await server.remove();
}

async function login(scheme, name) {
  await writeFile(join(FOLDER, "token"), "correct-horse-battery-staple\n", { mode: 0o600 });
  const server = await Server.start(["--token-file", join(FOLDER, "token")]);
  const context = await newContext({ viewport: WIDE, colorScheme: scheme });
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel("Token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#login-outcome.failure:not(:empty)");
  await shoot(page, `login-${name}`);
  await context.close();
  await server.remove();
}

async function longReplies() {
  const server = await Server.start();
  const session = await server.session();
  await server.say(session, { text: "Ten long ones", quickReplies: Array.from({ length: 10 }, (_, index) => `${index + 1} ${"a rather long answer ".repeat(10)}`.slice(0, 200)) });
  await withPage(server, session, { viewport: PHONE }, async (page) => {
    await bubble(page, 1).locator(".reply").nth(9).waitFor();
    await shoot(page, "long-replies-phone");
  });
  await withPage(server, session, { viewport: WIDE }, async (page) => {
    await bubble(page, 1).locator(".reply").nth(9).waitFor();
    await shoot(page, "long-replies-wide");
  });
  await server.remove();
}

await mkdir(FOLDER, { recursive: true });
await empty("en", "light", WIDE, "wide-light-en");
await empty("zh", "dark", PHONE, "phone-dark-zh");
await busy("en", "light", WIDE, "wide-light-en");
await busy("zh", "dark", WIDE, "wide-dark-zh");
await busy("en", "light", PHONE, "phone-light-en");
await busy("zh", "dark", PHONE, "phone-dark-zh");
await runs("en", "light", WIDE, "wide-light-en");
await runs("zh", "dark", WIDE, "wide-dark-zh");
await runs("en", "light", PHONE, "phone-light-en");
await runs("zh", "dark", PHONE, "phone-dark-zh");
await login("light", "light");
await longReplies();
await closeBrowser();
