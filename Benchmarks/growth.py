#!/usr/bin/env python3
"""Multiplies the written model (growth/model.py) with the measured figures (growth/measured.json, by capacity.py): the
cost of a day of an active user, the users that machines carry, and the growth to 50 million users over five years on
one primary, with partitions and a retention, and on 16 nodes. It prints its inputs. docs/scaling.md has its tables.

    Benchmarks/growth.py [--every MONTHS]
    Benchmarks/growth.py --check

`--check` compares the simulation with cases whose result is known, and the figures of docs/scaling.md with its own.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True

from growth import model  # noqa: E402
from growth.simulation import (  # noqa: E402
    DAY_SECONDS, PARTS, Costs, breaks, carried, limits, measured, months, nodes_of, size, taken, working_set)

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "scaling.md")
# The months that an event stays in the archive, where it does not stay for good.
RETENTION = 24
RESOURCES = {
    "processor": "processor", "memory": "memory", "disk": "disk", "WAL": "WAL", "restore": "a restore in 8 hours",
    "vacuum": "VACUUM in time",
}


def short(number, unit=""):
    """With three digits: 1.23 million, 340 GB."""
    scales = ((1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1, " B")) if unit == "B" else (
        (1e9, " billion"), (1e6, " million"), (1, ""))
    rounded = float(f"{number:.3g}")
    scale, name = next((pair for pair in scales if rounded >= pair[0]), scales[-1])
    value = rounded / scale
    return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + name


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


def table_of_day(costs):
    """The kinds in order of their share of PostgreSQL's time."""
    each, rows = costs.figures["each"], []

    def row(name, times, figures):
        wal = figures.get("wal", 0)
        return (
            times * figures["database_us"], f"`{name}`" if name in model.DAY else name, f"{times:g}",
            f"{figures['service_us']:,.0f}", f"{figures['database_us']:,.0f}",
            f"{wal / 1e3:,.1f}" if wal else "", f"{figures['wal_pages'] / 1e3:,.0f}" if wal else "")

    for name, times in costs.parts().items():
        rows.append(row(name, times, each[name]))
    alone, pushed = each["notification"], each["notification with delivery"]
    delivery = {unit: max(0, value - alone[unit]) for unit, value in pushed.items()}
    rows.append(row("delivery", costs.notifications * model.DEVICES, delivery))
    rows.sort(reverse=True)
    sums = costs.sums
    rows.append((
        0, "**all**", "", f"{sums['service_us']:,.0f}", f"{sums['database_us']:,.0f}", f"{sums['wal'] / 1e3:,.0f}",
        f"{sums['wal_pages'] / 1e3:,.0f}"))
    return table(
        ("request", "times a day", "service, µs", "PostgreSQL, µs", "WAL, kB", "pages in WAL, kB"),
        [columns[1:] for columns in rows])


def table_of_machines(costs):
    rows = []
    for name, machine in model.MACHINES.items():
        by = carried(costs, machine)
        first = min(by, key=by.get)
        daily = by[first]
        serves, workers = costs.processes(daily)
        streams = costs.streams(daily)
        rows.append((
            f"{name}, {short(machine['memory'], 'B')}, {short(machine['disk'], 'B')}",
            *(short(by[resource]) for resource in ("processor", "memory", "disk", "WAL", "restore")),
            f"{short(daily)} ({RESOURCES[first]})", short(daily / model.DAILY),
            f"{short(streams)} ({short(streams * costs.figures['bytes_of_stream'], 'B')})", f"{serves} and {workers}",
            f"{costs.connections(daily):,}"))
    return table(
        ("PostgreSQL's machine", "processor", "memory", "disk", "WAL", "a restore in 8 hours", "the least",
         "registered users", "open streams (memory)", "`serve` and `worker`", "connections"), rows)


def variants(costs):
    """Name, history, and the number of nodes."""
    return {
        "one primary": (list(months(costs)), 1),
        f"partitions, events kept for {RETENTION} months": (
            list(months(costs, partitions=True, retention=RETENTION)), 1),
        f"{model.NODES} nodes": (list(months(costs, retention=RETENTION)), model.NODES),
    }


