// Markdown as nodes of the page. Agents write it, and an agent may say anything: so nothing is ever
// read as HTML, nothing is loaded, and a link leads to the web or to mail and shows where to.

/** Lists and quotes in each other, and marks in each other, that are shown as such. */
const DEPTH_MAX = 8;
/** Characters between the marks of one emphasis or of one link. */
const SPAN_CHARS_MAX = 1000;
/** Characters of a link's target that are shown. */
const TARGET_CHARS_MAX = 120;

const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const INDENTED = /^(?: {4}| {0,3}\t)/;
const UNDERLINE = /^ {0,3}(=+|-{2,})\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const COLUMN = /^:?-+:?$/;

/** A text as nodes. */
export function render(text) {
  const shown = document.createDocumentFragment();
  blocks(text.replace(/\r\n?|[\u2028\u2029]/g, "\n").split("\n"), shown, 0);
  return shown;
}

function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** A heading without the marks that may close it. */
function withoutMarks(heading) {
  let end = heading.length;
  while (heading[end - 1] === "#") end -= 1;
  const closes = end === 0 || heading[end - 1] === " ";
  return closes ? heading.slice(0, end).trimEnd() : heading;
}

function blocks(lines, into, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    // Without an expression for its end, which a long run of spaces would make slow.
    const heading = HEADING.exec(line.trimEnd());
    if (line.trim() === "") {
      at += 1;
    } else if (fence) {
      at = code(lines, at, fence[1], into);
    } else if (heading) {
      into.append(element(`h${Math.min(heading[1].length + 2, 6)}`, ...inline(withoutMarks(heading[2]), 0)));
      at += 1;
    } else if (RULE.test(line)) {
      into.append(element("hr"));
      at += 1;
    } else if (QUOTE.test(line) && depth < DEPTH_MAX) {
      at = quote(lines, at, into, depth);
    } else if (ITEM.test(line) && depth < DEPTH_MAX) {
      at = list(lines, at, into, depth);
    } else if (INDENTED.test(line)) {
      at = indented(lines, at, into);
    } else if (line.includes("|") && areColumns(lines[at + 1] ?? "")) {
      at = table(lines, at, into);
    } else {
      at = paragraph(lines, at, into);
    }
  }
}

