"""Sends random requests to a service, and checks every response against the OpenAPI document: see Scripts/fuzz-api."""
import argparse
import collections
import os
import pathlib
import random
import sys
import time
import urllib.parse

import schemathesis
from schemathesis.engine import events, from_schema

import hooks
from people import People

HERE = pathlib.Path(__file__).parent
PROGRESS_SECONDS = 30
SHOWN_CHARACTERS = 600
DAY = 86_400
# A short run consists mostly of invalid requests.
LEAST_SUCCESSES = 0.15


class Tally:
    """Counts the responses, and prints each finding once."""

    def __init__(self):
        self.statuses = collections.Counter()
        self.of_operations = collections.defaultdict(collections.Counter)
        self.findings = set()

    @property
    def requests(self):
        return self.statuses.total()

    def count(self, recorder):
        for id, interaction in recorder.interactions.items():
            response = interaction.response
            status = response.status_code if response else 0
            self.statuses[status] += 1
            self.of_operations[recorder.cases[id].value.operation.label][status] += 1
            for check in recorder.checks.get(id, []):
                if check.failure_info:
                    failure, sample = check.failure_info.failure, check.failure_info.code_sample
                    self.find(failure.operation, failure.title, failure.message, sample, response)

    def find(self, operation, title, message, sample="", response=None):
        cause = operation, title, reason(response) if response else message
        if cause not in self.findings:
            self.findings.add(cause)
            shown = response.text[:SHOWN_CHARACTERS] if response and response.content else ""
            print(f"\nFOUND  {operation}: {title}\n{message}\n{sample}\n{shown}", flush=True)

    def share_of_successes(self):
        return sum(count for status, count in self.statuses.items() if 200 <= status < 300) / max(1, self.requests)

    def summary(self):
        classes = collections.Counter()
        for status, count in self.statuses.items():
            classes[f"{status // 100}xx" if status else "without response"] += count
        shares = [f"{count} {name} ({count / self.requests:.0%})" for name, count in sorted(classes.items())]
        return ", ".join([f"{self.requests} requests", *shares, f"{len(self.findings)} findings"])

    def table(self):
        for operation, statuses in sorted(self.of_operations.items()):
            yield operation + "  " + ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))


def reason(response):
    """The status, and the errors of the fields. Findings with another reason have another cause."""
    try:
        problem = response.json()
        fields = tuple((error["field"], error["code"]) for error in problem.get("errors", []))
        return response.status_code, problem.get("type"), fields
    except (ValueError, AttributeError):
        return response.status_code


def arguments():
    parser = argparse.ArgumentParser(prog="Scripts/fuzz-api")
    parser.add_argument("--requests", type=int, help="end after this many requests")
    parser.add_argument("--seconds", type=int, help="end after this time")
    parser.add_argument("--document", help="a file to use instead of the service's document")
    parser.add_argument("--table", action="store_true", help="print the statuses of each operation")
    parser.add_argument("url")
    given = parser.parse_args()
    if urllib.parse.urlsplit(given.url).hostname not in ("127.0.0.1", "localhost"):
        parser.error("the service must be on this machine")
    return given


def load(given, seed):
    config = schemathesis.Config.from_path(HERE / "schemathesis.toml")
    # With a limit, the phases take turns until it is reached.
    config.update(seed=seed, max_failures=None, max_time=given.seconds or DAY)
    if given.document:
        schema = schemathesis.openapi.from_path(given.document, config=config)
    else:
        schema = schemathesis.openapi.from_url(f"{given.url}/openapi.yaml", config=config)
    schema.config.base_url = given.url
    return schema


def main():
    given = arguments()
    seed = int(os.environ.get("FUZZ_SEED") or random.getrandbits(32))
    print(f"To make the same choices again, set FUZZ_SEED={seed}.", flush=True)
    hooks.install(People(given.url.rstrip("/"), random.Random(seed), os.environ.get("FUZZ_LOG")))
    tally = Tally()
    stream = from_schema(load(given, seed)).execute()
    shown = time.monotonic()
    for event in stream:
        match event:
            case events.ScenarioFinished():
                tally.count(event.recorder)
                if given.requests and tally.requests >= given.requests:
                    stream.stop()
            case events.NonFatalError():
                tally.find(event.label, event.info.title, event.info.message)
            case events.FatalError():
                raise event.exception
        if time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            print(tally.summary(), flush=True)
    if given.table:
        print(*tally.table(), sep="\n")
    print(tally.summary())
    if tally.share_of_successes() < LEAST_SUCCESSES:
        sys.exit("Too few requests were successful, so the run says little about the service.")
    if tally.findings:
        sys.exit(f"To make the same choices again, set FUZZ_SEED={seed}.")


main()
