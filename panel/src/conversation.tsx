// The lines of the chat that is open. Only a window of them is in the page; it slides as one scrolls, and what one looks at
// stays where it is, whatever comes in above or below.
import { Fragment, type RefObject, type VNode } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { EmptyChat } from "./empty.tsx";
import { Icon } from "./icons.tsx";
import * as windows from "./lines_window.ts";
import type { LinesWindow } from "./lines_window.ts";
import { firstSeq, isLive, lastSeq, runAround, type Log, type Run } from "./log.ts";
import { DraftMessage, Message, PendingMessage } from "./message.tsx";
import * as outbox from "./outbox.ts";
import { RunCard } from "./run_card.tsx";
import { placeRuns } from "./runs.ts";
import { logOf, sessionName, type State } from "./state.ts";
import { dayHeading, dayNumber } from "./times.ts";
import type { Line, Session, ToolRun } from "./types.ts";

const NEAR_EDGE = 700; // pixels; closer to an end of the window than this, it slides
const AT_BOTTOM = 32;
const SAME_BREATH = 5 * 60_000; // lines of one speaker within this stand together
const PENDING_MAX = 50;
const ASK_AGAIN = 2000;

interface View {
  /** At the end of the conversation, and staying there. */
  following: boolean;
  window: LinesWindow;
}

/** A line, and where in the log it stands. */
interface Anchor {
  seq: number;
  offset: number;
}

function messages(log: HTMLElement): HTMLElement[] {
  return [...log.querySelectorAll<HTMLElement>("[data-seq]")];
}

/** The first line that can be seen. */
function anchorOf(log: HTMLElement): Anchor | undefined {
  const first = messages(log).find((each) => each.offsetTop + each.offsetHeight > log.scrollTop);
  return first ? { seq: Number(first.dataset.seq), offset: first.offsetTop } : undefined;
}

function elementOf(log: HTMLElement, seq: number): HTMLElement | null {
  return log.querySelector(`[data-seq="${seq}"]`);
}

function bottomDistance(log: HTMLElement): number {
  return log.scrollHeight - log.scrollTop - log.clientHeight;
}

/**
 * Stays at the bottom. Somebody may have scrolled away whose event is still to come: then it is theirs. Lines that shrink
 * lower the place as well, but leave it at the bottom.
 */
function stick(log: HTMLElement, placed: { current: number }): void {
  if (log.scrollTop < placed.current - AT_BOTTOM && bottomDistance(log) > AT_BOTTOM) return;
  log.scrollTop = log.scrollHeight;
  placed.current = log.scrollTop;
}

/**
 * What one looks at stays where it is, by as much as it was moved within the log. Somebody may have scrolled meanwhile whose
 * event is still to come: that counts, too.
 */
function holdStill(log: HTMLElement, anchor: { current: Anchor | undefined }): void {
  const before = anchor.current;
  const held = before ? elementOf(log, before.seq) : null;
  if (before && held && held.offsetTop !== before.offset) log.scrollTop += held.offsetTop - before.offset;
  anchor.current = anchorOf(log);
}

function followsIn(run: Run, line: Line): boolean {
  const before = run[line.seq - firstSeq(run) - 1];
  if (!before || before.from !== line.from || before.quickReplies || before.source === "system" || line.source === "system") return false;
  if (before.tool || line.tool) return false;
  const gap = Date.parse(line.saidAt) - Date.parse(before.saidAt);
  return gap < SAME_BREATH && line.dueAt === undefined && dayNumber(Date.parse(before.saidAt)) === dayNumber(Date.parse(line.saidAt));
}

function startsDay(lines: Run, index: number): boolean {
  const line = lines[index];
  const before = lines[index - 1];
  if (!line) return false;
  return !before || dayNumber(Date.parse(before.saidAt)) !== dayNumber(Date.parse(line.saidAt));
}

function DayHeading({ line }: { line: Line }): VNode {
  const { panel, language } = useSurroundings();
  return <h3 class="day"><span>{dayHeading(Date.parse(line.saidAt), panel.now(), language)}</span></h3>;
}

type Places = ReadonlyMap<number, readonly ToolRun[]>;

/** The runs that began after this line. */
function Cards({ state, places, after }: { state: State; places: Places; after: number }): VNode {
  return <>{places.get(after)?.map((run) => <RunCard key={run.id} run={run} progress={state.progress.get(run.id)} />)}</>;
}

interface LinesProps {
  state: State;
  session: string;
  log: Log;
  run: Run;
  window: LinesWindow;
  places: Places;
  highlighted: number | undefined;
}

