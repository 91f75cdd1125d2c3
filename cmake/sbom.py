#!/usr/bin/env python3
"""What the program is made of, as CycloneDX 1.6: each library that it is linked with, and what is built into it, with versions.

    sbom.py --program build/release/belfry --version 0.1.0 --out build/release/belfry.cdx.json
            [--link-inputs FILE] [--header FILE]… [--lock panel/package-lock.json]…

The build runs it after each link. Shared libraries are those that the program itself names, and those that they name; static
ones and object files are what the linker has read (`--link-inputs`: what its --dependency-file wrote); libraries of
headers are named by one of theirs; the packages of a lock file are those that are not for development only. Which package of
the system a file belongs to, and its version, says dpkg; where there is no dpkg, the file says so and names the files alone.

The same inputs give the same file. The time in it is SOURCE_DATE_EPOCH; without that, there is none.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

FIELDS = "${binary:Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n"


def output_of(*command):
    """What it prints, also if it complains; nothing where there is no such program."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, check=False).stdout
    except OSError:
        return ""


def shared_libraries(program):
    """Name and path of each shared library that is loaded with the program; the path is None if it is not found."""
    found = {}
    for line in output_of("ldd", str(program)).splitlines():
        match = re.match(r"\s*(\S+) => (?:(/\S+)|not found)", line) or re.match(r"\s*()(/\S+) \(0x", line)
        if match:
            path = match[2]
            found[match[1] or Path(path).name] = path
    return found


def link_inputs(file, build):
    """What the linker has read of files that are no part of the folder `build`: archives and object files of the system."""
    if file is None or not Path(file).is_file():
        return []
    rule = Path(file).read_text(encoding="utf-8").replace("\\\n", " ").split("\n")[0]
    inputs = re.findall(r"(?:\\.|[^\s\\])+", rule.partition(": ")[2])
    paths = [re.sub(r"\\(.)", r"\1", path) for path in inputs]
    read = {os.path.realpath(path) for path in paths if os.path.isabs(path) and path.endswith((".a", ".o"))}
    return sorted(path for path in read if not Path(path).is_relative_to(build))


def spellings(path):
    """The names under which dpkg may know a file: as it was found, what it leads to, with and without /usr."""
    names = {path, os.path.realpath(path), os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))}
    names |= {os.path.normpath(name) for name in names}
    names |= {name.removeprefix("/usr") for name in names} | {"/usr" + name for name in names if not name.startswith("/usr/")}
    return names


def packages_of(paths):
    """For each path the package of the system that it belongs to: a dict of its fields; a path of none is left out."""
    names = {name: path for path in paths for name in spellings(path)}
    if not names:
        return {}
    owners = {}
    for line in output_of("dpkg", "-S", "--", *sorted(names)).splitlines():
        owner, _, name = line.partition(": ")
        if name in names:
            owners[names[name]] = owner.split(", ")[0]
    versions = {}
    for line in output_of("dpkg-query", "-W", "-f", FIELDS, *sorted(set(owners.values()))).splitlines() if owners else []:
        package, version, architecture, source, source_version = line.split("\t")
        versions[package.partition(":")[0]] = {
            "name": package.partition(":")[0], "version": version, "architecture": architecture, "source": f"{source} {source_version}",
        }
    return {path: versions[owner.partition(":")[0]] for path, owner in owners.items() if owner.partition(":")[0] in versions}


def distribution():
    """("debian", "debian-12"), from os-release."""
    fields = {}
    for name in ("/etc/os-release", "/usr/lib/os-release"):
        if os.path.isfile(name):
            fields = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', Path(name).read_text(encoding="utf-8"), re.MULTILINE))
            break
    identity = fields.get("ID", "debian")
    return identity, "-".join(filter(None, [identity, fields.get("VERSION_ID")]))


