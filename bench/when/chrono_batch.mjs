// chrono-node behind the protocol of `belfry when --batch`, so that tests/when/evaluate.py can judge it by the same cases:
//   tests/when/evaluate.py --reader "node bench/when/chrono_batch.mjs" --cases FILE
import { createInterface } from "node:readline";
import * as chrono from "chrono-node";

const parts = new Map(); // one formatter a zone: they are slow to make
const offsetMinutes = (zone, instant) => {
  if (!parts.has(zone)) parts.set(zone, new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }));
  const name = parts.get(zone).formatToParts(instant).find((part) => part.type === "timeZoneName").value;
  const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(name);
  return sign ? (sign === "-" ? -1 : 1) * (60 * Number(hours) + Number(minutes)) : 0;
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, text, ref, tz, lang } = JSON.parse(line);
  const parser = lang === "zh" ? chrono.zh : chrono;
  const instant = new Date(ref);
  const found = parser.parse(text, { instant, timezone: offsetMinutes(tz, instant) }, { forwardDate: true });
  const at = found[0]?.start.date().toISOString() ?? "";
  const answer = /^(?!0000)\d{4}-/.test(at) ? { id, ok: true, at } : { id, ok: false }; // years below 1 are no answer
  console.log(JSON.stringify(answer));
}
