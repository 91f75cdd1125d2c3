// Texts that readers of Markdown are slow at, for the tests and the bench; no part of the page.

/** What is repeated, alone and beside each other. */
export const PIECES: readonly string[] = [
  "*", "**", "***", "_", "__", "~", "~~", "*_", "*a ", "**a ", "a* ", "a**", "*a **b", "_a __b", "*a*", "**a**b", "~a ~~b", "a**b*c_", "*你 **好", "**“你”**好", "，", "😀*", "(*", "*)",
  "[", "![", "]", "](", "[]", "[[", "]]", "[a](", "[a](b", "[a](<b", "[a](b \"", "[a](b '", "[a](b (", "[a](b)", "![a](b)", "[a][", "[a]", "](a)", "[a](b(c", "![[a](b)",
  "[a]: b\n", "[a]: http://b.example\n", "[a](http://b.example)", "![a](http://b.example)", "](http://b.example)", "[x](http://a\\)",
  "`", "``", "```", "`a``b```c", "```\n", "~~~a\n", "``` \n~~~\n", "\\", "\\*", "\\`", "\\\n",
  "<", "<a ", "<a>", "</a", "<!--", "<?", "<http://a.example>", "<你", "&", "&#", "&amp;", "&a", "a@", "http://", "http://a.", "http://a)", "www.a", "hhhttp://wwww.",
  "> ", ">", "- ", "* ", "+ ", "1. ", "2) ", "- a\n", "-\n", "- a\n\n", "- a\n  ", "- [ ] a\n", "1. a\n   - b\n     > c\nd\n", "> a\n", "> > > > > > > > > a\nb\n", "- - - - - - - - a\nb\n",
  "> - > - > - > - a\nb\n", "> ```\n", "- ```\n", "  - a\n", "\t- a\n", "# ", "# a #\n", "a\n-\n", "a\n=\n", "---\n", "* * *\n", "*\t*",
  "|", "|-", "|a", "|a|b|\n|-|-|\n", "|-\n", "a|b\n-|-\n", "`|`|", "\\|", "|:-:", "|\n", "    a\n", "\t", " ", "  \n", "\n", "\n\n", "\r\n", "　", "\u00a0", "a", "a\n", "你好", "你好。\n",
];

/** Each piece over and over, and each two of them: many of one, then many of the other, and by turns. */
export function costly(length: number): { name: string; text: string }[] {
  const shapes: { name: string; text: string }[] = [];
  const add = (name: string, text: string): void => void shapes.push({ name: JSON.stringify(name), text });
  // An even number of times, so that what a piece opens is closed at any length.
  const fill = (piece: string, letters: number): string => piece.repeat(2 * Math.floor(letters / piece.length / 2));
  for (const [place, piece] of PIECES.entries()) {
    add(piece, fill(piece, length));
    // Not all pairs, but each piece with a dozen others, before and after it.
    for (let step = 1; step <= 12; step++) {
      const other = PIECES[(place * 7 + step * step * 5) % PIECES.length] ?? "";
      add(`${piece}, then ${other}`, fill(piece, length / 2) + fill(other, length / 2));
      add(`${piece}${other}`, fill(piece + other, length));
    }
  }
  return shapes;
}
