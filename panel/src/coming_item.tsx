import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { useAction } from "./action.ts";
import { Avatar } from "./avatar.tsx";
import { CancelRun } from "./cancel_run.tsx";
import { Confirm, useFocusInside } from "./confirm.tsx";
import { useNow, useSurroundings } from "./context.ts";
import type { Key } from "./i18n.ts";
import { Icon, type IconName } from "./icons.tsx";
import { plainName } from "./runs.ts";
import { countdown, dayAndTime, exact, tomorrowAtNine } from "./times.ts";
import type { ComingItem, ComingKind, Millis } from "./types.ts";
import { WhenField } from "./when_field.tsx";

const MINUTE = 60_000;
const KINDS: Record<ComingKind, Key> = { message: "kindMessage", scheduled: "kindScheduled", question: "kindQuestion", run: "kindRun" };
const ICONS: Record<ComingKind, IconName> = { message: "clock", scheduled: "clock", question: "question", run: "hourglass" };
const RUN_STATES: Record<string, Key> = { waiting: "comingWaiting", running: "comingRunning", held: "comingHeld" };
const ON_TIMEOUT: Record<string, Key> = { default: "onTimeoutDefault", remind: "onTimeoutRemind", expire: "onTimeoutExpire" };
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
  return <Confirm question={t("cancelSure")} onYes={() => void cancel()} onNo={onDone} />;
}

type Open = "edit" | "snooze" | "cancel" | undefined;

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

/** What can be done with it depends on what it is. */
function ItemActions({ session, item, onJump }: ComingItemProps): VNode {
  const { panel, t } = useSurroundings();
  if (item.kind !== "question" && item.runId === undefined) return <Actions item={item} />;
  const seq = item.runId === undefined ? item.seq : panel.store.state.runs.get(item.runId)?.afterSeq;
  const jump = (): void => {
    if (seq) void panel.jumpTo(session, seq);
    onJump();
  };
  return (
    <div class="buttons wrap">
      {seq ? <button type="button" class="quiet small" onClick={jump}>{t("goTo")}</button> : null}
      {item.runId === undefined ? null : <CancelRun id={item.runId} />}
    </div>
  );
}

export function ComingItemView(props: ComingItemProps): VNode {
  const { item } = props;
  const { panel, t } = useSurroundings();
  const timeout = item.onTimeout === undefined ? undefined : ON_TIMEOUT[item.onTimeout];
  const state = item.kind === "run" ? RUN_STATES[item.state ?? ""] : undefined;
  const from = item.kind === "run" ? plainName(item.from) : item.from;
  const named = item.kind !== "run" || from !== item.text;
  return (
    <li class={`coming-item coming-${item.kind}`} data-id={item.id}>
      <div class="coming-head"><Icon name={ICONS[item.kind]} /><Countdown at={item.at} /></div>
      <p class="coming-text" dir="auto">{item.text}</p>
      <p class="hint coming-who">
        {item.kind === "run" ? <Icon name="tool" /> : <Avatar name={item.from} />}{named ? <span dir="auto">{from}</span> : null}
        {item.to === undefined || item.to === panel.store.state.person ? null : <span>{t("toName", { name: item.to })}</span>}
        <span>{named ? "· " : ""}{t(state ?? KINDS[item.kind])}</span>
        {timeout ? <span>· {t(timeout)}</span> : null}{item.inOutbox ? <span>· {t("inOutbox")}</span> : null}
      </p>
      <ItemActions {...props} />
    </li>
  );
}
