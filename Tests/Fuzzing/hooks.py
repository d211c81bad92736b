"""Makes requests meaningful: they come from several users, and name things that exist."""
import datetime

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import EnsureResourceAvailability, RejectedPositiveData, UseAfterFree

import prose
from people import unique

# What each path parameter names: a method of Person.
PATHS = {
    "endSession": {"id": "session"},
    "getUser": {"id": "user"},
    "getPicture": {"key": "picture"},
    "getCalendarFeed": {"file": "calendar"},
    "endFriendship": {"userId": "friend"},
    "getFriendRequest": {"id": "request"},
    "cancelFriendRequest": {"id": "sent_request"},
    "acceptFriendRequest": {"id": "received_request"},
    "declineFriendRequest": {"id": "received_request"},
    "block": {"userId": "user"},
    "unblock": {"userId": "blocked"},
    "getEvent": {"id": "event"},
    "getEventCalendar": {"id": "event"},
    "listGuests": {"id": "event"},
    "editEvent": {"id": "own_event"},
    "cancelEvent": {"id": "own_event"},
    "inviteToEvent": {"id": "own_event"},
    "addHost": {"id": "own_event", "userId": "friend"},
    "removeHost": {"id": "own_event", "userId": "friend"},
    "remindGuests": {"id": "own_event"},
    "duplicateEvent": {"id": "own_event"},
    "answerInvitation": {"id": "invitation"},
    "listLinks": {"id": "own_event"},
    "createLink": {"id": "own_event"},
    "joinByLink": {"token": "link_token"},
    "getSharePage": {"token": "link_token"},
    "answerOnSharePage": {"token": "link_token"},
    "getReportPage": {"token": "link_token"},
    "reportOnSharePage": {"token": "link_token"},
    "getVisitorPage": {"token": "visitor_token"},
    "actOnVisitorPage": {"token": "visitor_token"},
    "getUnsubscribePage": {"token": "visitor_token"},
    "unsubscribeVisitor": {"token": "visitor_token"},
    "getVisitorCalendar": {"file": "visitor_calendar"},
    "removeDevice": {"id": "device"},
    "validateCache": {"userId": "me"},
}
# The methods of Person that return all ids of a path.
PAIRS = {
    "withdrawInvitation": ("event_with_guest", ("id", "userId")),
    "setAnswer": ("event_with_guest", ("id", "userId")),
    "approveGuest": ("event_with_visitor", ("id", "userId")),
    "getLink": ("event_with_link", ("id", "linkId")),
    "editLink": ("event_with_link", ("id", "linkId")),
    "revokeLink": ("event_with_link", ("id", "linkId")),
}
# A Server-Sent Event, as Schemathesis parses it.
EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"}, "event": {"enum": ["notification", "changed"]},
        "data": {"type": "string"},
    },
}


