import { render } from "preact";
import { App } from "./app.tsx";
import { Panel } from "./panel.ts";
import * as preferences from "./preferences.ts";

preferences.applyTheme();
const panel = new Panel(preferences.person());
panel.start();
const place = document.getElementById("app");
if (place) render(<App panel={panel} />, place);
