import type { RefObject, VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Outcome } from "./api.ts";
import { Avatar } from "./avatar.tsx";
import { useNow, useSurroundings, type Surroundings } from "./context.ts";
import { hasWords, type Key } from "./i18n.ts";
import { Icon } from "./icons.tsx";
import { countdown, dayAndTime, exact, tomorrowAtNine } from "./times.ts";
import type { ComingItem, Failure, Millis } from "./types.ts";
import { WhenField } from "./when_field.tsx";

const MINUTE = 60_000;
const KINDS = { message: "kindMessage", scheduled: "kindScheduled", question: "kindQuestion" } as const;
const ON_TIMEOUT: Record<string, Key> = { default: "onTimeoutDefault", remind: "onTimeoutRemind", expire: "onTimeoutExpire" };
const CALM: readonly string[] = ["already_sent", "already_delivered", "already_cancelled", "being_sent", "not_found", "wrong_state"];

function failureWords({ t }: Surroundings, failure: Failure): string {
  if (CALM.includes(failure.error) && hasWords(failure.error)) return t(failure.error);
  return t("actionFailed", { reason: failure.error === "unreachable" ? t("unreachable") : failure.message });
}

/** Runs a change and says how it ended; too late is nothing to be alarmed about. */
function useAction(): (action: Promise<Outcome<unknown>>, done: string) => Promise<void> {
  const surroundings = useSurroundings();
  return async (action, done) => {
    const outcome = await action;
    const { store } = surroundings.panel;
    if (outcome.ok) store.dispatch({ type: "notice", text: done, calm: true });
    else store.dispatch({ type: "notice", text: failureWords(surroundings, outcome.failure), calm: CALM.includes(outcome.failure.error) });
  };
}

interface PartProps {
  item: ComingItem;
  onDone: () => void;
}

function Editor({ item, onDone }: PartProps): VNode {
  const { panel, t, language } = useSurroundings();
  const act = useAction();
  const [text, setText] = useState(item.text);
  const [at, setAt] = useState<Millis>();
  const rewritten = item.kind === "scheduled" && text !== item.text && text.trim() !== "";
  const save = async (): Promise<void> => {
    const done = at === undefined ? t("doneSaved") : t("doneMoved", { time: dayAndTime(at, panel.now(), language) });
    if (rewritten) await act(panel.coming.rewrite(item, text, at), done);
    else if (at !== undefined) await act(panel.coming.move(item, at), done);
    onDone();
  };
  return (
    <form class="editor" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      {item.kind === "scheduled" ? (
        <label class="field"><span>{t("editText")}</span>
          <textarea rows={3} dir="auto" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      ) : null}
      <WhenField onTime={setAt} />
      <div class="buttons">
        <button type="button" class="quiet" onClick={onDone}>{t("close")}</button>
        <button type="submit" class="primary" disabled={!rewritten && at === undefined}>{t("save")}</button>
      </div>
    </form>
  );
}

function Snooze({ item, onDone }: PartProps): VNode {
  const { panel, t, language } = useSurroundings();
  const act = useAction();
  const due = Math.max(Date.parse(item.at), panel.now());
  const move = async (at: Millis): Promise<void> => {
    await act(panel.coming.move(item, at), t("doneMoved", { time: dayAndTime(at, panel.now(), language) }));
    onDone();
  };
  return (
    <div class="buttons wrap" role="group" aria-label={t("snooze")}>
      <button type="button" class="soft" onClick={() => void move(due + 10 * MINUTE)}>{t("snooze10")}</button>
      <button type="button" class="soft" onClick={() => void move(due + 60 * MINUTE)}>{t("snooze60")}</button>
      <button type="button" class="soft" onClick={() => void move(tomorrowAtNine(panel.now()))}>{t("snoozeTomorrow")}</button>
      <button type="button" class="quiet" onClick={onDone}>{t("close")}</button>
    </div>
  );
}

