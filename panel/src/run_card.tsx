// One run of a chat: what its tools do and when they will tell. Calm: one line when it has ended.
import type { RefObject, VNode } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { failureWords } from "./action.ts";
import { CancelRun } from "./cancel_run.tsx";
import { pure, useNow, useSurroundings, type Surroundings } from "./context.ts";
import { ErrorBoundary } from "./error_boundary.tsx";
import type { Key } from "./i18n.ts";
import { Icon, type IconName } from "./icons.tsx";
import { isFinal, isRunning, isWorking, plainName, stepsDone } from "./runs.ts";
import { clockTime, dayAndTime, dayNumber, exact, left, precise, stopwatch } from "./times.ts";
import type { Millis, Progress, RunStep, StepDetails, ToolRun } from "./types.ts";

const NEWS_MAX = 5000; // a run that is older than this when it is first seen is no news

const STEP_WORDS: Record<string, Key> = {
  waiting: "stepWaiting", running: "stepRunning", late: "stepLate", held: "stepHeld", reported: "stepReported", failed: "stepFailed",
  timed_out: "stepTimedOut", interrupted: "stepInterrupted", cancelled: "stepCancelled", skipped: "stepSkipped",
};
const RUN_WORDS: Record<string, Key> = { running: "runRunning", completed: "runCompleted", failed: "runFailed", cancelled: "runCancelled" };
const ICONS: Record<string, IconName> = {
  waiting: "clock", held: "hourglass", reported: "check", completed: "check", failed: "alert", timed_out: "alert", interrupted: "alert",
  cancelled: "close", skipped: "skip",
};

/** A word that this page does not know is shown as it is. */
function wordOf({ t }: Surroundings, words: Record<string, Key>, state: string): string {
  const key = Object.hasOwn(words, state) ? words[state] : undefined;
  return key === undefined ? state.replaceAll("_", " ") : t(key);
}

export function titleOf({ t }: Surroundings, run: ToolRun): string {
  const only = run.steps.length === 1 ? run.steps[0] : undefined;
  return run.title ?? (only ? plainName(only.aiName) : t("runSteps", { count: run.steps.length }));
}

/** One tool and no title: its name stands above, and need not be said again. */
function isPlain(run: ToolRun): boolean {
  return run.steps.length === 1 && run.title === undefined;
}

function Mark({ state }: { state: string }): VNode {
  const spins = state === "running" || state === "late";
  return <span class="run-mark" aria-hidden="true">{spins ? <i class="spinner" /> : <Icon name={ICONS[state] ?? "tool"} />}</span>;
}

/** "result at 15:42 · in 1:12", until then. */
function Due({ at, now }: { at: Millis; now: Millis }): VNode {
  const { t, language } = useSurroundings();
  const time = dayNumber(at) === dayNumber(now) ? clockTime(at) : dayAndTime(at, now, language);
  const rest = left(at, now);
  return (
    <time class="run-due" dateTime={new Date(at).toISOString()} title={exact(at, language)}>
      {t("runResultAt", { time })}{rest === undefined ? null : <> · {t("runIn", { time: rest })}</>}
    </time>
  );
}

function took(step: RunStep): Millis | undefined {
  return step.startedAt === undefined || step.endedAt === undefined ? undefined : Date.parse(step.endedAt) - Date.parse(step.startedAt);
}

function StepState({ step, now }: { step: RunStep; now: Millis }): VNode {
  const surroundings = useSurroundings();
  const length = took(step);
  const waits = step.feedbackAt !== undefined && !isFinal(step) && step.state !== "late" && step.past !== true;
  return (
    <span class="run-state">
      <span class="run-word">{wordOf(surroundings, STEP_WORDS, step.state)}</span>
      {isWorking(step) ? <span class="run-time">{stopwatch(now - Date.parse(step.startedAt ?? ""))}</span> : null}
      {isFinal(step) && length !== undefined ? <span class="run-took">{precise(length, surroundings.language)}</span> : null}
      {waits ? <Due at={Date.parse(step.feedbackAt ?? "")} now={now} /> : null}
      {step.past && !isFinal(step) ? <span>{surroundings.t("runPast")}</span> : null}
    </span>
  );
}

