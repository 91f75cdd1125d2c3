import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";

type Outcome = "wrong" | "unreachable" | "checking" | undefined;

export function Login(): VNode {
  const { panel, t } = useSurroundings();
  const [token, setToken] = useState("");
  const [remember, setRemember] = useState(false);
  // A token that was kept and is refused now is as wrong as one that was typed.
  const [outcome, setOutcome] = useState<Outcome>(() => (panel.signedIn ? "wrong" : undefined));
  const signIn = async (): Promise<void> => {
    setOutcome("checking");
    setOutcome(await panel.signIn(token.trim(), remember));
  };
  return (
    <main class="login">
      <form class="card" onSubmit={(event) => { event.preventDefault(); void signIn(); }}>
        <img src="/belfry.svg" alt="" width="56" height="56" />
        <h1>{t("name")}</h1>
        <p class="hint">{t("signInHint")}</p>
        <label class="field"><span>{t("token")}</span>
          <input type="password" autocomplete="current-password" required value={token} aria-invalid={outcome === "wrong"}
            aria-describedby="login-outcome" onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        <label class="switch">
          <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} /><span>{t("remember")}</span>
        </label>
        <p id="login-outcome" class={outcome === "checking" ? "hint" : "failure"} role="status">
          {outcome === "wrong" ? t("wrongToken") : null}
          {outcome === "unreachable" ? t("unreachable") : null}
          {outcome === "checking" ? t("checking") : null}
        </p>
        <button type="submit" class="primary" disabled={token.trim() === "" || outcome === "checking"}>{t("signIn")}</button>
      </form>
    </main>
  );
}
