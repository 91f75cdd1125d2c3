import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Outcome, Reading } from "./api.ts";
import { useSurroundings } from "./context.ts";
import { dayAndTime, exact } from "./times.ts";
import type { Millis } from "./types.ts";

const PAUSE = 250;

export interface WhenFieldProps {
  /** The time that was understood; undefined while there is none that could be used. */
  onTime: (at: Millis | undefined) => void;
}

function problemKey(error: string): "impossibleTime" | "notATime" | undefined {
  if (error === "impossible_time") return "impossibleTime";
  return error === "not_a_time" || error === "invalid_argument" ? "notATime" : undefined;
}

function usable(reading: Reading): boolean {
  return !reading.past && !reading.comesAgain;
}

function Understood({ reading, chosen, onChoose }: { reading: Reading; chosen: string; onChoose: (at: string) => void }): VNode {
  const { panel, t, language } = useSurroundings();
  if (reading.comesAgain) return <p class="hint">{t("comesAgain")}</p>;
  const sentence = chosen === reading.at ? reading.sentence[language] : exact(Date.parse(chosen), language);
  const others = [reading.at, ...reading.alternatives].filter((at) => at !== chosen);
  return (
    <>
      <p class="understood">{t("understood", { sentence })}{reading.past ? ` ${t("inThePast")}` : ""}</p>
      {others.length === 0 ? null : (
        <p class="alternatives">
          <span class="hint">{t("orMeant")}</span>
          {others.map((at) => (
            <button key={at} type="button" class="soft small" onClick={() => onChoose(at)}>{dayAndTime(Date.parse(at), panel.now(), language)}</button>
          ))}
        </p>
      )}
    </>
  );
}

/** A time as people write it, read by the server as one types. */
export function WhenField({ onTime }: WhenFieldProps): VNode {
  const { panel, t } = useSurroundings();
  const [text, setText] = useState("");
  const [outcome, setOutcome] = useState<Outcome<Reading>>();
  const [chosen, setChosen] = useState("");

  useEffect(() => {
    setOutcome(undefined);
    onTime(undefined);
    if (text.trim() === "") return undefined;
    let stale = false;
    const read = async (): Promise<void> => {
      const answer = await panel.when(text);
      if (stale) return;
      setOutcome(answer);
      setChosen(answer.ok ? answer.value.at : "");
      onTime(answer.ok && usable(answer.value) ? Date.parse(answer.value.at) : undefined);
    };
    const timer = setTimeout(() => void read(), PAUSE);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [text]);

  const choose = (at: string): void => {
    setChosen(at);
    onTime(Date.parse(at));
  };
  const problem = outcome && !outcome.ok ? problemKey(outcome.failure.error) : undefined;
  return (
    <div class="when">
      <label class="field"><span>{t("editTime")}</span>
        <input type="text" value={text} dir="auto" placeholder={t("editTimeHint")} maxLength={300} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="reading" aria-live="polite">
        {text.trim() !== "" && outcome === undefined ? <p class="hint">{t("reading")}</p> : null}
        {outcome?.ok ? <Understood reading={outcome.value} chosen={chosen} onChoose={choose} /> : null}
        {outcome && !outcome.ok ? <p class="hint">{problem ? t(problem) : outcome.failure.message}</p> : null}
      </div>
    </div>
  );
}
