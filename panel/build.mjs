// Builds the panel into dist/ under fixed names, which the binary embeds. With --tests it bundles the unit tests and the
// bench instead, so that they run on any Node that esbuild runs on.
import { build } from "esbuild";
import { cp, mkdir, readFile, readdir, rm } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const SCRIPT_MAX = 60_000; // gzipped; what the first load may cost

const common = {
  bundle: true,
  charset: "utf8",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
  target: "es2022",
};

async function buildTests() {
  await rm("dist-tests", { recursive: true, force: true });
  const names = (await readdir("src")).filter((name) => /\.(test|bench)\.ts$/.test(name));
  await build({
    ...common,
    entryPoints: names.map((name) => `src/${name}`),
    outdir: "dist-tests",
    outExtension: { ".js": ".mjs" },
    platform: "node",
  });
}

async function buildPanel() {
  await rm("dist", { recursive: true, force: true });
  await mkdir("dist");
  await build({
    ...common,
    entryPoints: [
      { in: "src/main.tsx", out: "panel" },
      { in: "src/panel.css", out: "panel" },
    ],
    legalComments: "none",
    minify: true,
    outdir: "dist",
  });
  await cp("src/index.html", "dist/index.html");
  await cp("src/icon.svg", "dist/icon.svg");
  const size = gzipSync(await readFile("dist/panel.js"), { level: 9 }).length;
  console.log(`panel.js: ${size} bytes gzipped`);
  if (size > SCRIPT_MAX) throw new Error(`panel.js has ${size} bytes gzipped, and may have ${SCRIPT_MAX}`);
}

await (process.argv.includes("--tests") ? buildTests() : buildPanel());
