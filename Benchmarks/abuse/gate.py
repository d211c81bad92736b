"""Mails that strangers can cause, with all limits on: who is mailed how often, and who is stopped by it."""
import http.client
import re
import urllib.parse

from .lab import Outcome

LIMITS = {"MUSTER_RATE_LIMITS": "on", "MUSTER_THROTTLING": "on", "MUSTER_TRUSTED_PROXIES": "127.0.0.1"}


class Browser:
    """Opens pages and sends forms from a client's address, behind a proxy of this machine."""

    def __init__(self, service, address):
        self.port, self.address = service.port, address

    def call(self, method, path, fields=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"X-Forwarded-For": self.address}
        if fields is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, urllib.parse.urlencode(fields) if fields is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), response.headers
        finally:
            connection.close()

    def answer(self, link, email, name="Guest"):
        """Sends the form of a link. Returns the status, and the path of the visitor's page."""
        status, page, _ = self.call("GET", link)
        form = re.search(r'name="form" value="([^"]+)"', page)
        if not form:
            return status, None
        fields = {"form": form[1], "name": name, "answer": "going", "email": email}
        status, _, headers = self.call("POST", link, fields)
        return status, (headers.get("Location") or "")[2:] or None


def prove(lab, *users):
    ids = ", ".join(f"'{user.id}'" for user in users)
    lab.psql().run(f"UPDATE users SET email_verified_at = now() WHERE id IN ({ids})")


def make_link(service, user, **event):
    body = {"title": "Party", "startTime": "2040-05-01T18:00:00Z", "timeZone": "UTC"} | event
    made = service.ask(user, "POST", "events", body)["id"]
    url = service.ask(user, "POST", f"events/{made}/links", {"kind": "answer"})["url"]
    return "/e/" + url.rsplit("/", 1)[1]


def mails(lab, kind="mail-visitor-confirm"):
    rows = lab.psql().run(f"SELECT count(*), count(*) FILTER (WHERE due_at > now()) FROM mails WHERE type = '{kind}'")
    return tuple(int(number) for number in rows[0].split("|"))


def form_flood(lab):
    """200 anonymous forms with one mailbox in many spellings, from 20 networks, through the links of one host."""
    service = lab.service(**LIMITS)
    ana = service.register("ana")
    prove(lab, ana)
    links = [make_link(service, ana) for _ in range(4)]
    statuses = []
    for number in range(200):
        browser = Browser(service, f"198.51.{number % 20}.{number // 20 + 1}")
        statuses.append(browser.answer(links[number % 4], f"vic.tim+{number}@gmail.com")[0])
    sent, later = mails(lab)
    late = int(lab.psql().run("SELECT count(*) FROM visitors WHERE lapses_at > now() + interval '24 hours'")[0])
    # The links work for others.
    Browser(service, "203.0.113.9").answer(links[0], "zoe@guests.example")
    after = mails(lab)[0]
    return Outcome(
        f"{statuses.count(303)} of 200 answers accepted, {sent} mails to the mailbox, {later} booked ahead, {late}"
        f" answers held for more than 24 hours; then {after - sent} mail to another guest",
        "all accepted, 5 mails, none ahead, none longer; 1",
        statuses.count(303) == 200 and sent <= 5 and later == 0 and late == 0 and after - sent == 1)


def throwaway_accounts(lab):
    """Five new accounts of one IPv6 /56 each send 40 forms to one mailbox, and 40 to one domain."""
    service = lab.service(**LIMITS)
    users = [service.register(f"mal{number}", verified=False) for number in range(5)]
    links = [make_link(service, user) for user in users]

    def flood(domain):
        for number in range(40):
            for place, link in enumerate(links):
                browser = Browser(service, f"2001:db8:0:{place:x}{number:02x}::1")
                browser.answer(link, f"victim{domain and number}+{place}x{number}@victims.example")
        return mails(lab)[0]

    new = flood(False)
    prove(lab, *users)
    one = flood(False) - new
    many = flood(True) - new - one
    return Outcome(
        f"{new} mails while the accounts are new and have no verified address; then {one} to one mailbox and {many} to"
        " mailboxes of one domain", "0; 3; 200",
        new == 0 and one <= 3 and many <= 200)


def party(lab):
    """60 guests scan a code in one Wi-Fi, while a stranger floods another host's link from elsewhere."""
    service = lab.service(**LIMITS)
    ana, mal = service.register("ana"), service.register("mal")
    prove(lab, ana, mal)
    wifi, flooded = make_link(service, ana), make_link(service, mal)
    stranger = Browser(service, "203.0.113.77")
    for number in range(60):
        stranger.answer(flooded, f"bogus{number}@bogus.example")
    before = mails(lab)[0]
    guests = Browser(service, "192.0.2.10")
    statuses = [guests.answer(wifi, f"guest{number}@company.example")[0] for number in range(60)]
    got = mails(lab)[0] - before
    return Outcome(
        f"{statuses.count(303)} of 60 guests got in, {got} mails", "60, 60", statuses.count(303) == 60 and got == 60)


def strangers_and_owner(lab):
    """Strangers type a proven address into 100 forms, and request 60 codes and resets for it, from 20 networks."""
    service = lab.service(**LIMITS)
    ana, mal = service.register("ana"), service.register("mal")
    prove(lab, ana, mal)
    link = make_link(service, mal)
    address = {"email": "ana@example.com"}
    for number in range(100):
        origin = f"198.51.{number % 20}.{number // 20 + 1}"
        Browser(service, origin).answer(link, "ana@example.com")
        if number < 60:
            for path in ("auth/code", "auth/password-reset"):
                service.call("POST", path, address, headers={"X-Forwarded-For": origin})
    forms, codes = mails(lab)[0], mails(lab, "mail-sign-in-code")[0]
    service.call("POST", "auth/code", address, ana.token, {"X-Forwarded-For": "192.0.2.10"})
    own = mails(lab, "mail-sign-in-code")[0] - codes
    return Outcome(
        f"{forms} mails by forms, {codes} codes; then {own} code to the owner's session", "5, 10; 1",
        forms <= 5 and codes <= 10 and own == 1)


def held_places(lab):
    """Answers with bogus addresses take all 5 places of an event."""
    service = lab.service(**LIMITS)
    ana = service.register("ana")
    prove(lab, ana)
    link = make_link(service, ana, capacity=5)
    stranger = Browser(service, "203.0.113.77")
    pages = [stranger.answer(link, "bogus@bogus.example")[1] for _ in range(5)]
    shown = sum("is deleted on" in stranger.call("GET", page)[1] for page in pages)
    psql = lab.psql()
    longest = float(psql.run("SELECT max(extract(epoch FROM lapses_at - now())) / 3600 FROM visitors")[0])
    psql.run("UPDATE visitors SET lapses_at = lapses_at - interval '24 hours'")
    lab.run("worker", "--once")
    left = int(psql.run("SELECT count(*) FROM visitors")[0])
    named = int(psql.run("SELECT count(*) FROM notifications WHERE payload->>'actor' = 'Guest'")[0])
    return Outcome(
        f"places held for {longest:.1f} h, shown on {shown} of 5 pages; after that {left} visitors and {named}"
        " notifications that name them", "24 h, 5; 0 and 0",
        longest <= 24 and shown == 5 and left == 0 and named == 0)


CASES = [form_flood, throwaway_accounts, party, strangers_and_owner, held_places]
