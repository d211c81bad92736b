"""The data of the benchmark: one user with 200 friends, 100 events, 52 past events and 50 items in the inbox."""
import datetime

FRIENDS = 200
HOSTS = 20
OWN_EVENTS = 40
EVENTS_OF_A_HOST = 3
GUESTS = 10
ANSWERS = 4
INBOX = 50
PAST = 52

# Every second user has a picture. The first users host events, so all others are their friends.
FRIENDSHIPS = f"""
    UPDATE users SET picture_url = '/pictures/' || encode(sha256(id::text::bytea), 'hex')
    WHERE right(username, 1) IN ('0', '2', '4', '6', '8');
    INSERT INTO friendships (user_a, user_b, since)
    SELECT host.id, other.id, now() - interval '1 day' * row_number() OVER (ORDER BY host.id, other.id)
    FROM (SELECT id FROM users ORDER BY id LIMIT {HOSTS + 1}) AS host
    JOIN users AS other ON host.id < other.id;
    """
TRIM = f"""
    DELETE FROM notifications
    WHERE recipient_id = '%s' AND filed_at < (
      SELECT min(filed_at) FROM (
        SELECT filed_at FROM notifications WHERE recipient_id = '%s' ORDER BY filed_at DESC LIMIT {INBOX}
      ) AS latest
    );
    """
# One a week, of the friends who host, with ten guests each.
PAST_EVENTS = f"""
    CREATE TEMPORARY TABLE past AS
    SELECT gen_random_uuid() AS id, place, (SELECT id FROM users WHERE username = 'user' || (place %% {HOSTS} + 1)) AS host
    FROM generate_series(1, {PAST}) AS place;
    INSERT INTO events (
      id, creator_id, title, note, start_time, time_zone, location_name, latitude, longitude, live_until, archived_at,
      start_offset, zone_rules, going_count, invited_count
    )
    SELECT id, host, 'Evening in the park ' || place, '%s', date_trunc('hour', now()) - place * interval '7 days',
      'Europe/Lisbon', 'Jardim da Estrela', 38.7146, -9.1596, now(), now(), 3600, '2025b', {ANSWERS}, {GUESTS - ANSWERS}
    FROM past;
    INSERT INTO invitations (event_id, user_id, status)
    SELECT past.id, guest.id, CASE WHEN guest.number < {ANSWERS} THEN 'going' ELSE 'invited' END
    FROM past, LATERAL (
      SELECT users.id, row_number() OVER () - 1 AS number FROM users
      WHERE username IN (
        SELECT 'user' || CASE WHEN n = 0 THEN 0 ELSE {HOSTS} + (place + n) %% ({FRIENDS} - {HOSTS}) + 1 END
        FROM generate_series(0, {GUESTS - 1}) AS n
      )
    ) AS guest;
    """
# Moves an event to the past, as the worker does, or back.
ARCHIVE = """
    UPDATE events SET archived_at = %s WHERE id = '%s';
    UPDATE user_stamps SET events = clock_timestamp(), invitations = clock_timestamp() WHERE user_id = '%s';
    """
NOTE = "Bring something to eat, something to sit on and, if you have one, a game. We meet at the gate at half past."


class World:
    """Adds the data through a service, and changes one event at a time.

    `me` is the user whose phone is measured. `changing` has the events to which `me` is invited, each with its host."""

    def __init__(self, lab, service):
        self.service = service
        self.psql = psql = lab.psql()
        self.me = service.register("user0")
        friends = [service.register(f"user{number}") for number in range(1, FRIENDS + 1)]
        for number, friend in enumerate(friends, 1):
            service.ask(friend, "PATCH", "users/me", {"displayName": f"Friend Number {number:03}"})
        psql.run(FRIENDSHIPS)
        for number in range(OWN_EVENTS):
            guests = [friends[(number * GUESTS + place) % FRIENDS] for place in range(GUESTS)]
            self.add_event(number, self.me, guests)
        self.changing = []
        for number, host in enumerate(friends[:HOSTS] * EVENTS_OF_A_HOST, OWN_EVENTS):
            others = [friends[HOSTS + (number * GUESTS + place) % (FRIENDS - HOSTS)] for place in range(1, GUESTS)]
            self.changing.append((self.add_event(number, host, [self.me] + others), host))
        code, output = lab.run("worker", "--once", timeout=300)
        if code != 0:
            raise RuntimeError(f"muster worker --once: {output[-300:]}")
        psql.run(TRIM % (self.me.id, self.me.id))
        psql.run(PAST_EVENTS % NOTE)
        psql.run("VACUUM ANALYZE")
        self.turn = 0
        # The screen that the phone keeps, of an event that never changes, and the event that ends.
        self.opened, self.ending = self.changing.pop()[0], self.changing.pop()[0]

    def add_event(self, number, host, guests):
        now = datetime.datetime.now(datetime.timezone.utc)
        start = now + datetime.timedelta(days=2 + number // 2, hours=number % 12)
        event = self.service.ask(host, "POST", "events", {
            "title": f"Evening in the park {number:03}", "note": NOTE, "timeZone": "Europe/Lisbon",
            "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "location": {"name": "Jardim da Estrela", "latitude": 38.7146, "longitude": -9.1596},
            "inviteeIds": [guest.id for guest in guests],
        })
        for guest in guests[:ANSWERS]:
            self.service.ask(guest, "PUT", f"events/{event['id']}/invitations/me", {"status": "going"})
        return event["id"]

    def end_an_event(self, ends=True):
        """Moves an event to the past, as a day after its end, or back."""
        self.psql.run(ARCHIVE % ("now()" if ends else "NULL", self.ending, self.me.id))

    def change_an_event(self):
        """A friend gives one event a new title. No worker runs, so the inbox stays the same."""
        event, host = self.changing[self.turn % len(self.changing)]
        self.turn += 1
        self.service.ask(host, "PATCH", f"events/{event}", {"title": f"Another evening {self.turn:03}"})
