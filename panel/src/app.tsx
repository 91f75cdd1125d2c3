import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useReducer, useState } from "preact/hooks";
import { Avatar } from "./avatar.tsx";
import { ClockBar, ConnectionBar, Notices } from "./bars.tsx";
import { ChatList } from "./chat_list.tsx";
import { ComingDrawer } from "./coming_drawer.tsx";
import { Composer } from "./composer.tsx";
import { surround, SurroundingsContext, useSurroundings } from "./context.ts";
import { Conversation } from "./conversation.tsx";
import { NoChat } from "./empty.tsx";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Icon } from "./icons.tsx";
import { Login } from "./login.tsx";
import { NewChat } from "./new_chat.tsx";
import type { Panel } from "./panel.ts";
import * as preferences from "./preferences.ts";
import { Search } from "./search.tsx";
import { Settings } from "./settings.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { sessionName, unreadInAll, unreadOf, type State } from "./state.ts";
import { device } from "./storage.ts";
import type { Session } from "./types.ts";

const WIDE = 1180; // from here on, what is coming stands beside the conversation

type Overlay = "newChat" | "settings" | "shortcuts" | undefined;

function useStoreState(panel: Panel): State {
  const [, again] = useReducer((count: number) => count + 1, 0);
  const { state } = panel.store;
  // Here and below not useEffect, which waits for the next frame: a change or a key would be lost until then.
  useLayoutEffect(() => {
    const stop = panel.store.subscribe(() => again(undefined));
    if (panel.store.state !== state) again(undefined); // it changed while this page was built
    return stop;
  }, [panel]);
  return state;
}

/** On a wide screen the drawer stays as it was left; elsewhere it lies over the conversation and starts closed. */
function useDrawer(): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(() => window.innerWidth >= WIDE && device.get("drawer") !== "closed");
  const change = (next: boolean): void => {
    if (window.innerWidth >= WIDE) device.set("drawer", next ? null : "closed");
    setOpen(next);
  };
  return [open, change];
}

interface HeadProps {
  state: State;
  session: Session;
  drawer: boolean;
  onMenu: () => void;
  onSearch: () => void;
  onDrawer: () => void;
}

function ConversationHead({ state, session, drawer, onMenu, onSearch, onDrawer }: HeadProps): VNode {
  const { t } = useSurroundings();
  const elsewhere = unreadInAll(state) - unreadOf(state, session);
  const coming = state.coming?.items.length ?? 0;
  const members = session.kind === "group" ? [...session.users, ...session.agents].join(", ") : session.title ? session.agents.join(", ") : "";
  return (
    <header class="conversation-head">
      <button type="button" class="round narrow-only" aria-label={t("menu")} onClick={onMenu}>
        <Icon name="menu" />{elsewhere > 0 ? <span class="dot" aria-label={t("unread", { count: elsewhere })} /> : null}
      </button>
      <Avatar name={sessionName(session)} />
      <div class="conversation-name"><h1 dir="auto">{sessionName(session)}</h1>{members ? <p class="hint">{members}</p> : null}</div>
      <button type="button" class="round" aria-label={t("search")} title={`${t("search")} (Ctrl+K)`} onClick={onSearch}><Icon name="search" /></button>
      <button type="button" class="coming-button" aria-expanded={drawer} aria-label={`${t("coming")}: ${coming}`} title={`${t("comingOpen")} (Alt+C)`} onClick={onDrawer}>
        <Icon name="bell" />{coming > 0 ? <span class="badge">{coming}</span> : null}
      </button>
    </header>
  );
}

interface Actions {
  search: () => void;
  newChat: () => void;
  drawer: () => void;
  newest: () => void;
  shortcuts: () => void;
  close: () => boolean;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function shortcutOf(event: KeyboardEvent, panel: Panel, actions: Actions): (() => void) | undefined {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") return actions.search;
  if (plain && event.key === "?" && !isTyping(event.target)) return actions.shortcuts;
  if (!event.altKey || event.ctrlKey || event.metaKey) return undefined;
  switch (event.code) {
    case "ArrowUp": return () => panel.openNeighbour(-1);
    case "ArrowDown": return () => panel.openNeighbour(1);
    case "KeyN": return actions.newChat;
    case "KeyC": return actions.drawer;
    case "End": return actions.newest;
    default: return undefined;
  }
}

function useShortcuts(panel: Panel, actions: Actions): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (document.querySelector("dialog[open]") || event.isComposing || event.defaultPrevented) return;
      if (event.key === "Escape" && actions.close()) return event.preventDefault();
      const action = shortcutOf(event, panel, actions);
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}