function StepProgress({ step, progress }: { step: RunStep; progress: Progress }): VNode {
  const { t } = useSurroundings();
  const percent = progress.percent === undefined ? undefined : Math.round(progress.percent);
  return (
    <span class="run-progress">
      {percent === undefined ? null : (
        <><progress max={100} value={percent} aria-label={t("progressOf", { name: plainName(step.aiName) })} /><span class="run-percent">{percent}%</span></>
      )}
      {progress.text === "" ? null : <span class="run-said" dir="auto">{progress.text}</span>}
    </span>
  );
}

interface StepProps {
  step: RunStep;
  plain: boolean;
  progress: Progress | undefined;
}

// That a step was skipped or cancelled says all there is; the server's own words for it are English.
function tellsWhy(step: RunStep): boolean {
  return step.error !== undefined && step.state !== "skipped" && step.state !== "cancelled";
}

function Step({ step, plain, progress }: StepProps): VNode {
  const now = useNow(!isFinal(step) && step.state !== "waiting" || step.feedbackAt !== undefined && !isFinal(step));
  return (
    <li class="run-step" data-step={step.index} data-state={step.state}>
      {plain ? null : <Mark state={step.state} />}
      <span class="run-row">
        {plain ? null : <span class="run-tool" dir="auto">{plainName(step.aiName)}</span>}
        <StepState step={step} now={now} />
        {progress && isWorking(step) ? <StepProgress step={step} progress={progress} /> : null}
        {tellsWhy(step) ? <span class="run-error" dir="auto">{step.error}</span> : null}
      </span>
    </li>
  );
}

function Json({ title, tool, text }: { title: string; tool: string; text: string }): VNode {
  return (
    <>
      <p class="hint">{title}</p>
      <pre class="run-json" dir="ltr" tabIndex={0} role="region" aria-label={`${tool} ${title}`}>{text}</pre>
    </>
  );
}

type Read = { details: readonly StepDetails[] } | { failed: string } | undefined;

/** What the tools got and gave: read when somebody wants to see it, and again when something has happened. */
function Details({ run }: { run: ToolRun }): VNode {
  const surroundings = useSurroundings();
  const { panel, t } = surroundings;
  const [read, setRead] = useState<Read>();
  useEffect(() => {
    let wanted = true;
    void panel.runs.details(run.id).then((outcome) => {
      if (!wanted) return;
      setRead(outcome.ok ? { details: outcome.value } : { failed: failureWords(surroundings, outcome.failure) });
    });
    return () => { wanted = false; };
  }, [run.id, run.lastEvent, run.state]);
  if (read === undefined) return <p class="hint">{t("loading")}</p>;
  if ("failed" in read) return <p class="failure" role="alert">{t("runDetailsFailed", { reason: read.failed })}</p>;
  return (
    <div class="run-details">
      {read.details.map((step) => {
        const name = plainName(run.steps.find((each) => each.index === step.index)?.aiName ?? "");
        return (
          <div key={step.index}>
            {isPlain(run) ? null : <p class="run-tool" dir="auto">{name}</p>}
            <Json title={t("runArgs")} tool={name} text={step.args ?? t("runNothing")} />
            {step.data === undefined ? null : <Json title={t("runData")} tool={name} text={step.data} />}
          </div>
        );
      })}
    </div>
  );
}

function stateWords(surroundings: Surroundings, run: ToolRun): string {
  const title = titleOf(surroundings, run);
  if (!isRunning(run)) return `${title}: ${wordOf(surroundings, RUN_WORDS, run.state)}`;
  const steps = run.steps.filter((step) => step.state !== "waiting");
  const words = steps.map((step) => `${isPlain(run) ? "" : `${plainName(step.aiName)} `}${wordOf(surroundings, STEP_WORDS, step.state)}`);
  return `${title}: ${words.join(", ") || wordOf(surroundings, RUN_WORDS, run.state)}`;
}

