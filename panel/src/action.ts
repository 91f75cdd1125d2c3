// Something that the person changes, and how they hear of its end.
import type { Outcome } from "./api.ts";
import { useSurroundings, type Surroundings } from "./context.ts";
import { hasWords } from "./i18n.ts";
import type { Failure } from "./types.ts";

const CALM: readonly string[] = ["already_sent", "already_delivered", "already_cancelled", "being_sent", "not_found", "wrong_state"];

export function failureWords({ t }: Surroundings, failure: Failure): string {
  if (CALM.includes(failure.error) && hasWords(failure.error)) return t(failure.error);
  return t("actionFailed", { reason: failure.error === "unreachable" ? t("unreachable") : failure.message });
}

/** Runs a change and says how it ended; too late is nothing to be alarmed about. */
export function useAction(): (action: Promise<Outcome<unknown>>, done: string) => Promise<void> {
  const surroundings = useSurroundings();
  return async (action, done) => {
    const outcome = await action;
    const { store } = surroundings.panel;
    if (outcome.ok) store.dispatch({ type: "notice", text: done, calm: true });
    else store.dispatch({ type: "notice", text: failureWords(surroundings, outcome.failure), calm: CALM.includes(outcome.failure.error) });
  };
}