def table_of_months(costs, history, nodes, every):
    rows = []
    for month in history:
        if month.month % every and month.month != model.MONTHS:
            continue
        copies = model.COPIES / nodes if nodes > 1 else 1
        # A transaction takes part on each node with one of its rows.
        writes = month.writes * (nodes_of(costs.row_writes / costs.writes, nodes) / nodes if nodes > 1 else 1)
        rows.append((
            f"{month.month}", short(month.users), short(month.rows * copies), short(size(month) * copies, "B"),
            short(working_set(month) * copies, "B"), short(writes),
            short(month.row_writes * copies), short(month.dead * copies), short(month.updated * copies),
            f"{taken(month, nodes)['processor']:,.1f}", f"{taken(month, nodes)['WAL'] / 1e6:,.1f}"))
    return table(
        ("month", "users", "rows", "bytes", "working set", "writes a month", "rows written", "dead rows",
         "rows updated on a day", "processors at the peak", "WAL at the peak, MB/s"), rows)


def table_of_breaks(costs):
    rows = []
    for variant, (history, nodes) in variants(costs).items():
        for name, machine in model.MACHINES.items():
            found = breaks(history, machine, nodes)
            rows.append((
                variant, name, *(
                    f"{found[resource].month} ({short(found[resource].users)})" if resource in found else "–"
                    for resource in RESOURCES)))
    return table(("", "each machine", *RESOURCES.values()), rows)


def table_of_rows(costs):
    names = {
        "users": "user", "user_stamps": "stamps of a user", "friendships": "friendship", "events": "event",
        "invitations": "guest", "notifications": "notification", "sessions": "session", "devices": "device",
        "idempotency_keys": "response to a repeated request",
    }
    return table(("row", "bytes"), [(name, f"{costs.size[rows]:,.0f}") for rows, name in names.items()])


def table_of_user(costs):
    month = 30 * model.DAILY / model.MONTHLY
    parts = {
        "a seeded user: 50 friends, 20 invitations, two events of ten guests": costs.figures["bytes_of_user"],
        f"a registered user of the model: {model.FRIENDS} friends, {model.SESSIONS} sessions and devices, without events "
        "and picture": costs.registered,
        f"added for good by a user who is active in a month: {month * model.DAY['create']:.2f} events with ten guests":
            costs.month(),
        f"added for {model.INBOX_DAYS} days by a user who is active in a month: {month * costs.notifications:.0f} "
        "notifications": costs.inbox(),
        "an open stream, in the memory of `serve`": costs.figures["bytes_of_stream"],
    }
    return table(("", "bytes"), [(words, f"{value:,.0f}") for words, value in parts.items()])


def table_of_bytes(costs):
    last = list(months(costs))[-1]
    parts = {
        "live": "users, friendships, sessions, events to come", "past": "past events with their guests",
        "inbox": "inboxes of 90 days", "keys": "responses kept for repeated requests", "pictures": "pictures",
    }
    return table(
        ("after five years", "bytes", "share"),
        [(words, short(getattr(last, part), "B"), f"{getattr(last, part) / size(last):.0%}")
         for part, words in parts.items()])


def table_of_nodes(costs):
    rows = []
    for kind in ("refresh", "read", "answer", "edit", "create"):
        changed = rows_of(costs, kind)
        rows.append((f"`{kind}`", f"{changed:.1f}", f"{nodes_of(changed):.1f}"))
    return table(("write", "rows", f"of {model.NODES} nodes"), rows)


