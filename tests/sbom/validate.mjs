// Whether files are CycloneDX 1.6, by its own schema: prints what is wrong with which, and fails then.
//   node validate.mjs FILE…
import { readFile } from "node:fs/promises";
import { argv, exit } from "node:process";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";

const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
let failed = argv.length < 3;
for (const file of argv.slice(2)) {
  const wrong = await validator.validate(await readFile(file, "utf8"));
  if (wrong === null) continue;
  failed = true;
  console.log(file, JSON.stringify(wrong, null, 1));
}
exit(failed ? 1 : 0);