function Main({ state, onLanguage }: { state: State; onLanguage: () => void }): VNode {
  const { panel, t } = useSurroundings();
  const [overlay, setOverlay] = useState<Overlay>();
  const [menu, setMenu] = useState(false);
  const [drawer, setDrawer] = useDrawer();
  const [search, setSearch] = useState(false);
  const [sends, setSends] = useState(0);
  const [newest, setNewest] = useState(0);
  const [fill, setFill] = useState({ text: "", count: 0 });
  const session = state.current === undefined ? undefined : state.sessions.get(state.current);

  const closeAll = (): boolean => {
    const lying = search || menu || (drawer && window.innerWidth < WIDE);
    setSearch(false);
    setMenu(false);
    if (window.innerWidth < WIDE) setDrawer(false);
    return lying;
  };
  useShortcuts(panel, {
    search: () => setSearch(true),
    newChat: () => setOverlay("newChat"),
    drawer: () => setDrawer(!drawer),
    newest: () => setNewest(newest + 1),
    shortcuts: () => setOverlay("shortcuts"),
    close: closeAll,
  });
  useLayoutEffect(() => {
    setSearch(false);
    setMenu(false);
    setSends(0);
    setNewest(0);
    setFill({ text: "", count: 0 });
  }, [state.current]);

  const send = (text: string): boolean => {
    if (!session) return false;
    const taken = panel.say(session.id, text);
    if (taken) setSends(sends + 1);
    else panel.store.dispatch({ type: "notice", text: t("tooMuchWaits"), calm: false });
    return taken;
  };
  const onJump = (): void => void (window.innerWidth < WIDE && setDrawer(false));
  const classes = ["app", drawer ? "with-drawer" : "", menu ? "with-menu" : ""].filter(Boolean).join(" ");
  return (
    <div class={classes}>
      <ChatList state={state} onOpen={() => setMenu(false)} onNew={() => { setMenu(false); setOverlay("newChat"); }}
        onSettings={() => setOverlay("settings")} onShortcuts={() => setOverlay("shortcuts")} onClose={() => setMenu(false)} />
      <main class="middle">
        {session ? (
          <ConversationHead state={state} session={session} drawer={drawer} onMenu={() => setMenu(true)} onSearch={() => setSearch(!search)}
            onDrawer={() => setDrawer(!drawer)} />
        ) : (
          <header class="conversation-head"><button type="button" class="round narrow-only" aria-label={t("menu")} onClick={() => setMenu(true)}><Icon name="menu" /></button></header>
        )}
        <ConnectionBar phase={state.phase} />
        <ClockBar offset={state.offset} />
        {session && search ? <Search key={session.id} session={session.id} onClose={() => setSearch(false)} /> : null}
        {session ? (
          <>
            <Conversation key={session.id} state={state} session={session} sends={sends} newestCount={newest}
              onExample={(text) => setFill({ text, count: fill.count + 1 })} />
            <Composer key={`composer-${session.id}`} session={session.id} fill={fill} onSend={send} />
          </>
        ) : <NoChat loaded={state.sessionsLoaded} failure={state.sessionsFailure} missing={state.current !== undefined} onNew={() => setOverlay("newChat")} />}
      </main>
      {drawer && session ? <ComingDrawer state={state} onClose={() => setDrawer(false)} onJump={onJump} /> : null}
      {menu || drawer ? <div class="shade" onClick={closeAll} /> : null}
      <Notices state={state} />
      {overlay === "newChat" ? <NewChat state={state} onClose={() => setOverlay(undefined)} /> : null}
      {overlay === "settings" ? <Settings state={state} onLanguage={onLanguage} onClose={() => setOverlay(undefined)} /> : null}
      {overlay === "shortcuts" ? <Shortcuts onClose={() => setOverlay(undefined)} /> : null}
    </div>
  );
}

function Broken({ error }: { error: Error }): VNode {
  const { t } = useSurroundings();
  return (
    <main class="login">
      <div class="card" role="alert">
        <h1>{t("brokenTitle")}</h1>
        <p>{t("brokenHint")}</p>
        <pre class="payload" tabIndex={0}>{error.message}</pre>
        <button type="button" class="primary" onClick={() => location.reload()}>{t("reload")}</button>
      </div>
    </main>
  );
}

export function App({ panel }: { panel: Panel }): VNode {
  const state = useStoreState(panel);
  const [language, setLanguage] = useState(preferences.language);
  const surroundings = useMemo(() => surround(panel, language), [panel, language]);
  useLayoutEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  return (
    <SurroundingsContext.Provider value={surroundings}>
      <ErrorBoundary otherwise={(error) => <Broken error={error} />}>
        {state.phase === "unauthorized" ? <Login /> : <Main state={state} onLanguage={() => setLanguage(preferences.language())} />}
      </ErrorBoundary>
    </SurroundingsContext.Provider>
  );
}