function Lines({ state, session, log, run, window, places, highlighted }: LinesProps): VNode {
  const shown = windows.within(run, window);
  return (
    <>
      <Cards state={state} places={places} after={0} />
      {shown.map((line, index) => (
        <Fragment key={line.seq}>
          {startsDay(shown, index) ? <DayHeading line={line} /> : null}
          <Message session={session} line={line} person={state.person} closing={log.closings.get(line.messageId)}
            press={line.quickReplies ? outbox.pressOf(state.outbox, line.messageId) : undefined}
            told={state.told.get(line.messageId)} follows={index > 0 && !places.has(line.seq - 1) && followsIn(run, line)}
            highlighted={line.seq === highlighted} />
          <Cards state={state} places={places} after={line.seq} />
        </Fragment>
      ))}
    </>
  );
}

/** A press of a quick reply shows at its button; only if it was typed is it a line of its own. */
function pendingEntries(state: State, session: string, run: Run): outbox.Entry[] {
  const typed = state.outbox.filter((entry) => entry.quickReplyIndex === undefined);
  return outbox.shown(typed, session, state.person, run.slice(-windows.WINDOW_MAX)).slice(-PENDING_MAX);
}

function Newest({ state, session, run }: { state: State; session: string; run: Run }): VNode {
  return (
    <>
      {pendingEntries(state, session, run).map((entry) => <PendingMessage key={entry.key} entry={entry} />)}
      {state.drafts.filter((draft) => draft.session === session).map((draft) => <DraftMessage key={draft.draftId} draft={draft} />)}
    </>
  );
}

function Beginning({ run, loading }: { run: Run; loading: boolean }): VNode | null {
  const { t } = useSurroundings();
  if (loading && run.length === 0) return <p class="note">{t("loading")}</p>;
  if (run.length === 0) return null;
  return <p class="note">{firstSeq(run) === 1 ? t("beginning") : t("loadingOlder")}</p>;
}

interface Scrolling {
  log: RefObject<HTMLDivElement | null>;
  onScroll(): void;
  toNewest(): void;
  view: View;
  run: Run;
  window: LinesWindow;
  highlighted: number | undefined;
  settled: boolean;
}

function useScrolling(state: State, session: string, lines: Log): Scrolling {
  const { panel } = useSurroundings();
  const log = useRef<HTMLDivElement>(null);
  const anchor = useRef<Anchor | undefined>(undefined);
  const placed = useRef(0);
  const goal = useRef<number | undefined>(undefined);
  const asked = useRef({ edge: 0, at: 0 });
  const [view, setView] = useState<View>({ following: true, window: { from: 1, to: 0 } });
  const [highlighted, setHighlighted] = useState<number>();
  const [settled, setSettled] = useState(false);

  const run = runAround(lines, view.following ? undefined : view.window.from);
  const window = view.following ? windows.atEnd(run) : windows.clamp(view.window, run);
  const atNewest = window.to === lastSeq(run) && isLive(lines, run);

  const ask = (edge: number, load: () => Promise<void>): void => {
    const now = performance.now();
    if (asked.current.edge === edge && now - asked.current.at < ASK_AGAIN) return;
    asked.current = { edge, at: now };
    void load();
  };
  // Only what changes something is drawn again: a slide that leads nowhere would otherwise go on for ever.
  const slideTo = (next: LinesWindow): void => {
    if (next.from !== window.from || next.to !== window.to) setView({ following: false, window: next });
  };
  const slideUp = (): void => {
    if (run.length === 0) return;
    if (window.from > firstSeq(run)) slideTo(windows.up(window, run));
    else if (firstSeq(run) > 1) ask(-firstSeq(run), () => panel.loadOlder(session, firstSeq(run)));
  };
  const slideDown = (): void => {
    if (window.to < lastSeq(run)) slideTo(windows.down(window, run));
    else if (!isLive(lines, run) && run.length > 0) ask(lastSeq(run), () => panel.loadNewer(session, lastSeq(run)));
  };
  const slide = (element: HTMLElement): void => {
    if (element.scrollTop < NEAR_EDGE && !(view.following && window.from > firstSeq(run))) slideUp();
    else if (!view.following && bottomDistance(element) < NEAR_EDGE) slideDown();
  };

  const onScroll = (): void => {
    const element = log.current;
    if (!element) return;
    anchor.current = anchorOf(element);
    const atBottom = bottomDistance(element) < AT_BOTTOM;
    if (atBottom && atNewest) {
      placed.current = element.scrollTop;
      if (!view.following) setView({ following: true, window });
      return;
    }
    // Still where it was put: what is below has grown, and nobody has scrolled.
    if (view.following && element.scrollTop >= placed.current - AT_BOTTOM) stick(element, placed);
    else if (view.following) setView({ following: false, window });
    else slide(element);
  };

  useLayoutEffect(() => {
    const element = log.current;
    if (!element) return;
    const target = goal.current === undefined ? null : elementOf(element, goal.current);
    if (target) {
      goal.current = undefined;
      element.scrollTop = target.offsetTop - element.clientHeight / 3;
      target.focus({ preventScroll: true });
    } else if (view.following) {
      stick(element, placed);
    } else {
      holdStill(element, anchor);
    }
    anchor.current = anchorOf(element);
    if (goal.current === undefined) slide(element);
  });

  useLayoutEffect(() => {
    const { jump } = state;
    if (!jump || jump.session !== session) return;
    goal.current = jump.seq;
    setHighlighted(jump.seq);
    setView({ following: false, window: windows.around(runAround(lines, jump.seq), jump.seq) });
  }, [state.jump]);

  // Heights change without a line being added: the window is resized, the composer grows, details open, pictures load.
  const following = useRef(view.following);
  following.current = view.following;
  useEffect(() => {
    const element = log.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => {
      if (following.current) stick(element, placed);
      else holdStill(element, anchor);
    });
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (lines.live === undefined || settled) return undefined;
    const timer = setTimeout(() => setSettled(true), 300);
    return () => clearTimeout(timer);
  }, [lines.live, settled]);

  const toNewest = useCallback(() => {
    placed.current = 0;
    setView({ following: true, window: { from: 1, to: 0 } });
  }, []);
  return { log, onScroll, toNewest, view, run, window, highlighted, settled };
}