def properties(**values):
    """Sorted; a list is said one by one."""
    pairs = [(name, each) for name, value in values.items() for each in (value if isinstance(value, list) else [value]) if each]
    return [{"name": f"belfry:{name}", "value": value} for name, value in sorted(pairs)]


def system_components(files):
    """One component for each package that has one of `files`, (path, name, how it is used); one for each file of none."""
    known = packages_of([path for path, _, _ in files if path])
    vendor, distro = distribution()
    by_package, alone = {}, []
    for path, name, use in files:
        package = known.get(path)
        if package:
            by_package.setdefault(package["name"], (package, set(), set()))
            by_package[package["name"]][1].add(name)
            by_package[package["name"]][2].add(use)
        else:
            alone.append({"type": "library", "bom-ref": f"file:{name}", "name": name, "properties": properties(linkage=use, package="unknown")})
    for package, names, uses in by_package.values():
        purl = (f"pkg:deb/{vendor}/{quote(package['name'], safe='')}@{quote(package['version'], safe='')}"
                f"?arch={package['architecture']}&distro={distro}")
        alone.append({
            "type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl,
            "properties": properties(file=sorted(names), linkage=sorted(uses), source=package["source"]),
        })
    return {component["bom-ref"]: component for component in alone}


def npm_components(lock):
    """What of a lock file ends up in the bundle: all but what is for development."""
    found = {}
    for path, package in json.loads(Path(lock).read_text(encoding="utf-8")).get("packages", {}).items():
        if not path or package.get("dev") or package.get("devOptional") or package.get("link"):
            continue
        name = path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{quote(name, safe='/')}@{quote(package['version'], safe='')}"
        component = {"type": "library", "bom-ref": purl, "name": name, "version": package["version"], "purl": purl}
        if re.fullmatch(r"[A-Za-z0-9.+-]+", package.get("license", "")):
            component["licenses"] = [{"license": {"id": package["license"]}}]
        algorithm, _, digest = package.get("integrity", "").partition("-")
        if algorithm == "sha512":
            component["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]
        found[purl] = {**component, "properties": properties(linkage="bundled")}
    return found


def document(options):
    """The whole of it."""
    shared = shared_libraries(options.program)
    files = [(path, name, "shared") for name, path in shared.items()]
    files += [(path, os.path.basename(path), "static") for path in link_inputs(options.link_inputs, Path(options.program).resolve().parent)]
    files += [(path, re.sub(r".*/include/", "", path), "headers") for path in options.header]
    components = system_components(files)
    for lock in options.lock:
        components |= npm_components(lock)

    digest = hashlib.sha256(Path(options.program).read_bytes()).hexdigest()
    dpkg = any(ref.startswith("pkg:deb/") for ref in components)
    listed = [components[ref] for ref in sorted(components)]
    metadata = {
        "tools": {"components": [{"type": "application", "name": "sbom.py", "publisher": "Belfry"}]},
        "component": {
            "type": "application", "bom-ref": "belfry", "name": "belfry", "version": options.version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
            "hashes": [{"alg": "SHA-256", "content": digest}],
        },
        "properties": properties(
            libraries="" if shared else "unknown: ldd does not read this program",
            packages="dpkg" if dpkg else "unknown: dpkg is not there, or knows none of these files",
        ),
    }
    if re.fullmatch(r"\d+", os.environ.get("SOURCE_DATE_EPOCH", "")):
        time = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
        metadata["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    content = {"metadata": metadata, "components": listed, "dependencies": [
        {"ref": "belfry", "dependsOn": sorted(components)}, *({"ref": ref} for ref in sorted(components)),
    ]}
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{identity}", "version": 1, **content,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--link-inputs")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--lock", action="append", default=[])
    options = parser.parse_args()
    text = json.dumps(document(options), indent=2, ensure_ascii=False) + "\n"
    # All of it or the one before, never half of it.
    half = f"{options.out}.new"
    Path(half).write_text(text, encoding="utf-8")
    os.replace(half, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