def sentences(costs):
    """The figures in the sentences of the guide."""
    sums = costs.sums
    yield f"Measured: {costs.figures['when']}."
    yield (f"{sums['database_us'] / 1e3:.1f} ms of PostgreSQL's processor time and {sums['service_us'] / 1e3:.1f} ms of the "
           "service's on a day")
    yield f"{sums['wal'] / 1e3:.0f} to {costs.wal / 1e3:.0f} kB of WAL"
    carries, largest = [], None
    for machine in model.MACHINES.values():
        daily = min(carried(costs, machine).values())
        carries.append((short(machine["memory"], "B"), short(daily / model.DAILY)))
        largest = list(months(costs, partitions=True, retention=12, users=lambda _: daily / model.DAILY))[-1]
    yield f"{working_set(largest) / largest.users / 1e3:.1f} kB for a registered user"
    yield (f"{carries[0][0]} carry {carries[0][1]} registered users, "
           + ", ".join(f"{memory} {users}" for memory, users in carries[1:]))
    yield f"{short(largest.transactions / 30 / DAY_SECONDS * model.PEAK)} transactions a second at the peak"
    history = variants(costs)["one primary"][0]
    last = history[-1]
    shares = {part: f"{getattr(last, part) / size(last):.0%}" for part in PARTS}
    yield f"{shares['pictures']} is pictures, {shares['past']} past events, {shares['inbox']} inboxes"
    yield f"Without them, one primary would hold {short(size(last) - last.pictures, 'B')} after five years"
    search = costs.searching(model.USERS_AT_END)
    yield f"that is {search / (search + sums['database_us']):.0%} of all work"
    yield ", ".join(f"{short(machine['memory'], 'B')} in month {breaks(history, machine)['memory'].month}"
                    for machine in model.MACHINES.values())
    yield f"writes rows on {nodes_of(rows_of(costs, 'edit')):.0f} nodes"
    yield f"One machine of 96 cores carries {carries[-1][1]} users"
    for kind, share in (("processor", model.PROCESSOR), ("memory and disk", model.MEMORY)):
        yield f"{kind} may be {'busy for ' if kind == 'processor' else ''}{share:.0%}"


def rows_of(costs, kind):
    return sum(costs.figures["each"][kind][unit] for unit in ("inserts", "hot_updates", "updates", "deletes"))


def tables(costs, every):
    shown = {
        "Bytes of a row": table_of_rows(costs),
        "Bytes of a user": table_of_user(costs),
        "A day of an active user": table_of_day(costs),
        "Active users a day that each resource allows": table_of_machines(costs),
        "What fills the disk of one primary": table_of_bytes(costs),
    }
    for variant, (history, nodes) in variants(costs).items():
        name = f"Growth: {variant}" + (", each node" if nodes > 1 else "")
        shown[name] = table_of_months(costs, history, nodes, every)
    shown["The month in which each limit is exceeded, and the users by then"] = table_of_breaks(costs)
    shown["The nodes of a transaction, if rows are spread at random"] = table_of_nodes(costs)
    return shown


def print_inputs(figures):
    print(f"Measured: {figures['when']}")
    for name, each in figures["each"].items():
        print(f"  {name}: " + ", ".join(f"{unit} {value:,.1f}" for unit, value in each.items()))
    print("  bytes of a row: " + ", ".join(f"{table} {value:,.0f}" for table, value in figures["bytes"].items()))
    print(f"  a seeded user {figures['bytes_of_user']:,} bytes, an open stream {figures['bytes_of_stream']:,} bytes")
    day = figures["touched"]
    print(f"  a day of {day['users']:.0%} of the users touches {day['pages']:.0%} of the pages")
    print("Assumed:")
    for name, value in vars(model).items():
        if name.isupper():
            print(f"  {name} = {value}")