/** How many lines came while one looked at older ones. */
function useNews(following: boolean, live: number): number {
  const left = useRef(live);
  if (following) left.current = live;
  return Math.max(0, live - left.current);
}

function useSeen(session: string, following: boolean, live: number): void {
  const { panel } = useSurroundings();
  useEffect(() => {
    const look = (): void => {
      if (following && !document.hidden) panel.saw(session, live);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [session, following, live]);
}

export interface ConversationProps {
  state: State;
  session: Session;
  /** Grows with everything that one sends: then one wants to see it. */
  sends: number;
  newestCount: number;
  onExample: (text: string) => void;
}

function Failed({ state, session }: { state: State; session: Session }): VNode | null {
  const { panel, t } = useSurroundings();
  const loading = state.loading.get(session.id);
  if (typeof loading !== "object") return null;
  const reason = loading.error === "unreachable" ? t("unreachable") : loading.message;
  return (
    <div class="note" role="alert">
      <p>{loading.error === "not_found" ? t("noSuchChat") : t("historyFailed", { reason })}</p>
      <button type="button" class="soft" onClick={() => panel.reload(session.id)}>{t("retry")}</button>
    </div>
  );
}

export function Conversation({ state, session, sends, newestCount, onExample }: ConversationProps): VNode {
  const { panel, t } = useSurroundings();
  const lines = logOf(state, session.id);
  const scrolling = useScrolling(state, session.id, lines);
  const { view, run, window, toNewest } = scrolling;
  const news = useNews(view.following, lines.live ?? 0);
  useSeen(session.id, view.following, lines.live ?? 0);
  useLayoutEffect(() => {
    if (sends + newestCount > 0) toNewest();
  }, [sends, newestCount]);

  const atNewest = window.to === lastSeq(run) && isLive(lines, run);
  const pending = state.outbox.some((entry) => entry.session === session.id) || state.drafts.some((draft) => draft.session === session.id);
  const places = useMemo(() => placeRuns(state.runs, session.id, window, atNewest), [state.runs, window.from, window.to, atNewest]);
  const empty = lines.live === 0 && run.length === 0 && !pending && places.size === 0;
  useEffect(() => void panel.runs.reach(session.id, window.from), [state.runs, window.from]);
  return (
    <div class="conversation">
      <div class="log" ref={scrolling.log} onScroll={scrolling.onScroll} role="log" tabIndex={0}
        aria-live={scrolling.settled && view.following ? "polite" : "off"} aria-relevant="additions"
        aria-label={t("conversation", { name: sessionName(session) })}>
        <div class="log-inner">
          <Failed state={state} session={session} />
          {empty ? <EmptyChat session={session} onExample={onExample} /> : null}
          <Beginning run={run} loading={state.loading.get(session.id) === "loading"} />
          <Lines state={state} session={session.id} log={lines} run={run} window={window} places={places}
            highlighted={scrolling.highlighted} />
          {atNewest || lines.live === undefined ? <Newest state={state} session={session.id} run={run} /> : null}
        </div>
      </div>
      {view.following ? null : (
        <button type="button" class="newest" onClick={toNewest}>
          <Icon name="down" /><span>{t("jumpNewest")}</span>
          {news > 0 ? <span class="badge" role="status">{t("newLines", { count: news })}</span> : null}
        </button>
      )}
    </div>
  );
}