function code(lines, begin, fence, into) {
  const isEnd = (line) => line.trim().startsWith(fence) && /^[`~]+$/.test(line.trim());
  let end = begin + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  into.append(element("pre", element("code", lines.slice(begin + 1, end).join("\n"))));
  return end + 1;
}

/** Code without a fence: lines that stand in by four spaces, and empty ones between them. */
function indented(lines, begin, into) {
  let end = begin + 1;
  const goesOn = (at) => INDENTED.test(lines[at]) || (lines[at].trim() === "" && INDENTED.test(lines[at + 1] ?? ""));
  while (end < lines.length && goesOn(end)) end += 1;
  const inner = lines.slice(begin, end).map((line) => line.replace(INDENTED, ""));
  into.append(element("pre", element("code", inner.join("\n"))));
  return end;
}

function quote(lines, begin, into, depth) {
  let end = begin;
  const inner = [];
  while (end < lines.length && QUOTE.test(lines[end])) {
    inner.push(lines[end].replace(QUOTE, ""));
    end += 1;
  }
  const quoted = element("blockquote");
  blocks(inner, quoted, depth + 1);
  into.append(quoted);
  return end;
}

/** A list: its items are those at the depth of the first, what stands deeper belongs to the item. */
function list(lines, begin, into, depth) {
  const [, indent, mark] = ITEM.exec(lines[begin]);
  const isOrdered = /\d/.test(mark);
  const made = element(isOrdered ? "ol" : "ul");
  if (isOrdered && parseInt(mark, 10) !== 1) made.start = parseInt(mark, 10);
  let at = begin;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length > indent.length + 1 || /\d/.test(item[2]) !== isOrdered) break;
    if (item[1].length < indent.length || RULE.test(lines[at])) break;
    const inner = [item[3]];
    const room = lines[at].length - item[3].length;
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const isDeeper = line.length - line.trimStart().length > indent.length + 1;
      const goesOn = line.trim() === "" && /^\s/.test(lines[at + 1] ?? "");
      if (!isDeeper && !goesOn) break;
      inner.push(line.slice(Math.min(room, line.length - line.trimStart().length)));
      at += 1;
    }
    const shown = element("li");
    if (inner.length === 1) shown.append(...inline(inner[0], 0));
    else blocks(inner, shown, depth + 1);
    made.append(shown);
    while (at < lines.length && lines[at].trim() === "" && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  into.append(made);
  return at;
}

/** The cells of a line of a table. A `\\|` is a sign within one. */
const cells = (line) =>
  line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|"));

/** True of the line below the head of a table. Each cell is looked at once, however many there are. */
const areColumns = (line) => cells(line).every((cell) => COLUMN.test(cell.trim()));

function table(lines, begin, into) {
  const row = (line, name) =>
    element("tr", ...cells(line).map((cell) => element(name, ...inline(cell.trim(), 0))));
  const body = element("tbody");
  let end = begin + 2;
  while (end < lines.length && lines[end].includes("|")) {
    body.append(row(lines[end], "td"));
    end += 1;
  }
  into.append(element("table", element("thead", row(lines[begin], "th")), body));
  return end;
}

function paragraph(lines, begin, into) {
  const marks = [FENCE, HEADING, QUOTE, ITEM, RULE, UNDERLINE];
  const breaks = (line) => line.trim() === "" || marks.some((mark) => mark.test(line));
  const isTable = (at) => lines[at].includes("|") && areColumns(lines[at + 1] ?? "");
  let end = begin + 1;
  while (end < lines.length && !breaks(lines[end]) && !isTable(end)) end += 1;
  const underline = end < lines.length && UNDERLINE.exec(lines[end]);
  const shown = element(underline ? `h${underline[1][0] === "=" ? 3 : 4}` : "p");
  lines.slice(begin, end).forEach((line, number) => {
    if (number > 0) shown.append(element("br"));
    shown.append(...inline(line.trim(), 0));
  });
  into.append(shown);
  return underline ? end + 1 : end;
}

/** The nodes of a line, mark by mark. */
function inline(text, depth) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const found = depth < DEPTH_MAX && "\\`![<*_~h&".includes(text[at]) ? mark(text, at, depth) : null;
    if (found) {
      flush();
      nodes.push(...found.nodes);
      at = found.end;
    } else {
      plain += text[at];
      at += 1;
    }
  }
  flush();
  return nodes;
}

/** The mark at a place of a text: its nodes, and where it ends; none if it is no mark. */
function mark(text, at, depth) {
  switch (text[at]) {
    case "\\":
      if (!/[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return null;
      return { nodes: [document.createTextNode(text[at + 1])], end: at + 2 };
    case "`":
      return codeSpan(text, at);
    case "!":
      return text[at + 1] === "[" ? linked(text, at + 1, depth) : null;
    case "[":
      return linked(text, at, depth);
    case "<": {
      const end = text.slice(at, at + SPAN_CHARS_MAX).indexOf(">");
      const target = end > 0 ? text.slice(at + 1, at + end) : "";
      const nodes = /^(https?:|mailto:)/i.test(target) && link(target, [target]);
      return nodes ? { nodes, end: at + end + 1 } : null;
    }
    case "&": {
      const name = /^&(?:amp|lt|gt|quot|apos|nbsp|#39);/.exec(text.slice(at, at + 6))?.[0];
      return name ? { nodes: [document.createTextNode(ENTITIES[name])], end: at + name.length } : null;
    }
    case "h": {
      if (/\w/.test(text[at - 1] ?? "")) return null;
      const bare = /^https?:\/\/[^\s<>"`]+/i.exec(text.slice(at, at + SPAN_CHARS_MAX));
      const target = bare && withoutEnd(bare[0]);
      const nodes = target && link(target, [target]);
      return nodes ? { nodes, end: at + target.length } : null;
    }
    default:
      return emphasis(text, at, depth);
  }
}

/** A URL in a text without the signs that end its sentence. Brackets that it opens, it closes. */
function withoutEnd(url) {
  let end = url.length;
  let unopened = url.split(")").length - url.split("(").length;
  while (/[.,;:!?'*_~)\]]/.test(url[end - 1])) {
    if (url[end - 1] === ")" && (unopened -= 1) < 0) break;
    end -= 1;
  }
  return url.slice(0, end);
}

function codeSpan(text, at) {
  const fence = /^`+/.exec(text.slice(at, at + SPAN_CHARS_MAX))[0];
  const inner = text.slice(at + fence.length, at + SPAN_CHARS_MAX);
  for (let end = inner.indexOf(fence); end >= 0; end = inner.indexOf(fence, end + 1)) {
    const isLonger = inner[end + fence.length] === "`";
    if (isLonger || end === 0) continue;
    const shown = inner.slice(0, end).replace(/^ (.*\S.*) $/, "$1");
    return { nodes: [element("code", shown)], end: at + 2 * fence.length + end };
  }
  return { nodes: [document.createTextNode(fence)], end: at + fence.length };
}

/** Signs that are written as in HTML. They become text, and are no HTML either. */
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&nbsp;": "\u00a0" };

const KINDS = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" };

function emphasis(text, at, depth) {
  const two = text.slice(at, at + 2);
  const sign = KINDS[two] ? two : text[at];
  const kind = KINDS[sign];
  const begin = at + sign.length;
  const isWord = (letter) => /[\p{L}\p{N}]/u.test(letter ?? "");
  if (!kind || /\s|^$/.test(text[begin] ?? "")) return null;
  if (sign[0] === "_" && isWord(text[at - 1])) return null;
  const inner = text.slice(begin, begin + SPAN_CHARS_MAX);
  for (let end = inner.indexOf(sign, 1); end > 0; end = inner.indexOf(sign, end + 1)) {
    const after = inner[end + sign.length];
    if (/\s/.test(inner[end - 1]) || inner[end - 1] === "\\") continue;
    if (sign[0] === "_" && isWord(after)) continue;
    // Of three signs in a row, those of the inner mark come first.
    if (sign.length === 2 && after === sign[0]) end += 1;
    const isThird = inner.slice(end - 2, end) === sign + sign && after !== sign;
    if (sign.length === 1 && (after === sign || inner[end - 1] === sign) && !isThird) continue;
    const nodes = [element(kind, ...inline(inner.slice(0, end), depth + 1))];
    return { nodes, end: begin + end + sign.length };
  }
  return null;
}

/** `[text](target)`. An image is a link to it: nothing is loaded from elsewhere. */
function linked(text, at, depth) {
  const rest = text.slice(at, at + SPAN_CHARS_MAX);
  const found = /^\[((?:\\.|[^\]\\])*)\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+["'(][^"')]*["')])?\s*\)/.exec(rest);
  if (!found) return null;
  const [whole, label, target] = found;
  const nodes = link(target, label ? inline(label, DEPTH_MAX) : [target]);
  // Where it leads elsewhere than to the web, it is shown as it was written.
  return { nodes: nodes || [document.createTextNode(whole)], end: at + whole.length };
}

/** A link with its target behind its text, unless the text is the target; none to anything else. */
function link(target, label) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol) || url.username || url.password) {
    return null;
  }
  const made = element("a", ...label);
  made.href = url.href;
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  const said = made.textContent.trim();
  if (said === url.href || `${said}/` === url.href || `mailto:${said}` === url.href) return [made];
  // The host is shown whole, however long it is: its end says whose it is.
  const room = Math.max(TARGET_CHARS_MAX, url.origin.length);
  const shown = url.href.length > room ? `${url.href.slice(0, room)}…` : url.href;
  const behind = element("span", ` (${shown})`);
  behind.className = "target";
  return [made, behind];
}
