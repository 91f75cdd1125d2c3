// Files that a tool has left with its result: pictures are shown, others can be downloaded.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useAction } from "./action.ts";
import { fileAddress } from "./api.ts";
import { useSurroundings } from "./context.ts";
import { Dialog } from "./dialog.tsx";
import type { Picture } from "./files.ts";
import { Icon } from "./icons.tsx";
import { size } from "./times.ts";
import type { ToolFile, ToolLine } from "./types.ts";

/** No SVG: it is a document, and whoever opened it by itself would open it as a part of this page. */
const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];
const SHOWN_MAX = 20_000_000; // bytes; what is larger nobody fetches without being asked
const FILES_MAX = 20;
const ALT_MAX = 500;

interface FileProps {
  file: ToolFile;
  address: string;
}

function Download({ file, address }: FileProps): VNode {
  const { panel, t } = useSurroundings();
  const act = useAction();
  const save = (): void => void act(panel.files.save(address, file.name), t("doneSaved"));
  return (
    <button type="button" class="file" title={t("saveFile")} onClick={save}>
      <Icon name="save" /><span class="unseen">{t("saveFile")}</span><span class="file-name" dir="auto">{file.name}</span>
      {file.bytes === undefined ? null : <span class="hint">{size(file.bytes)}</span>}
    </button>
  );
}

type Shown = Picture | "loading" | "broken";

function usePicture(address: string): Shown {
  const { panel } = useSurroundings();
  const [shown, setShown] = useState<Shown>("loading");
  useEffect(() => {
    let wanted = true;
    void panel.files.use(address).then((picture) => wanted && setShown(picture ?? "broken"));
    return () => {
      wanted = false;
      panel.files.release(address);
    };
  }, [address]);
  return shown;
}

function PictureView({ file, address, alt }: FileProps & { alt: string }): VNode {
  const { t } = useSurroundings();
  const shown = usePicture(address);
  const [open, setOpen] = useState(false);
  if (shown === "broken") return <Download file={file} address={address} />;
  if (shown === "loading") return <span class="picture-place hint">{t("pictureLoading", { name: file.name })}</span>;
  const image = { src: shown.url, width: shown.width, height: shown.height, alt };
  return (
    <>
      <button type="button" class="picture" title={t("openPicture")} aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <img {...image} />
      </button>
      {open ? (
        <Dialog title={file.name} kind="picture-dialog" onClose={() => setOpen(false)}>
          <div class="picture-full" tabIndex={0} role="region" aria-label={file.name}><img {...image} /></div>
          <div class="buttons"><Download file={file} address={address} /></div>
        </Dialog>
      ) : null}
    </>
  );
}

/** What the tool said is what its pictures show. */
export function ToolFiles({ tool, text }: { tool: ToolLine; text: string }): VNode | null {
  if (tool.files.length === 0) return null;
  return (
    <div class="files">
      {tool.files.slice(0, FILES_MAX).map((file) => {
        const address = fileAddress(tool.runId, tool.stepIndex, file.name);
        const isPicture = PICTURES.includes(file.mimeType.toLowerCase()) && (file.bytes ?? 0) <= SHOWN_MAX;
        return isPicture
          ? <PictureView key={file.name} file={file} address={address} alt={text.slice(0, ALT_MAX) || file.name} />
          : <Download key={file.name} file={file} address={address} />;
      })}
    </div>
  );
}