function Cancel({ item, onDone }: PartProps): VNode {
  const { panel, t } = useSurroundings();
  const act = useAction();
  const cancel = async (): Promise<void> => {
    await act(panel.coming.cancel(item), t("doneCancelled"));
    onDone();
  };
  return (
    <div class="buttons wrap" role="group" aria-label={t("cancelSure")}>
      <span>{t("cancelSure")}</span>
      <button type="button" class="danger" onClick={() => void cancel()}>{t("yes")}</button>
      <button type="button" class="quiet" onClick={onDone}>{t("no")}</button>
    </div>
  );
}

type Open = "edit" | "snooze" | "cancel" | undefined;

/** What was pressed is gone when something else stands in its place: the focus goes to that, and not to nowhere. */
function useFocusInside(place: RefObject<HTMLDivElement | null>, open: Open): void {
  const before = useRef(open);
  useLayoutEffect(() => {
    if (before.current !== open) place.current?.querySelector<HTMLElement>("textarea, input, button")?.focus();
    before.current = open;
  }, [open]);
}

function Actions({ item }: { item: ComingItem }): VNode {
  const { panel, t } = useSurroundings();
  const act = useAction();
  const [open, setOpen] = useState<Open>();
  const place = useRef<HTMLDivElement>(null);
  useFocusInside(place, open);
  const close = (): void => setOpen(undefined);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || open === undefined) return;
    event.preventDefault();
    close();
  };
  return (
    <div ref={place} onKeyDown={onKeyDown}>
      {open === "edit" ? <Editor item={item} onDone={close} /> : null}
      {open === "snooze" ? <Snooze item={item} onDone={close} /> : null}
      {open === "cancel" ? <Cancel item={item} onDone={close} /> : null}
      {open === undefined ? (
        <div class="buttons wrap">
          <button type="button" class="quiet small" onClick={() => setOpen("edit")}>{t("edit")}</button>
          <button type="button" class="quiet small" onClick={() => setOpen("snooze")}>{t("snooze")}</button>
          <button type="button" class="quiet small" onClick={() => void act(panel.coming.sendNow(item), t("doneSent"))}>{t("sendNow")}</button>
          <button type="button" class="quiet small" onClick={() => setOpen("cancel")}>{t("cancel")}</button>
        </div>
      ) : null}
    </div>
  );
}

function Countdown({ at }: { at: string }): VNode {
  const { language } = useSurroundings();
  const now = useNow();
  const due = Date.parse(at);
  return <time class="countdown" dateTime={at} title={exact(due, language)}>{countdown(due, now, language)}</time>;
}

export interface ComingItemProps {
  session: string;
  item: ComingItem;
  onJump: () => void;
}

export function ComingItemView({ session, item, onJump }: ComingItemProps): VNode {
  const { panel, t } = useSurroundings();
  const timeout = item.onTimeout === undefined ? undefined : ON_TIMEOUT[item.onTimeout];
  const jump = (): void => {
    if (item.seq !== undefined) void panel.jumpTo(session, item.seq);
    onJump();
  };
  return (
    <li class={`coming-item coming-${item.kind}`} data-id={item.id}>
      <div class="coming-head"><Icon name={item.kind === "question" ? "question" : "clock"} /><Countdown at={item.at} /></div>
      <p class="coming-text" dir="auto">{item.text}</p>
      <p class="hint coming-who">
        <Avatar name={item.from} /><span dir="auto">{item.from}</span>
        {item.to === undefined || item.to === panel.store.state.person ? null : <span>{t("toName", { name: item.to })}</span>}
        <span>· {t(KINDS[item.kind])}</span>
        {timeout ? <span>· {t(timeout)}</span> : null}{item.inOutbox ? <span>· {t("inOutbox")}</span> : null}
      </p>
      {item.kind === "question"
        ? <div class="buttons wrap"><button type="button" class="quiet small" onClick={jump}>{t("goTo")}</button></div>
        : <Actions item={item} />}
    </li>
  );
}
