#!/usr/bin/env python3
"""Measures what the restructuring is bound by, of an older commit and of this tree, and prints one table.

Usage: benches/bounds.py COMMIT [--turns N] [--sample SECONDS] [--only PART ...]

Both versions take turns, and ratios are medians over the turns. Builds come first. Then the defaults take some ten minutes on
a quiet machine of two processors. Servers run on the first processor, clients on the second. Other servers are measured
where they are installed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent.parent
PARTS = ["structure", "compare", "network", "servers"]
EXAMPLES = ["echo_server", "echo_callbacks", "http_server", "resp_server", "tcp_proxy"]
LIBRARY = ["src", "runtime/src", "sync/src", "io/src"]

# The most questions of `compare` that are asked once more.
DOUBTFUL = 16

rows = []


def row(figure, bound, before, after, holds=None):
    """Adds a row of the table; `holds` says whether the bound is kept."""
    rows.append((figure, bound, before, after, {None: "", True: "✓", False: "✗"}[holds]))


def say(text):
    print(f"[{time.monotonic() - START:4.0f} s] {text}", file=sys.stderr, flush=True)


# The structure.

def sources(tree, folder):
    """The code of each file of a folder: without comments, blank lines and tests."""
    for path in sorted((tree / folder).rglob("*.rs")):
        inner = path.relative_to(tree / folder)
        if path.name == "tests.rs" or "tests" in inner.parts[:-1]:
            continue
        text = re.split(r"\n#\[cfg\(test\)\]\s*\nmod tests \{", path.read_text())[0]
        lines = re.sub(r"/\*.*?\*/", "", text, flags=re.S).split("\n")
        code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
        yield len(code), re.sub(r'"(?:\\.|[^"\\])*"', '""', re.sub(r"//.*", "", "\n".join(code)))


def structure(before, after):
    def count(tree, folders, of):
        return sum(of(lines, code) for folder in folders for lines, code in sources(tree, folder))

    def is_unsafe(_, code):
        return bool(re.search(r"\bunsafe\b", code))

    strategies = re.compile(r"impl(?:<[^{]*?>)?\s+(?:\w+::)*WaitStrategy\s+for\s")
    figures = [
        ("code lines of the library", 25_000, LIBRARY, lambda lines, _: lines),
        ("code lines of `benches/src`", 9_500, ["benches/src"], lambda lines, _: lines),
        ("files of `runtime` with `unsafe`", 42, ["runtime/src"], is_unsafe),
        ("files of `sync` with `unsafe`", 13, ["sync/src"], is_unsafe),
        ("files of `io` with `unsafe`", 13, ["io/src"], is_unsafe),
        ("`unsafe` blocks", 340, LIBRARY, lambda _, code: len(re.findall(r"\bunsafe\s*\{", code))),
        ("implementations of `WaitStrategy`", 8, LIBRARY, lambda _, code: len(strategies.findall(code))),
    ]
    for figure, most, folders, of in figures:
        old, new = (count(tree, folders, of) for tree in (before, after))
        row(figure, f"at most {most:,}", f"{old:,}", f"{new:,}", new <= most)


# The rows of `compare`.

def bound_of(workers, name):
    if workers == "2":
        return "two-worker rows", 1.15
    if "spawn and join one" in name:
        return "spawn and join, one worker", 1.15
    if re.search(r"ping-pong|event|condition|notified", name):
        return "ping-pong, event and condition rows, one worker", 1.20
    return "other one-worker rows", 1.10


def paired(before, turns, arguments):
    """The figures of pair.sh: before, after and their ratio for workers, question and measure."""
    script = [HERE / "benches/pair.sh", before / "compare", turns, *arguments]
    table = subprocess.run([str(word) for word in script], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.findall(r"^(\d) (.*) \[(\w+)\] +([\d.]+) +([\d.]+) +([\d.]+)$", table, flags=re.M)
    return {(workers, question, measure): tuple(map(float, figures)) for workers, question, measure, *figures in found}


def compare(before, after, options):
    say("rows of compare")
    subjects = "^(tasks|structured|locks|hand-over|crowds|free|timers|skewed load|memory)"
    figures = paired(before, options.turns // 2 + 1, ["--rounds", "2", "--seconds", options.sample, subjects])
    judged = {key: bound_of(*key[:2]) for key in figures if key[2] in ("Time", "Cpu")}
    excess = sorted(((figures[key][2] / most, f"^{key[1]}$") for key, (_, most) in judged.items()), reverse=True)
    # The worst ones only, so that a busy machine does not make it take for ever.
    doubtful = list(dict.fromkeys(question for by, question in excess if by > 1))[:DOUBTFUL]
    if doubtful:
        say(f"{len(doubtful)} questions once more, for longer")
        figures |= paired(before, options.turns, ["--rounds", "3", "--seconds", 3 * options.sample, *doubtful])
    groups = {}
    for key, (old, new, ratio) in figures.items():
        print(f"{' '.join(key):<75} {old:12.1f} {new:12.1f} {ratio:8.2f}")
        if key in judged:
            groups.setdefault(judged[key], []).append((ratio, key[1]))
        elif key[2] == "Memory":
            row(f"bytes, {key[1]}", "as before", f"{old:.0f}", f"{new:.0f}", ratio <= 1.01)
    for (group, most), ratios in groups.items():
        ratios.sort(reverse=True)
        missed = [f"{ratio:.2f} {name}" for ratio, name in ratios if ratio > most]
        shown = ", ".join(missed) or f"{ratios[0][0]:.2f} {ratios[0][1]}"
        row(f"{group}: {len(ratios) - len(missed)} of {len(ratios)} within", f"at most {most:.2f}", "1",
            f"worst: {shown}", not missed)
    say("free mutexes beside parking_lot")
    questions = ["^locks: mutex, free$", "^free: reentrant mutex$", "--workers", "1", "--seconds", "1",
                 "--among", "fibra", "--among", "parking_lot"]
    found = {}
    for name, folder in (("before", before), ("after", after)):
        with tempfile.TemporaryDirectory() as work:
            run([folder / "compare", *questions, "--json", f"{work}/json", "--html", f"{work}/html"])
            for entry in json.loads(Path(f"{work}/json").read_text())["rows"]:
                found.setdefault(entry["question"], {})[name] = entry["ratio_to_best_rival"]
    for question, ratios in found.items():
        if None not in ratios.values() and len(ratios) == 2:
            row(f"{question}, to parking_lot", "at most 1.05", *(f"{ratios[when]:.2f}" for when in ("before", "after")),
                ratios["after"] <= 1.05)


# Servers under the load of `load`, which starts each of them anew.

def run(command, **options):
    done = subprocess.run([str(word) for word in command], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def loaded(programs, commands, arguments, seconds):
    """Loads servers one after the other; their processor time per request and their median latency."""
    with tempfile.TemporaryDirectory() as work:
        words = [word for name, command in commands for word in ("--command", f"{name}={command}")]
        run([programs / "load", *words, *arguments, "--no-cross-check", "--duration", f"{seconds:g}", "--warmup", "300ms",
             "--json", f"{work}/json", "--html", f"{work}/html"])
        servers = json.loads(Path(f"{work}/json").read_text())["servers"]
    middle = lambda server: next(share["ns"] for share in server["latency"]["percentiles"] if share["share"] == 0.5)
    return {server["name"]: (server["server_cpu_per_request_ns"], middle(server)) for server in servers}


def in_turn(commands, turns, measure):
    """Measures `turns` times, each time in another order; a list of figures for each name."""
    figures = {}
    for turn in range(turns):
        at = turn % len(commands)
        for name, found in measure(commands[at:] + commands[:at]).items():
            figures.setdefault(name, []).append(found)
    return figures


def ratio(figures, name, of, which=0):
    return median(one[which] / other[which] for one, other in zip(figures[name], figures[of]))


def both(before, after, server, arguments="127.0.0.1:0"):
    """The commands of an example of both versions, by name."""
    return [(name, f"{folder}/examples/{server} {arguments}") for name, folder in (("before", before), ("after", after))]


def network(before, after, options):
    def ask(what, server, arguments, beside=()):
        say(what)
        commands = [*both(before, after, server), *beside]
        return in_turn(commands, options.turns, lambda order: loaded(after, order, arguments, options.load))

    loop = [("loop", f"{after}/examples/echo_callbacks 127.0.0.1:0")]
    one = ask("echo, 1 connection", "echo_server", ["--connections", 1], loop)
    low = ask("echo, 1,000 requests a second", "echo_server", ["--connections", 64, "--rate", 1000], loop)
    to_loop = [("echo, 1 connection: median latency", one, 1, 0.5), ("echo, 1 connection: processor time", one, 0, 1.0),
               ("1,000 requests a second: processor time", low, 0, 1.0)]
    for what, figures, which, most in to_loop:
        old, new = (ratio(figures, name, "loop", which) for name in ("before", "after"))
        row(f"{what}, to the event loop", f"at most {most:g}", f"{old:.2f}", f"{new:.2f}", new <= most)
    for what, server, arguments in [
        ("echo, 64 connections", "echo_server", ["--connections", 64]),
        ("echo, 1,000 connections", "echo_server", ["--connections", 1000]),
        ("HTTP, 64 connections", "http_server", ["--protocol", "http"]),
    ]:
        found = ratio(ask(what, server, arguments), "after", "before")
        row(f"{what}: processor time per request", "at most 1.03", "1", f"{found:.2f}", found <= 1.03)


# The examples beside other servers.

def beside(what, figures, of):
    old, new = (ratio(figures, name, of) for name in ("before", "after"))
    row(f"{what}, to {of}", f"at most {1.03 * old:.2f}", f"{old:.2f}", f"{new:.2f}", new <= 1.03 * old)


def configured(program, text, work):
    """A command that fills the port into a configuration and becomes the program."""
    template = Path(work) / f"{program}.conf"
    template.write_text(text)
    return f"sh -c 'sed s/PORT/{{port}}/ {template} > {work}/{program}.{{port}}; exec {program} {{flags}} {work}/{program}.{{port}}'"


def servers(before, after, options):
    with tempfile.TemporaryDirectory() as work:
        os.environ["PATH"] += ":/usr/sbin"
        if shutil.which("nginx"):
            text = f"""daemon off; master_process off; worker_processes 1; pid {work}/pid; error_log /dev/null;
                events {{ worker_connections 2048; }}
                http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {work}/body; proxy_temp_path {work}/proxy;
                    fastcgi_temp_path {work}/fastcgi; uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
                    server {{ listen 127.0.0.1:PORT; default_type text/plain; return 200 "Hello, World!"; }} }}"""
            nginx = configured("nginx", text, work).replace("{flags}", "-c")
            say("http_server beside nginx")
            commands = both(before, after, "http_server") + [("nginx", nginx)]
            beside("`http_server`", in_turn(commands, options.turns,
                lambda order: loaded(after, order, ["--protocol", "http"], options.load)), "nginx")
        if shutil.which("haproxy"):
            server = subprocess.Popen(["taskset", "-c", "1", f"{after}/examples/echo_callbacks", "127.0.0.1:0"],
                                      stdout=subprocess.PIPE, text=True)
            try:
                backend = server.stdout.readline().split()[-1]
                text = f"""global
    nbthread 1
    maxconn 4000
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen proxy
    bind 127.0.0.1:PORT
    server one {backend}