/** For those who cannot see it: what has changed since it was first seen, and never the ticking of a clock. */
function News({ run }: { run: ToolRun }): VNode {
  const surroundings = useSurroundings();
  const words = stateWords(surroundings, run);
  const known = useRef(surroundings.panel.now() - Date.parse(run.createdAt) < NEWS_MAX ? "" : words);
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (known.current === words) return;
    known.current = words;
    setSaid(words);
  }, [words]);
  return <span class="unseen" role="status">{said}</span>;
}

/** Working if anything works; else what most of it waits for. */
function markOf(run: ToolRun): string {
  if (!isRunning(run)) return run.state;
  const states = run.steps.map((step) => step.state);
  return ["late", "running", "held", "waiting"].find((state) => states.includes(state)) ?? run.state;
}

interface HeadProps {
  run: ToolRun;
  open: boolean;
  controls: string;
  toggle: RefObject<HTMLButtonElement | null>;
  onToggle: () => void;
}

function Head({ run, open, controls, toggle, onToggle }: HeadProps): VNode {
  const surroundings = useSurroundings();
  const { t, language } = surroundings;
  const ended = run.endedAt === undefined ? undefined : Date.parse(run.endedAt);
  const done = isRunning(run) && run.steps.length > 1 ? t("runStepsDone", { done: stepsDone(run), count: run.steps.length }) : "";
  return (
    <button ref={toggle} type="button" class="run-head" aria-expanded={open} aria-controls={open ? controls : undefined} onClick={onToggle}>
      <Mark state={markOf(run)} />
      <span class="run-title" dir="auto">{titleOf(surroundings, run)}</span>
      <span class="run-sum">
        {isRunning(run) ? done : wordOf(surroundings, RUN_WORDS, run.state)}
        {ended === undefined ? null : <time dateTime={run.endedAt} title={exact(ended, language)}> · {clockTime(ended)}</time>}
      </span>
      <Icon name="more" />
    </button>
  );
}

export interface RunCardProps {
  run: ToolRun;
  progress: ReadonlyMap<number, Progress> | undefined;
}

function Card({ run, progress }: RunCardProps): VNode {
  const surroundings = useSurroundings();
  const { t } = surroundings;
  const [choice, setChoice] = useState<boolean>();
  const [details, setDetails] = useState(false);
  const toggle = useRef<HTMLButtonElement>(null);
  const id = useId();
  const running = isRunning(run);
  const open = choice ?? running;
  return (
    <section class="run" data-run={run.id} data-state={run.state} aria-label={t("run", { name: titleOf(surroundings, run) })} aria-live="off">
      <Head run={run} open={open} controls={id} toggle={toggle} onToggle={() => setChoice(!open)} />
      {open ? (
        <div class="run-body" id={id}>
          <ol class="run-steps">
            {run.steps.map((step) => <Step key={step.index} step={step} plain={isPlain(run)} progress={progress?.get(step.index)} />)}
          </ol>
          <div class="buttons wrap">
            {running ? <CancelRun id={run.id} onLeave={() => toggle.current?.focus()} /> : null}
            <button type="button" class="quiet small" aria-expanded={details} onClick={() => setDetails(!details)}>{t("runDetails")}</button>
          </div>
          {details ? <Details run={run} /> : null}
        </div>
      ) : null}
      <News run={run} />
    </section>
  );
}

/** A card whose drawing fails takes nothing else with it. */
export const RunCard = pure(function RunCard(props: RunCardProps): VNode {
  return <ErrorBoundary otherwise={() => <p class="run plain">{props.run.title ?? props.run.id}</p>}><Card {...props} /></ErrorBoundary>;
});
