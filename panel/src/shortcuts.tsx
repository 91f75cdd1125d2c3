import type { VNode } from "preact";
import { useSurroundings } from "./context.ts";
import { Dialog } from "./dialog.tsx";
import type { Key } from "./i18n.ts";

const SHORTCUTS: readonly [readonly string[], Key][] = [
  [["Enter"], "keySend"],
  [["Shift", "Enter"], "keyNewLine"],
  [["Ctrl", "K"], "keySearch"],
  [["Alt", "↑ ↓"], "keyChats"],
  [["Alt", "N"], "keyNewChat"],
  [["Alt", "C"], "keyComing"],
  [["Alt", "End"], "keyNewest"],
  [["1 … 9, 0"], "keyReply"],
  [["Esc"], "keyClose"],
  [["?"], "keyHelp"],
];

export function Shortcuts({ onClose }: { onClose: () => void }): VNode {
  const { t } = useSurroundings();
  return (
    <Dialog title={t("shortcuts")} onClose={onClose}>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, words]) => (
          <div key={words}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{t(words)}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}