def install(people):
    """Registers the hooks."""
    owners = {}

    @schemathesis.auth(refresh_interval=None)
    class Tokens:
        def get(self, case, context):
            return people.anyone().authorization()

        def set(self, case, authorization, context):
            case.headers["Authorization"] = authorization

    @schemathesis.hook
    def before_load_schema(context, document):
        for item in document["paths"].values():
            for method, operation in item.items():
                if method != "parameters":
                    name_unserved(operation["responses"])
        # OpenAPI 3.1 describes a stream as a whole; Schemathesis checks each event.
        stream = document["paths"]["/api/v1/notifications/stream"]["get"]["responses"]["200"]
        stream["content"]["text/event-stream"]["schema"] = EVENT

    @schemathesis.hook
    def before_call(context, case, kwargs):
        if case.meta is None or case.method != case.operation.method.upper():
            return
        person = people.holders.get(case.headers.get("Authorization")) or people.anyone()
        # What a link names stays as it is.
        is_linked = case.meta.phase.name == "stateful"
        if is_valid(case, "path"):
            person = fill_path(people, person, case, owners if is_linked else {})
        if is_valid(case, "query") and is_valid(case, "header"):
            fill_query(people, person, case)
        if is_valid(case, "body") and isinstance(case.body, dict):
            person = fill_body(people, person, case)
        if name_of(case) == "registerDevice":
            silence(case.body)
        if is_valid(case, "header") and people.is_likely():
            fill_headers(case, is_linked)
        if people.holders.get(case.headers.get("Authorization")):
            case.headers["Authorization"] = person.authorization()

    @schemathesis.hook
    def after_call(context, case, response):
        person = people.holders.get(case.headers.get("Authorization"))
        if person is None:
            return
        if response.status_code == 401:
            person.token = None
        if response.status_code == 204 and name_of(case) in ("changePassword", "confirmPasswordReset"):
            person.password = case.body["newPassword"]
        if response.status_code in (200, 201):
            remember(owners, person, response)

    @schemathesis.hook
    def filter_failure(context, failure, case, response):
        if isinstance(failure, RejectedPositiveData):
            return not prose.explains_refusal(response)
        if isinstance(failure, AcceptedNegativeData):
            return not prose.explains_acceptance(case)
        if isinstance(failure, UseAfterFree):
            return failure.operation not in prose.KEEPING
        if isinstance(failure, EnsureResourceAvailability):
            # A block by the other user removes a request, and so does the end of their account.
            return "/friend-requests/" not in case.operation.path
        return True


def name_unserved(responses):
    """`default` would allow every status. Replaces it by those that it stands for."""
    # Operations may share their responses.
    unserved = responses.pop("default", None)
    if unserved:
        for status in ("400", "408", "431"):
            responses.setdefault(status, unserved)


def name_of(case):
    return case.operation.definition.raw["operationId"]


def is_valid(case, location):
    return not any(place == location and part.mode.is_negative for place, part in case.meta.components.items())


def remember(owners, person, response):
    """Records who can use the ids in a response: later requests with them come from this person."""
    try:
        body = response.json()
    except ValueError:
        return
    if isinstance(body, dict):
        for item in [body, *(body.get("items") or [])]:
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                owners[item["id"]] = person, item


def fill_path(people, person, case, owners):
    """Names things that exist, and returns who can see them."""
    names = PATHS.get(name_of(case))
    if name_of(case) in PAIRS:
        kind, parameters = PAIRS[name_of(case)]
        found = getattr(person, kind)()
        if case.path_parameters["id"] not in owners:
            case.path_parameters.update(zip(parameters, found))
        return person
    for name, kind in (names or {}).items():
        owner, thing = owners.get(case.path_parameters.get(name), (None, None))
        if owner:
            if kind == "received_request":
                owner = people.known(thing.get("receiver", {}).get("id")) or owner
            return owner
        if people.is_likely():
            found = getattr(person, kind)()
            if found:
                case.path_parameters[name] = found
    return person


def silence(body):
    """The service posts notifications to webhooks: moves them to a host that does not exist."""
    if isinstance(body, dict) and body.get("platform") == "webhook" and isinstance(body.get("token"), str):
        if body["token"].startswith("http"):
            body["token"] = f"https://fuzzing.invalid/{unique()}"


def fill_headers(case, is_linked):
    key = case.headers.get("Idempotency-Key")
    if key:
        # The generator likes short texts, and a key that is used again makes a request invalid.
        case.headers["Idempotency-Key"] = (unique() + key)[:255]
    if "If-Match" in case.headers and not is_linked:
        case.headers["If-Match"] = "*"


