"""Makes one HTML file of a page and the files that it refers to, which runs from a disk without a network."""

import base64
import binascii
import hashlib
import html
import posixpath
import re
import urllib.parse

from plugin import Failure

TEXT_TYPES = {"css": "text/css", "js": "text/javascript", "mjs": "text/javascript", "svg": "image/svg+xml",
              "json": "application/json",
              "txt": "text/plain", "html": "text/html", "htm": "text/html", "csv": "text/csv", "xml": "application/xml"}
BYTE_TYPES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
              "ico": "image/x-icon",
              "avif": "image/avif", "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",
              "mp3": "audio/mpeg",
              "ogg": "audio/ogg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm"}
IMPORTS_DEEP = 8  # style sheets that import one another end here

# Nothing leaves the page. (A link that somebody follows does: a policy in a page cannot forbid that.)
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data: blob:; style-src 'unsafe-inline' data:; img-src data: blob:; "
          "font-src data:; media-src data: blob:; connect-src data: blob:; worker-src data: blob:; frame-src data: blob:; "
          "form-action 'none'; base-uri 'none'")

ATTRIBUTES = r"""(?:[^>"']|"[^"]*"|'[^']*')*+"""
# What is not markup comes first, so that a tag in a comment or in a script is not taken for one.
TOKEN = re.compile(rf"""<!--.*?(?:-->|\Z)
    | <(?P<raw>script|style|textarea|title)(?=[\s/>])(?P<rawattrs>{ATTRIBUTES})>(?P<content>.*?)(?:</(?P=raw)\s*[^>]*>|\Z)
    | <!doctype[^>]*>
    | <(?P<tag>[a-z][a-z0-9-]*)(?=[\s/>])(?P<attrs>{ATTRIBUTES})>
    | </(?P<end>[a-z][a-z0-9-]*)[^>]*>""", re.I | re.S | re.X)
