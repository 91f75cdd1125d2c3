import type { VNode } from "preact";
import { Avatar } from "./avatar.tsx";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { sessionName, sessionsInOrder, unreadOf, type State } from "./state.ts";
import { exact, listTime } from "./times.ts";
import type { Session } from "./types.ts";

function Badge({ count }: { count: number }): VNode | null {
  const { t } = useSurroundings();
  if (count === 0) return null;
  return <span class="badge" aria-label={t("unread", { count })}>{count > 99 ? "99+" : count}</span>;
}

function preview(session: Session, person: string, you: string): string {
  if (session.lastText === undefined) return "";
  const text = session.lastText.replace(/\s+/g, " ");
  const who = session.lastFrom === person ? you : session.kind === "group" ? session.lastFrom : undefined;
  return who === undefined ? text : `${who}: ${text}`;
}

interface ChatProps {
  state: State;
  session: Session;
  onOpen: () => void;
}

function Chat({ state, session, onOpen }: ChatProps): VNode {
  const { panel, t, language } = useSurroundings();
  const open = (): void => {
    void panel.open(session.id);
    onOpen();
  };
  const at = Date.parse(session.lastAt);
  const current = session.id === state.current;
  const unread = unreadOf(state, session);
  return (
    <li>
      <button type="button" class={unread > 0 ? "chat unread" : "chat"} aria-current={current ? "true" : undefined} onClick={open}
        data-session={session.id}>
        <Avatar name={sessionName(session)} />
        <span class="chat-name" dir="auto">{sessionName(session)}</span>
        <span class="chat-time" title={exact(at, language)}>{listTime(at, panel.now(), language)}</span>
        <span class="chat-text" dir="auto">{preview(session, state.person, t("you"))}</span>
        <Badge count={unread} />
      </button>
    </li>
  );
}

export interface ChatListProps {
  state: State;
  onOpen: () => void;
  onNew: () => void;
  onSettings: () => void;
  onShortcuts: () => void;
  onClose: () => void;
}

export function ChatList(props: ChatListProps): VNode {
  const { state } = props;
  const { t } = useSurroundings();
  const sessions = sessionsInOrder(state);
  return (
    <nav class="chats" aria-label={t("chats")}>
      <header>
        <span class="brand"><img src="/belfry.svg" alt="" width="28" height="28" />{t("name")}</span>
        <button type="button" class="round" aria-label={t("newChat")} title={t("newChat")} onClick={props.onNew}><Icon name="plus" /></button>
        <button type="button" class="round narrow-only" aria-label={t("close")} onClick={props.onClose}><Icon name="close" /></button>
      </header>
      <ul class="chat-items">
        {sessions.map((session) => <Chat key={session.id} state={state} session={session} onOpen={props.onOpen} />)}
        {state.sessionsLoaded && sessions.length === 0 ? <li class="note">{t("noChats")}</li> : null}
      </ul>
      <footer>
        <button type="button" class="quiet person" onClick={props.onSettings}>
          <Icon name="settings" /><span>{t("settings")}</span><span class="person-name">{state.person}</span>
        </button>
        <button type="button" class="round" aria-label={t("shortcuts")} title={t("shortcuts")} onClick={props.onShortcuts}><Icon name="keyboard" /></button>
      </footer>
    </nav>
  );
}
