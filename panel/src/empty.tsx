import type { VNode } from "preact";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { sessionName } from "./state.ts";
import type { Failure, Session } from "./types.ts";

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

function Unread({ failure }: { failure: Failure }): VNode {
  const { panel, t } = useSurroundings();
  const reason = failure.error === "unreachable" ? t("unreachable") : failure.message;
  return (
    <div class="empty" role="alert">
      <p>{t("chatsFailed", { reason })}</p>
      <button type="button" class="soft" onClick={() => void panel.loadSessions()}>{t("retry")}</button>
    </div>
  );
}

export interface NoChatProps {
  loaded: boolean;
  failure: Failure | undefined;
  missing: boolean;
  onNew: () => void;
}

/** No chat is open. */
export function NoChat({ loaded, failure, missing, onNew }: NoChatProps): VNode {
  const { t } = useSurroundings();
  if (!loaded && failure) return <Unread failure={failure} />;
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