ATTRIBUTE = re.compile(r"""([^\s"'=<>/]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?""")
CSS_IMPORT = re.compile(r"""@import\s+(?:url\(\s*)?(?:"([^"]+)"|'([^']+)'|([^\s"')]+))\s*\)?\s*([^;]*);""", re.I)
CSS_URL = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"'\s]*))\s*\)""", re.I)
MODULE_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.{0,2}/[^"']*)["']""")
SOURCES = {"img": ("src",), "source": ("src",), "audio": ("src",), "video": ("src", "poster"), "track": ("src",),
           "input": ("src",),
           "embed": ("src",), "object": ("data",), "iframe": ("src",), "image": ("href", "xlink:href")}


def attributes_of(text):
    """Names in lower case, values without quotes and references; of a name that stands twice the first counts, as in browsers."""
    found = {}
    for name, value in ATTRIBUTE.findall(text):
        value = value[1:-1] if value[:1] in "\"'" else value
        found.setdefault(name.lower(), html.unescape(value))
    return found


def start_tag(tag, attributes):
    written = (f' {name}="{html.escape(value)}"' if value else f" {name}" for name, value in attributes.items())
    return f"<{tag}{''.join(written)}>"


def normal(name):
    return posixpath.normpath("/" + urllib.parse.unquote(re.split(r"[?#]", name, maxsplit=1)[0]).strip()).lstrip("/")


def inline_script(text):
    """A script as it may stand in a page: what would end it, or hide its end, is written so that it means the same."""
    return re.sub(r"<!--", r"<\\!--", re.sub(r"</(script)", r"<\\/\1", text, flags=re.I))


def inline_style(text):
    return re.sub(r"</(style)", r"<\\/\1", text, flags=re.I)


class Packer:
    def __init__(self, files, allow_network):
        self.files = {normal(name): content for name, content in files.items()}
        self.allow_network = allow_network
        self.late = []  # scripts that wait for the whole page; inline ones do not wait by themselves
        self.seen = set()
        self.html_attributes = {}

    # -- Files

    def is_given(self, reference):
        """Whether it is one of the files. What the page already has in itself, and what the network has if it may, stays."""
        reference = reference.strip()
        if not reference or re.match(r"#|(?:data|blob|about|javascript|mailto):", reference, re.I):
            return False
        if re.match(r"(?:[a-z][a-z0-9+.-]*:)?//|[a-z][a-z0-9+.-]*:", reference, re.I):
            if self.allow_network:
                return False
            raise Failure("invalid_argument",
                          f"The app would load {reference[:120]} from the network: give it in `files`, or set allow_network.")
        if normal(reference) not in self.files:
            raise Failure("invalid_argument", f"The app refers to {reference[:120]}, which is not in `files`.")
        return True

    def content(self, reference):
        """The type and the bytes of a file."""
        name = normal(reference)
        text, ending = self.files[name], name.rsplit(".", 1)[-1].lower()
        if ending in TEXT_TYPES and not text.startswith("data:"):
            return TEXT_TYPES[ending], text.encode("utf-8", "replace")
        encoded = text.split(",", 1)[1] if text.startswith("data:") and "," in text else text
        kind = BYTE_TYPES.get(ending) or TEXT_TYPES.get(ending) or "application/octet-stream"
        try:
            return kind, base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise Failure("invalid_argument", f"The file {name[:120]} must be given in base64.") from None

    def text(self, reference):
        return self.content(reference)[1].decode("utf-8", "replace")

    def data_uri(self, reference):
        kind, content = self.content(reference)
        return f"data:{kind};base64,{base64.b64encode(content).decode()}"

    # -- Style sheets

    def style(self, text, folder="", deep=0):
        if deep > IMPORTS_DEEP:
            raise Failure("invalid_argument", "The style sheets import one another without end.")

        def beside(reference):
            return reference if re.match(r"[a-z][a-z0-9+.-]*:|//|#", reference, re.I) else posixpath.join(folder, reference)

        def imported(match):
            name = beside(next(filter(None, match.groups()[:3])))
            if not self.is_given(name):
                return match.group(0)
            body = self.style(self.text(name), posixpath.dirname(normal(name)), deep + 1)
            return f"@media {match.group(4)} {{{body}}}" if match.group(4).strip() else body

        def linked(match):
            name = beside(next(filter(None, match.groups()), ""))
            return f'url("{self.data_uri(name)}")' if self.is_given(name) else match.group(0)

        return CSS_URL.sub(linked, CSS_IMPORT.sub(imported, text))

    # -- The page

    def script(self, attributes, content):
        source = attributes.pop("src", None)
        if source is not None and not self.is_given(source):
            return start_tag("script", {**attributes, "src": source}) + "</script>"
        text = content if source is None else self.text(source)
        if attributes.get("type") == "module" and MODULE_IMPORT.search(text):
            raise Failure("invalid_argument",
                          "Modules that import other files cannot be packed: bundle them into one script first.")
        waits = source is not None and {"defer", "async"} & set(attributes) and attributes.get("type") != "module"
        for name in ("defer", "async", "integrity", "crossorigin"):
            attributes.pop(name, None)
        # What already stood in the page cannot end its own script; what comes from a file can.
        packed = start_tag("script", attributes) + (content if source is None else inline_script(text)) + "</script>"
        if waits:
            self.late.append(packed)
            return ""
        return packed

    def link(self, attributes):
        kinds = attributes.get("rel", "").lower().split()
        reference = attributes.get("href", "")
        if "stylesheet" in kinds and reference:
            if not self.is_given(reference):
                return None
            body = inline_style(self.style(self.text(reference), posixpath.dirname(normal(reference))))
            return start_tag("style", {"media": attributes["media"]} if attributes.get("media") else {}) + body + "</style>"
        if "icon" in kinds and reference:
            self.seen.add("icon")
            return start_tag("link", {**attributes, "href": self.data_uri(reference)}) if self.is_given(reference) else None
        if set(kinds) & {"manifest", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch",
                         "apple-touch-icon"}:
            return None if self.allow_network else ""  # they only fetch
        return None

    def element(self, tag, attributes, whole):
        if tag == "link":
            changed = self.link(attributes)
            return whole if changed is None else changed
        if tag == "base":
            return ""  # it would move every reference away
        if tag == "meta":
            self.seen.add(f"meta {attributes.get('name', '').lower()}")
            leaves = attributes.get("http-equiv", "").lower() == "refresh" and not self.allow_network
            return "" if "charset" in attributes or leaves else whole
        changed = False
        for name in SOURCES.get(tag, ()):
            if attributes.get(name) and self.is_given(attributes[name]):
                attributes[name], changed = self.data_uri(attributes[name]), True
        if attributes.get("srcset") and tag in ("img", "source") and not attributes["srcset"].strip().startswith("data:"):
            del attributes["srcset"]  # other sizes of the same picture
            changed = True
        if "url(" in attributes.get("style", ""):
            attributes["style"], changed = self.style(attributes["style"]), True
        return start_tag(tag, attributes) if changed else whole

    def token(self, match):
        whole = match.group(0)
        raw, tag, end = ((match.group(name) or "").lower() for name in ("raw", "tag", "end"))
        if whole.startswith("<!"):
            return whole if whole.startswith("<!--") else ""
        if raw == "script":
            return self.script(attributes_of(match.group("rawattrs")), match.group("content"))
        if raw == "style":
            return f"<style{match.group('rawattrs')}>{self.style(match.group('content'))}</style>"
        if raw:
            self.seen.add(raw)
            return whole
        if tag == "html":
            self.html_attributes = attributes_of(match.group("attrs"))
            return ""
        if tag in ("head", "body"):
            self.seen.add(tag)
            return "" if tag == "head" else self.element(tag, attributes_of(match.group("attrs")), whole)
        if end in ("body", "html"):
            return ""
        return self.element(tag, attributes_of(match.group("attrs")), whole) if tag else whole

    def page(self, text, name, description, language):
        inside = TOKEN.sub(self.token, text)
        head = ['<meta charset="utf-8">']
        if not self.allow_network:
            head.append(start_tag("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}))
        if "meta viewport" not in self.seen:
            head.append('<meta name="viewport" content="width=device-width, initial-scale=1">')
        if "meta theme-color" not in self.seen:
            head.append(start_tag("meta", {"name": "theme-color", "content": colour_of(name)}))
        if description and "meta description" not in self.seen:
            head.append(start_tag("meta", {"name": "description", "content": description}))
        if "title" not in self.seen:
            head.append(f"<title>{html.escape(name)}</title>")
        if "icon" not in self.seen:
            head.append(start_tag("link", {"rel": "icon", "href": icon_of(name)}))
        if not self.seen & {"head", "body"}:
            inside = f"</head>\n<body>\n{inside}"
        # The policy stands before everything of the page, wherever that has its own head: only then it holds for all of it.
        return "\n".join(["<!doctype html>", start_tag("html", {"lang": language, **self.html_attributes}), "<head>", *head,
                          inside,
                          *self.late, "</body>", "</html>", ""])


def colour_of(name):
    hue = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:2], "big") % 360
    # Browsers take no hsl() in every place where this goes.
    channels = (0.55 - 0.3 * max(-1.0, min(k - 3, 9 - k, 1)) for k in ((n + hue / 30) % 12 for n in (0, 8, 4)))
    return "#" + "".join(f"{round(255 * c):02x}" for c in channels)


def icon_of(name):
    letter = html.escape(next((c for c in name if c.isalnum()), "A").upper())
    picture = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="{colour_of(name)}"/>'
               f'<text x="32" y="44" font-family="sans-serif" font-size="36" font-weight="700" text-anchor="middle" fill="#fff">{letter}</text></svg>')
    return "data:image/svg+xml," + urllib.parse.quote(picture)


