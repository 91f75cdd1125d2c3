import type { VNode } from "preact";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { sessionName } from "./state.ts";
import type { Session } from "./types.ts";

const EXAMPLES = ["example1", "example2", "example3", "example4"] as const;

/** A chat in which nothing was said yet: what one could say. */
export function EmptyChat({ session, onExample }: { session: Session; onExample: (text: string) => void }): VNode {
  const { t } = useSurroundings();
  const concierge = session.agents.includes("concierge");
  const name = sessionName(session);
  return (
    <div class="empty">
      <span class="empty-bell"><Icon name="bell" /></span>
      <h2>{t("emptyTitle", { name })}</h2>
      <p>{concierge ? t("emptyHint") : t("emptyHintOther", { name })}</p>
      {concierge ? (
        <ul class="examples">
          {EXAMPLES.map((key) => (
            <li key={key}>
              <button type="button" class="example" onClick={() => onExample(t(key))}><span dir="auto">{t(key)}</span><Icon name="arrow" /></button>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

/** No chat is open. */
export function NoChat({ onNew, loaded, missing }: { onNew: () => void; loaded: boolean; missing: boolean }): VNode {
  const { t } = useSurroundings();
  if (!loaded) return <div class="empty"><p>{t("loading")}</p></div>;
  return (
    <div class="empty">
      <span class="empty-bell"><Icon name="bell" /></span>
      <h2>{missing ? t("noSuchChat") : t("noneTitle")}</h2>
      <p>{t("noneHint")}</p>
      <button type="button" class="primary" onClick={onNew}>{t("newChat")}</button>
    </div>
  );
}
