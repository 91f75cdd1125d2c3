import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { pure, useSurroundings } from "./context.ts";
import { Icon } from "./icons.tsx";
import { readMarkdown, type Align, type Block, type Inline, type ListItem } from "./markdown.ts";

const COPIED_FOR = 1600;

function InlineView({ node }: { node: Inline }): VNode {
  switch (node.kind) {
    case "text": return <>{node.text}</>;
    case "code": return <code>{node.text}</code>;
    case "break": return <br />;
    case "strong": return <strong><Inlines nodes={node.inner} /></strong>;
    case "em": return <em><Inlines nodes={node.inner} /></em>;
    case "del": return <del><Inlines nodes={node.inner} /></del>;
    case "link": return <Link href={node.href} image={node.image}><Inlines nodes={node.inner} /></Link>;
  }
}

function Link({ href, image, children }: { href: string; image: boolean; children: ComponentChildren }): VNode {
  const { t } = useSurroundings();
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer" dir="auto">
      {image ? `${t("image")}: ` : ""}{children}
    </a>
  );
}

function Inlines({ nodes }: { nodes: readonly Inline[] }): VNode {
  return <>{nodes.map((node, index) => <InlineView key={index} node={node} />)}</>;
}

function CodeBlock({ language, text }: { language: string; text: string }): VNode {
  const { t } = useSurroundings();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_FOR);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => void navigator.clipboard?.writeText(text).then(() => setCopied(true), () => setCopied(false));
  return (
    <div class="code" dir="ltr">
      <div class="code-head">
        <span>{language || t("code")}</span>
        <button type="button" class="quiet small" onClick={copy}>
          <Icon name={copied ? "check" : "copy"} /><span aria-live="polite">{copied ? t("copied") : t("copy")}</span>
        </button>
      </div>
      <pre tabIndex={0} role="region" aria-label={language || t("code")}><code>{text}</code></pre>
    </div>
  );
}

function Item({ item }: { item: ListItem }): VNode {
  return (
    <li class={item.checked === undefined ? undefined : "task"}>
      {item.checked === undefined ? null : <input type="checkbox" checked={item.checked} disabled aria-label={item.checked ? "✓" : "–"} />}
      <Blocks blocks={item.blocks} />
    </li>
  );
}

function alignment(align: Align): string | undefined {
  return align === undefined ? undefined : `align-${align}`;
}

function Table({ block }: { block: Block & { kind: "table" } }): VNode {
  return (
    <div class="table">
      <table>
        <thead><tr>{block.header.map((cell, index) => <th key={index} class={alignment(block.align[index])}><Inlines nodes={cell} /></th>)}</tr></thead>
        <tbody>
          {block.rows.map((row, place) => (
            <tr key={place}>{row.map((cell, index) => <td key={index} class={alignment(block.align[index])}><Inlines nodes={cell} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Headings in a message are no headings of the page: they look like it, and are not in its outline. */
function BlockView({ block }: { block: Block }): VNode {
  switch (block.kind) {
    case "paragraph": return <p><Inlines nodes={block.inner} /></p>;
    case "heading": return <p class={`heading heading-${Math.min(block.depth, 4)}`}><Inlines nodes={block.inner} /></p>;
    case "code": return <CodeBlock language={block.language} text={block.text} />;
    case "quote": return <blockquote><Blocks blocks={block.blocks} /></blockquote>;
    case "rule": return <hr />;
    case "table": return <Table block={block} />;
    case "list": {
      const items = block.items.map((item, index) => <Item key={index} item={item} />);
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
  }
}

function Blocks({ blocks }: { blocks: readonly Block[] }): VNode {
  return <>{blocks.map((block, index) => <BlockView key={index} block={block} />)}</>;
}

export const Markdown = pure(function Markdown({ text }: { text: string }): VNode {
  return <Blocks blocks={readMarkdown(text)} />;
});
