"""Measures a running program `isovec serve` from outside, with nothing but Python's standard library.

    python3 benches/serve/measure.py PROGRAM MODEL start    # from exec to ready
    python3 benches/serve/measure.py PROGRAM MODEL stop     # SIGTERM under load, 50 times: what is lost
    python3 benches/serve/measure.py PROGRAM MODEL memory   # resident memory over 1,000,000 mixed requests
    python3 benches/serve/measure.py PROGRAM MODEL overload # resident memory at ten times what it can serve, for two minutes
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

WORDS = Path(__file__).read_text().split()


class Server:
    """A server with one model, on a port that was free a moment ago."""

    def __init__(self, program: str, model: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["--model", model, "--name", "m", "--port", str(self.port), "--engine", "portable", "--max-requests", "64"]
        self.began = time.monotonic()
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, "serve", "--log", "json", *options], stderr=self.log)

    def until_ready(self) -> float:
        """Seconds from exec to the first answer 200 of /health/ready."""
        while True:
            try:
                client = self.client()
                client.request("GET", "/health/ready")
                if client.getresponse().status == 200:
                    return time.monotonic() - self.began
            except OSError:
                pass
            time.sleep(0.002)

    def client(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def answered(self) -> int:
        """Requests to /embed that the server's own log says were answered with vectors."""
        self.log.seek(0)
        lines = (json.loads(line) for line in self.log if line.startswith("{"))
        return sum(line.get("route") == "/embed" and line.get("status") == 200 for line in lines)

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def ask(client: http.client.HTTPConnection, body: object, path: str = "/embed") -> tuple[int, bytes]:
    client.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = client.getresponse()
    return answer.status, answer.read()


def start(program: str, model: str) -> None:
    times = []
    for _ in range(10):
        server = Server(program, model)
        times.append(server.until_ready())
        server.process.terminate()
        server.process.wait()
    print(f"exec to ready: p50 {statistics.median(times):.3f} s, {min(times):.3f} to {max(times):.3f} s of {len(times)} starts")


def stop(program: str, model: str) -> None:
    counts = {"answered": 0, "refused": 0, "lost": 0, "cut": 0}
    for turn in range(50):
        server = Server(program, model)
        server.until_ready()
        lock = threading.Lock()
        before = counts["answered"]

        def load() -> None:
            client = server.client()
            while True:
                try:
                    status, body = ask(client, {"inputs": ["a text of a few words", "another"]})
                except (OSError, http.client.HTTPException):
                    # The connection was closed before an answer began. Whether the server had taken the request is what its log says.
                    return
                with lock:
                    counts["answered" if status == 200 and len(json.loads(body)) == 2 else "refused"] += 1

        threads = [threading.Thread(target=load) for _ in range(16)]
        for thread in threads:
            thread.start()
        time.sleep(random.Random(turn).uniform(0.05, 0.3))
        server.process.send_signal(signal.SIGTERM)
        counts["cut"] += server.process.wait(60) != 0
        for thread in threads:
            thread.join()
        counts["lost"] += server.answered() - (counts["answered"] - before)
    print(f"SIGTERM under load of 16 clients, 50 times: {counts}")


def memory(program: str, model: str) -> None:
    server = Server(program, model)
    server.until_ready()
    done, every, most = 0, 50_000, 1_000_000
    lock = threading.Lock()
    seen: dict[int, int] = {}
    statuses: dict[int, int] = {}

    def load(seed: int) -> None:
        nonlocal done
        source, client = random.Random(seed), server.client()
        while True:
            with lock:
                if done >= most:
                    return
                done += 1
                if done % every == 0:
                    seen[done] = server.resident()
            kind = source.random()
            texts = [" ".join(source.choices(WORDS, k=source.choice([1, 3, 8, 30]))) for _ in range(source.choice([1, 1, 1, 4]))]
            if kind < 0.6:
                status, _ = ask(client, {"inputs": texts})
            elif kind < 0.8:
                status, _ = ask(client, {"model": "m", "input": texts, "encoding_format": "base64"}, "/v1/embeddings")
            elif kind < 0.9:
                status, _ = ask(client, {"inputs": texts}, "/tokenize")
            elif kind < 0.95:
                status, _ = ask(client, {"inputs": 7})
            else:
                status, _ = ask(client, {"model": "nobody", "input": "a"}, "/v1/embeddings")
            with lock:
                statuses[status] = statuses.get(status, 0) + 1

    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(16)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    server.process.terminate()
    assert server.process.wait(60) == 0
    print(f"{most} mixed requests of 16 clients in {seconds:.0f} s: {statuses}")
    print("resident MiB: " + ", ".join(f"{count}: {kib / 1024:.1f}" for count, kib in sorted(seen.items())))


def overload(program: str, model: str) -> None:
    server = Server(program, model)
    server.until_ready()
    text = "the quick brown fox jumps over the lazy dog " * 14
    lock = threading.Lock()
    statuses: dict[int, int] = {}

    def ask_until(end: float, next_time: Callable[[], float]) -> None:
        client = server.client()
        while (at := next_time()) < end:
            time.sleep(max(0.0, at - time.monotonic()))
            status, _ = ask(client, {"inputs": [text]})
            with lock:
                statuses[status] = statuses.get(status, 0) + 1

    def run(clients: int, seconds: float, next_time: Callable[[], float]) -> None:
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=ask_until, args=(end, next_time)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run(16, 10, time.monotonic)
    capacity = statuses[200] / 10
    statuses.clear()
    # Requests come at their times, whether others are answered or not, as long as a client is free.
    numbers, began = itertools.count(), time.monotonic()
    every = 1 / (10 * capacity)
    seen = [(0, server.resident())]
    done = threading.Event()

    def look() -> None:
        while not done.wait(20):
            seen.append((round(time.monotonic() - began), server.resident()))

    looking = threading.Thread(target=look)
    looking.start()
    run(256, 121, lambda: began + next(numbers) * every)
    done.set()
    looking.join()
    seconds = time.monotonic() - began
    server.process.terminate()
    assert server.process.wait(60) == 0
    sent = sum(statuses.values()) / seconds
    print(f"{capacity:.0f} requests a second can be served; {sent:.0f} came for {seconds:.0f} s: {statuses}")
    print("resident MiB: " + ", ".join(f"{second} s: {kib / 1024:.1f}" for second, kib in seen))


if __name__ == "__main__":
    program, model, what = sys.argv[1:]
    {"start": start, "stop": stop, "memory": memory, "overload": overload}[what](program, model)