def fill_query(people, person, case):
    query = case.query
    if "cursor" in query:
        path = case.formatted_path.removeprefix("/api/v1/")
        others = "&".join(f"{name}={query[name]}" for name in ("direction", "when", "status", "unread") if name in query)
        cursor = person.cursor(f"{path}?{others}" if others else path)
        if cursor:
            query["cursor"] = cursor
        else:
            del query["cursor"]
    if "ids" in query and people.is_likely():
        for name in list(query):
            if name != "ids":
                del query[name]
    elif name_of(case) == "searchUsers":
        query.setdefault("query", people.pick(["an", "ben", "okafro", "Илић"]))
    elif name_of(case) == "streamNotifications":
        # From the beginning of the inbox: the first event comes immediately.
        case.headers.pop("Last-Event-ID", None)
        query["lastEventId"] = "0"


def fill_body(people, person, case):
    """Completes a valid body with passwords, tokens and ids, and returns who sends it."""
    fill = BODIES.get(name_of(case))
    if fill and people.is_likely():
        return fill(people, person, case.body) or person
    if name_of(case) == "reportOnSharePage" and people.is_likely():
        case.body["form"] = people.form(case.path_parameters["token"]) or case.body["form"]
        case.body.pop("website", None)
    if name_of(case) == "answerOnSharePage" and people.is_likely():
        case.body["form"] = people.form(case.path_parameters["token"]) or case.body["form"]
        case.body.pop("website", None)
        if case.body.get("email"):
            case.body["email"] = f"{unique()}@fuzzing.example"
    return person


def log_in(people, person, body):
    body.update(login=person.email, password=person.password)


def register(people, person, body):
    body.update(username=f"fuzz-{unique()}", email=f"{unique()}@fuzzing.example")


def refresh(people, person, body):
    # A link has given a token.
    if not body["refreshToken"].startswith("mr1."):
        body["refreshToken"] = person.log_in()["refreshToken"]


def change_password(people, person, body):
    body["currentPassword"] = person.password


def edit_me(people, person, body):
    if "email" in body:
        body.update(email=f"{unique()}@fuzzing.example", currentPassword=person.password)
    # Old names are reserved, so an account can only have a few.
    body.pop("username", None)


def delete_me(people, person, body):
    stranger = people.stranger()
    body["password"] = stranger.password
    return stranger


def confirm_reset(people, person, body):
    person.send("POST", "auth/password-reset", {"email": person.email})
    body["token"] = people.mailed_token("reset-password", person.email) or body["token"]


def verify_email(people, person, body):
    stranger = people.stranger()
    body["token"] = people.mailed_token("verify-email", stranger.email) or body["token"]


def befriend(people, person, body):
    # A link may have given the id of a user.
    other = people.known(body["receiverId"])
    if other in (None, person):
        other = person.other()
    person.part(other)
    body["receiverId"] = other.id


def plan(people, person, body):
    if "timeZone" in body:
        body["timeZone"] = people.pick(["Europe/Lisbon", "Asia/Kathmandu", "UTC", "America/St_Johns"])
    start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=people.random.randint(1, 99))
    if body.get("endTime"):
        body["startTime"] = start.isoformat()
        body["endTime"] = (start + datetime.timedelta(hours=2)).isoformat()
    elif "startTime" in body:
        body["endTime"] = None
    if body.get("inviteeIds"):
        body["inviteeIds"] = some(people, person.friends())


def invite(people, person, body):
    if body["userIds"]:
        body["userIds"] = some(people, person.friends())


def mark_read(people, person, body):
    if body.get("ids"):
        body["ids"] = some(people, person.notifications())


def some(people, ids):
    return people.random.sample(ids, min(len(ids), 3))


BODIES = {
    "register": register,
    "login": log_in,
    "refresh": refresh,
    "changePassword": change_password,
    "unlinkApple": change_password,
    "unlinkGoogle": change_password,
    "editMe": edit_me,
    "deleteMe": delete_me,
    "confirmPasswordReset": confirm_reset,
    "verifyEmail": verify_email,
    "sendFriendRequest": befriend,
    "createEvent": plan,
    "editEvent": plan,
    "inviteToEvent": invite,
    "markNotificationsRead": mark_read,
}