def scripts_of(text):
    """The scripts that stand in a page."""
    for match in TOKEN.finditer(text):
        is_script = (match.group("raw") or "").lower() == "script"
        if is_script and not attributes_of(match.group("rawattrs")).get("type", "").endswith("json"):
            yield match.group("content")


SKIPPED = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.S)
REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
PAIRS = {")": "(", "]": "[", "}": "{"}


def is_whole(script):
    """Whether every bracket, string and template of a script is closed: enough to notice one that breaks off."""
    open_, at, before = [], 0, ""
    while at < len(script):
        c = script[at]
        if open_ and open_[-1] == "`":
            if c == "\\":
                at += 1
            elif c == "`":
                open_.pop()
            elif script.startswith("${", at):
                open_.append("${")
                at += 1
            at += 1
            continue
        skipped = SKIPPED.match(script, at)
        # A slash behind a value divides; elsewhere it begins a pattern.
        if not skipped and c == "/" and (not before or before in "(,=:[!&|?{};+-*%<>~^"
                                         or re.search(r"(?:return|typeof|case|in)\s*\Z", script[max(0, at - 12):at])):
            skipped = REGEX.match(script, at)
        if skipped:
            at = skipped.end()
            before = before if skipped.group(0).startswith(("//", "/*")) else '"'
            continue
        if c in "([{`":
            open_.append(c)
        elif c in "\"'":
            return False
        elif c in PAIRS:
            if not open_ or open_.pop() not in (PAIRS[c], "${" if c == "}" else PAIRS[c]):
                return False
        before = before if c.isspace() else c
        at += 1
    return not open_
