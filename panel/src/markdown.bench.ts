// What reading a message costs, in time of the processor: `npm run bench`. A message is at most MARKDOWN_MAX letters, and read once
// when it is drawn; one that is being written is read four times a second.
import { cpuUsage } from "node:process";
import { MARKDOWN_MAX, readMarkdown } from "./markdown.ts";
import { PIECES } from "./markdown_shapes.ts";
import { Work } from "./markdown_work.ts";

const ORDINARY = "## 小结 and plan\n\n- **one** thing: `code`, [a link](https://a.example/x)\n- 另一件事\n\n| a | b |\n|---|---|\n| 1 | *2* |\n\nA paragraph of some words, as a model writes it.\n\n";
const ROUNDS = 9;

function once(text: string): number {
  const start = cpuUsage();
  readMarkdown(text);
  const { user, system } = cpuUsage(start);
  return (user + system) / 1000;
}

function measure(piece: string): { piece: string; median: number; steps: number } {
  const text = piece.repeat(MARKDOWN_MAX / piece.length);
  const work = new Work(Infinity);
  readMarkdown(text, work);
  const times = Array.from({ length: ROUNDS }, () => once(text)).sort((a, b) => a - b);
  return { piece, median: times[(ROUNDS - 1) / 2] ?? 0, steps: work.steps / text.length };
}

const line = ({ piece, median, steps }: ReturnType<typeof measure>): string =>
  `${median.toFixed(1).padStart(6)} ms  ${steps.toFixed(1).padStart(5)} steps a letter  ${JSON.stringify(piece).slice(0, 60)}`;
console.log(`${once(ORDINARY.repeat(MARKDOWN_MAX / ORDINARY.length)).toFixed(1).padStart(6)} ms  the very first message, nothing compiled yet`);
console.log(line(measure(ORDINARY)));
const all = PIECES.map(measure);
console.log("the slowest:");
for (const each of [...all].sort((a, b) => b.median - a.median).slice(0, 5)) console.log(line(each));
console.log("the most steps:");
for (const each of [...all].sort((a, b) => b.steps - a.steps).slice(0, 5)) console.log(line(each));