"""
                haproxy = configured("haproxy", text, work).replace("{flags}", "-db -f")
                commands = both(before, after, "tcp_proxy", f"{backend} 127.0.0.1:0") + [("HAProxy", haproxy)]
                for what, arguments in [("64 connections", []), ("1,000 connections", ["--connections", 1000]),
                                        ("messages of 64 KiB", ["--size", "64k"])]:
                    say(f"tcp_proxy beside HAProxy, {what}")
                    beside(f"`tcp_proxy`, {what}", in_turn(commands, options.turns,
                        lambda order: loaded(after, order, arguments, options.load)), "HAProxy")
            finally:
                server.terminate()
        if shutil.which("redis-server") and shutil.which("redis-benchmark"):
            redis = [("redis-server", "redis-server --bind 127.0.0.1 --save '' --appendonly no --port {port}")]
            commands = both(before, after, "resp_server", "127.0.0.1:{port}") + redis
            for what, arguments in [("GET", ["-t", "get"]), ("SET", ["-t", "set"]), ("16 GETs at a time", ["-t", "get", "-P", "16"]),
                                    ("16 SETs at a time", ["-t", "set", "-P", "16"])]:
                say(f"resp_server beside redis-server, {what}")
                requests = int(options.load * (1_000_000 if "-P" in arguments else 100_000))
                beside(f"`resp_server`, {what}", in_turn(commands, options.turns,
                    lambda order: {name: asked(command, arguments, requests) for name, command in order}), "redis-server")


def asked(command, arguments, requests):
    """The processor time of a server of Redis's protocol for one request, in a tuple."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = "exec taskset -c 0 " + command.replace("{port}", str(port))
    server = subprocess.Popen(line, shell=True, stdout=subprocess.DEVNULL)
    try:
        client = ["taskset", "-c", "1", "redis-benchmark", "-p", port, "-c", "64", *arguments, "-q", "-n"]
        for _ in range(250):
            time.sleep(0.02)
            with socket.socket() as knock:
                if not knock.connect_ex(("127.0.0.1", port)):
                    break
        run([*client, requests // 10])
        begin = used(server.pid)
        run([*client, requests])
        return ((used(server.pid) - begin) / requests,)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def used(process):
    """The nanoseconds that all threads of a process have run."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{process}/task").glob("*/schedstat"))


def built(command):
    subprocess.run([str(word) for word in command], cwd=HERE, check=True, stdout=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--turns", type=int, default=5, help="how often both versions are measured (5)")
    parser.add_argument("--sample", type=float, default=0.1, help="seconds for each row of compare in a turn (0.1)")
    parser.add_argument("--load", type=float, default=1, help="seconds for each server in a turn (1)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the parts that are measured")
    options = parser.parse_args()
    os.environ["FIBRA_WORKERS"] = "1"
    os.environ.setdefault("CARGO_TARGET_DIR", str(HERE / "target"))
    say("building")
    program = ["-p", "fibra-bench", "--features", "rivals", "--bin", "compare", "--bin", "load"]
    examples = [word for name in EXAMPLES for word in ("--example", name)]
    for arguments in (examples, program):
        printed = run([HERE / "benches/before.sh", options.commit, *arguments])
        built(["cargo", "build", "--release", *arguments])
    before, tree = map(Path, printed.split("\n")[:2])
    after = Path(os.environ["CARGO_TARGET_DIR"]).absolute() / "release"
    for part in options.only:
        if part == "structure":
            structure(tree, HERE)
        else:
            globals()[part](before, after, options)
    print("| figure | bound | before | after | |\n| --- | --- | ---: | ---: | --- |")
    for cells in rows:
        print("|", " | ".join(cells), "|")
    say("done")


START = time.monotonic()
if __name__ == "__main__":
    main()
