import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import type { Notice, State } from "./state.ts";
import { duration } from "./times.ts";
import type { Millis, Phase } from "./types.ts";

const CLOCK_OFF_MAX = 30_000;
const CLOCK_STEP = 10_000; // the way to the server takes time, too: more than this nobody knows
const NOTICE_FOR = 6000;

/** How the connection is, if there is something to say. */
export function ConnectionBar({ phase }: { phase: Phase }): VNode {
  const { panel, t } = useSurroundings();
  const shown = phase === "connecting" || phase === "offline" || phase === "stopping" ? phase : undefined;
  return (
    <div role="status" class="bar-place">
      {shown === undefined ? null : (
        <div class={`bar bar-${shown}`}>
          <span class="pulse" aria-hidden="true" /><span>{t(shown)}</span>
          {shown === "offline" ? <button type="button" class="quiet small" onClick={() => panel.tryNow()}>{t("tryNow")}</button> : null}
        </div>
      )}
    </div>
  );
}

/** A browser's clock that is wrong would make every time here look wrong: say it once. */
export function ClockBar({ offset }: { offset: Millis }): VNode | null {
  const { t, language } = useSurroundings();
  const [dismissed, setDismissed] = useState(false);
  if (dismissed || Math.abs(offset) <= CLOCK_OFF_MAX) return null;
  const off = Math.round(Math.abs(offset) / CLOCK_STEP) * CLOCK_STEP;
  const direction = t(offset < 0 ? "clockAhead" : "clockBehind");
  return (
    <div class="bar bar-clock" role="status">
      <Icon name="clock" /><span>{t("wrongClock", { time: duration(off, language), direction })}</span>
      <button type="button" class="quiet small" onClick={() => setDismissed(true)}>{t("dismiss")}</button>
    </div>
  );
}

function NoticeView({ notice }: { notice: Notice }): VNode {
  const { panel, t } = useSurroundings();
  const dismiss = (): void => panel.store.dispatch({ type: "dismiss", id: notice.id });
  useEffect(() => {
    const timer = setTimeout(dismiss, NOTICE_FOR);
    return () => clearTimeout(timer);
  }, [notice.id]);
  return (
    <div class={notice.calm ? "notice" : "notice notice-failure"}>
      <span>{notice.text}</span>
      <button type="button" class="round" aria-label={t("dismiss")} onClick={dismiss}><Icon name="close" /></button>
    </div>
  );
}

export function Notices({ state }: { state: State }): VNode {
  return <div class="notices" role="status">{state.notices.map((notice) => <NoticeView key={notice.id} notice={notice} />)}</div>;
}
