import { strict as assert } from "node:assert/strict";
import { test } from "node:test";
import { CHINESE, chooseLanguage, ENGLISH, translator, type Key } from "./i18n.ts";

function places(text: string): string[] {
  return [...text.matchAll(/\{\w+\}/g)].map((match) => match[0]).sort();
}

test("both languages have the same places to fill in, and no empty text", () => {
  for (const key of Object.keys(ENGLISH) as Key[]) {
    assert.deepEqual(places(CHINESE[key]), places(ENGLISH[key]), key);
    assert.ok(CHINESE[key].trim() !== "" && ENGLISH[key].trim() !== "", key);
  }
});

test("what is filled in is not read as a pattern", () => {
  assert.equal(translator("en")("failed", { reason: "$& {reason} <b>" }), "Not sent: $& {reason} <b>");
});

test("a choice counts before the browser's languages, and English is for all others", () => {
  assert.equal(chooseLanguage("zh", ["en-GB"]), "zh");
  assert.equal(chooseLanguage(null, ["fr", "zh-TW", "en"]), "zh");
  assert.equal(chooseLanguage("auto", ["fr"]), "en");
});
