import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useNow, useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import type { Question } from "./log.ts";
import type { Entry } from "./outbox.ts";
import { countdown, exact } from "./times.ts";
import type { Line } from "./types.ts";

const LONG = 60; // characters; more than a label, so it is set like a text

export interface QuickRepliesProps {
  session: string;
  line: Line;
  question: Question;
  /** The press that is on its way, or has failed. */
  press: Entry | undefined;
  /** What the loser of a race was told. */
  told: string | undefined;
  person: string;
}

function Deadline({ at }: { at: string }): VNode {
  const { t, language } = useSurroundings();
  const now = useNow();
  const due = Date.parse(at);
  return (
    <span class="deadline" title={exact(due, language)}>
      <Icon name="clock" />{t("answerIn", { time: countdown(due, now, language) })}
    </span>
  );
}

function inWords(props: QuickRepliesProps, t: ReturnType<typeof useSurroundings>["t"]): string | undefined {
  const { question, press, told, person, line } = props;
  if (press?.state === "queued") return t("answerQueued");
  if (press?.state === "sending") return t("answerPending");
  if (told !== undefined) return question.text === undefined ? told : t("answeredElsewhere", { text: question.text });
  switch (question.state) {
    case "answered": return question.by === undefined || question.by === person ? t("answeredYou") : t("answered", { name: question.by });
    case "closed": return t("closedTyped");
    case "defaulted": return t("defaulted", { text: question.text ?? "" });
    case "expired": return t("expired");
    case "open": return line.to !== undefined && line.to !== person ? t("answerFor", { name: line.to }) : undefined;
  }
}

function FailedPress({ press }: { press: Entry }): VNode {
  const { panel, t } = useSurroundings();
  return (
    <div class="failure" role="alert">
      <span>{t("answerFailed", { reason: press.message ?? press.error ?? "" })}</span>
      <button type="button" class="soft small" onClick={() => panel.retry(press.key)}>{t("retry")}</button>
      <button type="button" class="quiet small" onClick={() => panel.discard(press.key)}>{t("discard")}</button>
    </div>
  );
}

/** The place that a key leads to; undefined for keys that mean nothing here. */
export function placeForKey(key: string, place: number, count: number): number | undefined {
  switch (key) {
    case "ArrowRight": case "ArrowDown": return (place + 1) % count;
    case "ArrowLeft": case "ArrowUp": return (place + count - 1) % count;
    case "Home": return 0;
    case "End": return count - 1;
    default: return undefined;
  }
}

/** 1 to 9 are the first nine, 0 is the tenth. */
export function placeForDigit(key: string, count: number): number | undefined {
  if (!/^[0-9]$/.test(key)) return undefined;
  const place = (Number(key) + 9) % 10;
  return place < count ? place : undefined;
}

export function QuickReplies(props: QuickRepliesProps): VNode {
  const { session, line, question, press, person } = props;
  const { panel, t } = useSurroundings();
  const [place, setPlace] = useState(0);
  const group = useRef<HTMLDivElement>(null);
  const hadFocus = useRef(false);
  const replies = line.quickReplies ?? [];
  const pending = press !== undefined && press.state !== "failed";
  const mine = line.to === undefined || line.to === person;
  const enabled = question.state === "open" && !pending && mine && props.told === undefined;
  const chosen = pending ? press.quickReplyIndex : question.index;

  // A button that is disabled loses the focus to nowhere; the group takes it instead, and says what was chosen.
  hadFocus.current = group.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (hadFocus.current && !enabled) group.current?.focus({ preventScroll: true });
  }, [enabled]);
  useEffect(() => setPlace(0), [line.messageId]);

  const choose = (index: number): void => {
    if (!panel.press(session, line, index)) panel.store.dispatch({ type: "notice", text: t("tooMuchWaits"), calm: false });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!enabled || event.ctrlKey || event.metaKey || event.altKey) return;
    const digit = placeForDigit(event.key, replies.length);
    const next = placeForKey(event.key, place, replies.length);
    if (digit === undefined && next === undefined) return;
    event.preventDefault();
    if (digit !== undefined) return choose(digit);
    if (next === undefined) return;
    setPlace(next);
    group.current?.querySelectorAll("button")[next]?.focus();
  };

  const words = inWords(props, t);
  return (
    <div class={enabled ? "replies" : "replies replies-over"}>
      <div class="replies-row" role="group" aria-label={t("quickReplies")} title={enabled ? t("quickRepliesKeys") : undefined}
        ref={group} tabIndex={-1} onKeyDown={onKeyDown} data-state={pending ? "pending" : question.state}>
        {replies.map((reply, index) => (
          <button key={index} type="button" class={reply.length > LONG ? "reply reply-long" : "reply"} dir="auto" disabled={!enabled} aria-pressed={index === chosen}
            tabIndex={index === place ? 0 : -1} onFocus={() => setPlace(index)} onClick={() => choose(index)}>
            {index === chosen ? <Icon name="check" /> : null}<span>{reply}</span>
          </button>
        ))}
      </div>
      <div class="replies-state" role="status">
        {enabled && line.answerBy !== undefined ? <Deadline at={line.answerBy} /> : null}
        {words === undefined ? null : <span>{words}</span>}
      </div>
      {press?.state === "failed" && question.state === "open" ? <FailedPress press={press} /> : null}
    </div>
  );
}
