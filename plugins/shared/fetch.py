"""One HTTP request that ends: in time, within a size, at the address that was configured, and through no proxy."""

import http.client
import json
import signal
import urllib.error
import urllib.parse
import urllib.request

from plugin import Failure

BODY_MAX = 2 * 1024 * 1024
REDIRECTS_MAX = 3


def origin(url):
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


class SameOrigin(urllib.request.HTTPRedirectHandler):
    """The key is for one server only, so nobody is followed to another one."""

    max_redirections = REDIRECTS_MAX

    def redirect_request(self, request, fp, code, message, headers, url):
        if origin(url) != origin(request.full_url):
            raise Failure("http_error", f"{host_of(request.full_url)} redirects to another address, which is not followed.")
        return super().redirect_request(request, fp, code, message, headers, url)


def host_of(url):
    return urllib.parse.urlsplit(url).netloc.rsplit("@", 1)[-1] or "the server"


def checked(url, setting):
    """The configured address, if it can be one. What is wrong with it is said without repeating it: it may hold a key."""
    try:
        parts = urllib.parse.urlsplit(url)
        clean = url.isprintable() and " " not in url
        fits = clean and parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        fits = False
    if not fits:
        raise Failure("not_configured", f"{setting} in .env must be an address that begins with http:// or https://.")
    return url


def seconds_for(context, most):
    """How long a request may take: a little less than the plugin itself, so that it can still say what happened."""
    limit = context.get("timeoutMs")
    return min(most, limit / 1000 * 0.9) if isinstance(limit, (int, float)) and limit > 0 else most


def fetch(url, seconds, headers=None, body=None):
    """The status and the bytes of the answer, whatever the status is."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), SameOrigin)
    data = None if body is None else json.dumps(body).encode()
    given = {"User-Agent": "Belfry", "Accept": "application/json", **({"Content-Type": "application/json"} if data else {}),
             **(headers or {})}

    def late(*_):
        raise TimeoutError

    # The timeout of a socket is for each read; this is for all of it, so that a server cannot drip its answer for ever. It
    # comes again: while it connects, Python takes it for the failure of one address and tries the next.
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        try:
            answer = opener.open(urllib.request.Request(url, data, given), timeout=seconds)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            content = answer.read(BODY_MAX + 1)
            status = answer.status
    except TimeoutError:
        raise Failure("unreachable", f"{host_of(url)} gave no whole answer within {seconds:.0f} s.") from None
    except OSError as error:  # before the next one: a connection that is closed without an answer is both
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            raise Failure("unreachable", f"{host_of(url)} gave no whole answer within {seconds:.0f} s.") from None
        why = getattr(reason, "strerror", None) or type(reason).__name__
        raise Failure("unreachable", f"{host_of(url)} cannot be reached: {why}.") from None
    except (http.client.HTTPException, ValueError):
        raise Failure("bad_answer", f"{host_of(url)} did not answer as HTTP servers do.") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if len(content) > BODY_MAX:
        raise Failure("too_large", f"The answer of {host_of(url)} is larger than {BODY_MAX >> 20} MiB.")
    return status, content


def bearer(key):
    """The header for a key. Only what HTTP can carry, and the key is not repeated."""
    if not key:
        return {}
    if not key.isascii() or not key.isprintable():
        raise Failure("not_configured", "The key in .env has characters that cannot be sent.")
    return {"Authorization": f"Bearer {key}"}


def fetch_json(url, seconds, headers=None, body=None):
    """The JSON of an answer with a good status; the rest is an error that says which."""
    status, content = fetch(url, seconds, headers, body)
    if not 200 <= status < 300:
        hint = " Is the key right?" if status in (401, 403) else ""
        raise Failure("http_error", f"{host_of(url)} answered with status {status}.{hint}")
    return parsed(content, url)


def parsed(content, url):
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Failure("bad_answer", f"{host_of(url)} did not answer with JSON.") from None
