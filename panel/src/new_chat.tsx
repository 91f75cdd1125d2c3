import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Avatar } from "./avatar.tsx";
import { useSurroundings } from "./context.ts";
import { Dialog } from "./dialog.tsx";
import type { State } from "./state.ts";

const AGENTS_MAX = 99; // a session has up to 100 members, and one of them is the person

export function NewChat({ state, onClose }: { state: State; onClose: () => void }): VNode {
  const { panel, t } = useSurroundings();
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [title, setTitle] = useState("");
  const [problem, setProblem] = useState<string>();
  useEffect(() => void panel.loadAgents(), [panel]);

  const toggle = (id: string): void => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id].slice(0, AGENTS_MAX));
  const open = async (): Promise<void> => {
    const wrong = await panel.openNew(chosen, chosen.length > 1 ? title.trim() : "");
    if (wrong === undefined) onClose();
    else setProblem(wrong);
  };
  return (
    <Dialog title={t("newChatTitle")} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); void open(); }}>
        <p class="hint">{state.agents.length === 0 ? t("newChatNone") : t("newChatHint")}</p>
        <ul class="agents">
          {state.agents.map((agent) => (
            <li key={agent.id}>
              <label class="agent">
                <input type="checkbox" checked={chosen.includes(agent.id)} onChange={() => toggle(agent.id)} />
                <Avatar name={agent.id} /><span class="agent-name">{agent.id}</span><span class="hint">{agent.kind}</span>
              </label>
            </li>
          ))}
        </ul>
        {chosen.length > 1 ? (
          <label class="field"><span>{t("newChatName")}</span>
            <input type="text" value={title} maxLength={100} onInput={(event) => setTitle(event.currentTarget.value)} />
          </label>
        ) : null}
        {problem === undefined ? null : <p class="failure" role="alert">{problem}</p>}
        <div class="buttons"><button type="submit" class="primary" disabled={chosen.length === 0}>{t("newChatOpen")}</button></div>
      </form>
    </Dialog>
  );
}
