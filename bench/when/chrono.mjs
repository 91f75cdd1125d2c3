// chrono-node on the texts of a file, one a line: expressions per CPU-second, as JSON.
import { readFileSync } from "node:fs";
import * as chrono from "chrono-node";

const [language, file] = process.argv.slice(2);
const texts = readFileSync(file, "utf8").split("\n").filter((line) => line !== "");
const parser = language === "zh" ? chrono.zh : chrono;
const now = new Date("2026-11-18T15:20:00+08:00");
let read = 0;
const once = () => {
  for (const text of texts) read += parser.parse(text, now, { forwardDate: true }).length > 0 ? 1 : 0;
};
once(); // the first time is slow: everything is compiled
const readOnce = read;
const seconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};
const begun = seconds();
let rounds = 0;
while (seconds() - begun < 3) {
  once();
  ++rounds;
}
const perCpuSecond = (rounds * texts.length) / (seconds() - begun);
console.log(JSON.stringify({ bench: "when", reader: "chrono-node", language, texts: texts.length, read: readOnce, perCpuSecond: Math.round(perCpuSecond) }));
