import type { ComponentChildren, VNode } from "preact";
import { useState } from "preact/hooks";
import { Avatar } from "./avatar.tsx";
import { pure, useSurroundings } from "./context.ts";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Icon } from "./icons.tsx";
import { questionOf } from "./log.ts";
import { GrowingText, MessageText } from "./message_text.tsx";
import type { Entry } from "./outbox.ts";
import { TimeButton } from "./punctuality.tsx";
import { QuickReplies } from "./quick_replies.tsx";
import { plainName } from "./runs.ts";
import { clockTime, clockTimeWithSeconds, dayNumber, exact } from "./times.ts";
import { ToolFiles } from "./tool_files.tsx";
import type { Draft, Line } from "./types.ts";

export interface MessageProps {
  session: string;
  line: Line;
  closing: Line | undefined;
  press: Entry | undefined;
  told: string | undefined;
  person: string;
  /** Said by the same as the line before, shortly after it. */
  follows: boolean;
  highlighted: boolean;
}

const SHORT = 10 * 60_000; // below this the seconds matter

function WrittenBefore({ line }: { line: Line }): VNode | null {
  const { t, language } = useSurroundings();
  if (line.dueAt === undefined && line.source !== "scheduled_send") return null;
  const written = Date.parse(line.createdAt);
  const due = Date.parse(line.dueAt ?? line.saidAt);
  const other = dayNumber(written) !== dayNumber(due);
  const time = due - written < SHORT ? clockTimeWithSeconds : clockTime;
  const when = other ? exact(written, language) : time(written);
  return (
    <span class="mark" title={`${t("asked")}: ${exact(written, language)}\n${t("due")}: ${exact(due, language)}`}>
      <Icon name="clock" />{t("writtenDue", { written: when, due: time(due) })}
    </span>
  );
}

/** That a tool said it, and which. */
function ToolMark({ line }: { line: Line }): VNode | null {
  const { t } = useSurroundings();
  if (!line.tool) return null;
  return <span class="mark tool-mark"><Icon name="tool" />{t("toolNamed", { name: plainName(line.tool.aiName) })}</span>;
}

function Head({ name, children }: { name: string; children: ComponentChildren }): VNode {
  return <div class="head"><span class="who" dir="auto">{name}</span>{children}</div>;
}

function Body({ line }: { line: Line }): VNode {
  if (line.text === "" && line.payloadText !== undefined) return <pre class="payload" tabIndex={0}>{line.payloadText}</pre>;
  return <MessageText text={line.text} />;
}

function SystemLine({ line, highlighted }: { line: Line; highlighted: boolean }): VNode {
  const { t } = useSurroundings();
  return (
    <article class={`message system${highlighted ? " highlighted" : ""}`} data-seq={line.seq} data-source={line.source}
      aria-label={t("system")} tabIndex={-1}>
      <div class="bubble" dir="auto"><Body line={line} /></div>
      <TimeButton line={line} />
    </article>
  );
}

function SpokenLine(props: MessageProps): VNode {
  const { line, person, follows, highlighted, closing } = props;
  const { t } = useSurroundings();
  const own = line.source === "user" && line.from === person;
  const name = own ? t("you") : line.from;
  const question = questionOf(line, closing);
  const classes = ["message", own ? "own" : "other", follows ? "follows" : "", highlighted ? "highlighted" : ""];
  return (
    <article class={classes.filter(Boolean).join(" ")} data-seq={line.seq} data-source={line.source}
      aria-label={t("messageFrom", { name })} tabIndex={-1}>
      {own ? null : <Avatar name={line.from} />}
      <div class="content">
        <Head name={name}><ToolMark line={line} /><WrittenBefore line={line} /><TimeButton line={line} /></Head>
        <div class="bubble" dir="auto"><Body line={line} /></div>
        {line.tool ? <ToolFiles tool={line.tool} text={line.text} /> : null}
        {question ? <QuickReplies {...props} question={question} /> : null}
      </div>
    </article>
  );
}

/** A line whose drawing fails is shown as the text it is. */
export const Message = pure(function Message(props: MessageProps): VNode {
  const { line } = props;
  const plain = (): VNode => (
    <article class="message other" data-seq={line.seq} data-source={line.source} tabIndex={-1}>
      <div class="content"><div class="bubble plain" dir="auto">{line.text}</div></div>
    </article>
  );
  return (
    <ErrorBoundary otherwise={plain}>
      {line.source === "system" && !line.quickReplies
        ? <SystemLine line={line} highlighted={props.highlighted} />
        : <SpokenLine {...props} />}
    </ErrorBoundary>
  );
});

function StopButton({ draft }: { draft: Draft }): VNode {
  const { panel, t } = useSurroundings();
  const [asked, setAsked] = useState(false);
  return (
    <button type="button" class="quiet small stop" disabled={asked} onClick={() => setAsked(panel.stop(draft.session, draft.from))}>
      <Icon name="stop" />{t(asked ? "stopAsked" : "stop")}
    </button>
  );
}

/** What an agent is writing; its final line takes its place. */
export const DraftMessage = pure(function DraftMessage({ draft }: { draft: Draft }): VNode {
  const { t } = useSurroundings();
  return (
    <article class="message other draft" data-draft={draft.draftId} aria-label={t("draft", { name: draft.from })}>
      <Avatar name={draft.from} />
      <div class="content">
        <Head name={draft.from}><span class="writing">{t("draft", { name: draft.from })}</span></Head>
        <div class="bubble" dir="auto">
          <GrowingText text={draft.text} />
          <span class="dots" aria-hidden="true"><i /><i /><i /></span>
        </div>
        <StopButton draft={draft} />
      </div>
    </article>
  );
});

function Delivery({ entry }: { entry: Entry }): VNode {
  const { panel, t } = useSurroundings();
  if (entry.state !== "failed") {
    return <span class="delivery" role="status">{t(entry.state === "queued" ? "queued" : "sending")}</span>;
  }
  return (
    <span class="delivery failure" role="alert">
      <Icon name="alert" /><span>{t("failed", { reason: entry.message ?? entry.error ?? "" })}</span>
      <button type="button" class="soft small" onClick={() => panel.retry(entry.key)}>{t("retry")}</button>
      <button type="button" class="quiet small" onClick={() => panel.discard(entry.key)}>{t("discard")}</button>
    </span>
  );
}

/** Something of one's own that has no number yet. */
export const PendingMessage = pure(function PendingMessage({ entry }: { entry: Entry }): VNode {
  const { t } = useSurroundings();
  return (
    <article class={`message own pending pending-${entry.state}`} data-key={entry.key} aria-label={t("messageFrom", { name: t("you") })}>
      <div class="content">
        <Head name={t("you")}><span class="time-plain">{clockTime(entry.at)}</span></Head>
        <div class="bubble" dir="auto"><MessageText text={entry.text} /></div>
        <Delivery entry={entry} />
      </div>
    </article>
  );
});