def check(costs):
    """Raises AssertionError."""
    assert model.users(0) == model.USERS_AT_START and abs(model.users(model.MONTHS) - model.USERS_AT_END) < 1
    assert set(model.KEYED) <= set(model.DAY) and set(model.NOTIFICATIONS) <= set(model.DAY)
    history = list(months(costs))
    for before, after in zip(history, history[1:]):
        assert before.users < after.users and before.past < after.past and size(before) < size(after)
    # Without growth, the tables that lose rows reach a size and stay there.
    steady = {
        name: list(months(costs, users=lambda _: 1_000_000, **options))
        for name, options in {"rows": {}, "partitions": {"partitions": True}, "kept": {"retention": 12}}.items()}
    filed = 1_000_000 * model.DAILY * costs.notifications * 30 * costs.size["notifications"]
    near(steady["rows"][-1].inbox, 3 * filed)
    near(steady["partitions"][-1].inbox, 4 * filed)
    near(steady["kept"][-1].past, steady["kept"][12].past)
    assert steady["rows"][-1].past > 4 * steady["kept"][-1].past
    # A dropped partition deletes no rows, and writes one for each user.
    item = 1_000_000 * model.DAILY * costs.notifications * 30
    near(steady["rows"][-1].row_writes - steady["partitions"][-1].row_writes, item - 1_000_000)
    near(steady["rows"][-1].dead - steady["partitions"][-1].dead, item - 1_000_000)
    # All that is taken grows with the users, and a machine of twice the size carries twice as many.
    for machine in model.MACHINES.values():
        twice = {**machine, **{name: 2 * machine[name] for name in ("cores", "memory", "disk")}}
        one, two = carried(costs, machine), carried(costs, twice)
        for resource in ("memory", "disk"):
            near(two[resource], 2 * one[resource])
        # Searches take more when there are more users.
        assert one["processor"] < two["processor"] < 2 * one["processor"]
        near(one["WAL"], two["WAL"])
        # At the number that it carries, a limit is just reached.
        users = one["processor"] / model.DAILY
        last = list(months(costs, users=lambda _: users))[-1]
        near(taken(last)["processor"], limits(machine)["processor"])
        found = breaks(history, machine)
        assert all(found[name].month <= month.month for name in found for month in history
                   if taken(month)[name] > limits(machine)[name])
    near(nodes_of(1), model.COPIES)
    near(nodes_of(1e9), model.NODES)
    assert model.COPIES < nodes_of(2) < 2 * model.COPIES
    # A cluster holds several copies of each row.
    near(taken(history[-1], model.NODES)["disk"] * model.NODES, model.COPIES * size(history[-1]))
    assert all(month.live < working_set(month) < size(month) for month in history)
    assert costs.processes(0) == (2, 2)
    for daily in (1e6, 3e6, 1e7):
        assert costs.processes(daily)[0] * model.STREAMS >= costs.streams(daily)
    near(sum(getattr(history[-1], part) for part in PARTS), size(history[-1]))
    near(costs.peak(DAY_SECONDS, 0)[0], model.PEAK * costs.sums["database_us"] / 1e6)
    assert costs.peak(1, 2e6)[0] > costs.peak(1, 1e6)[0]


def near(one, other):
    assert abs(one - other) <= 1e-6 * max(abs(one), abs(other)), f"{one} is not {other}"


def missing(shown, sentences):
    """The lines of tables, and the parts of sentences, that the guide lacks."""
    with open(GUIDE) as file:
        text = file.read()
    lines, words = set(text.splitlines()), " ".join(text.split())
    return [line for table in shown.values() for line in table if line not in lines] + [
        part for part in sentences if part not in words]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=12, help="the months between two lines")
    parser.add_argument("--check", action="store_true", help="check the simulation and the guide")
    arguments = parser.parse_args()
    figures = measured()
    costs = Costs(figures)
    if arguments.check:
        check(costs)
        lines = missing(tables(costs, 12), sentences(costs))
        if lines:
            sys.exit("docs/scaling.md lacks these lines of Benchmarks/growth.py:\n" + "\n".join(lines))
        print("the simulation, and the tables and sentences of docs/scaling.md, are correct")
        return
    print_inputs(figures)
    for name, lines in tables(costs, arguments.every).items():
        print(f"\n{name}\n")
        print("\n".join(lines))
    print("\nIn sentences:\n")
    print("\n".join(sentences(costs)))


if __name__ == "__main__":
    main()
