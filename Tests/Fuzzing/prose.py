"""The rules of requests that the document has only in prose, because no schema can express them. A response that is due
to one of them is not a finding."""
import re

# Fields of requests with the codes of their errors, and the rule.
REFUSED = [
    (r"title|displayName|device|name|location\.name", "bad-format wrong-length",
     "text is trimmed and normalized before it is measured; names are a single line without invisible characters"),
    (r"note|bio|login|query|refreshToken", "bad-format wrong-length",
     "text is trimmed and normalized before it is measured; there are at most 30 combining marks in a row"),
    (r"password|currentPassword|newPassword", "bad-format wrong-length", "a password is normalized before it is measured"),
    (r"password|newPassword", "weak-password", "common passwords and the account's own names are refused"),
    (r"email", "bad-format wrong-length",
     "an address has a domain with a dot, which IDNA 2008 permits; it is measured in its canonical form"),
    (r"url", "bad-format", "the address has a domain name that IDNA 2008 permits, of at most 253 characters"),
    (r"startTime|endTime|before|expiresAt", "bad-format", "years are 1970 to 9999"),
    (r"endTime", "out-of-range", "an event ends after it starts"),
    (r"answerBy", "bad-format", "years are 1970 to 9999"),
    (r"answerBy", "out-of-range", "guests answer before the event starts"),
    (r"plusOnes", "no-plus-ones out-of-range", "each event has its own maximum"),
    (r"userId", "not-a-friend", "a co-host must be a friend or a guest"),
    (r"expiresAt", "out-of-range", "a link expires in the future"),
    (r"timeZone", "not-allowed bad-format wrong-length", "the name must be in the IANA database"),
    (r"inviteeIds|userIds", "not-a-friend", "guests must be friends"),
    (r"password|currentPassword", "required", "an account that has a way in must show evidence"),
    (r"eventId", "not-allowed", "the caller's own events cannot be reported"),
    (r"userId|receiverId|inviteeIds|userIds", "not-allowed", "the caller cannot befriend, block or invite themselves"),
    (r"token", "bad-format wrong-length invalid-token", "a mailed token is known; a webhook is at a public address"),
    (r"query|limit|cursor|when", "unknown", "`ids` allows no other parameter"),
    (r"include", "not-allowed", "digests belong to lists without filters and `ids`"),
    (r"query", "required", "a search without `ids` needs a `query`"),
    (r"cursor", "bad-format", "a cursor comes from a page of the same list"),
]


def explains_refusal(response):
    """Whether such rules are the only reason why a valid request was refused."""
    # A page names the mistakes: the link's maximum, a required address, a form that has expired.
    if response.headers.get("content-type", [""])[0].startswith("text/html"):
        return response.status_code == 422
    problem = response.json()
    match problem["type"]:
        case "invalid-fields":
            return all(any(matches(error, *rule) for rule in REFUSED) for error in problem["errors"])
        case "malformed-body":
            # JSON has no U+0000, and a form has each field once.
            return "U+0000" in problem["detail"] or problem["detail"] == "The form is malformed."
        case other:
            # A key belongs to one request.
            return other == "idempotency-key-reused"


def matches(error, field, codes, rule):
    return error["code"] in codes.split() and re.fullmatch(field, re.sub(r"\[\d+\]", "", error["field"]))


def explains_acceptance(case):
    """Whether such a rule is the reason why an invalid request was accepted."""
    # Headers are ASCII: one with other characters matches nothing.
    if any(not str(value).isascii() for value in case.headers.values()):
        return True
    operation = case.operation.definition.raw["operationId"]
    # A stamp that is not a time makes its collection stale, with a warning.
    if operation == "validateCache":
        return True
    # Fields that no form has are ignored, and a form without `do` is an answer.
    if operation in (
            "answerOnSharePage", "reportOnSharePage", "actOnVisitorPage", "unsubscribeVisitor", "optOutOfMails"):
        return True
    # Passwords, identity tokens and codes are read only with an address.
    if operation == "editMe" and isinstance(case.body, dict) and "email" not in case.body:
        return any(name in case.body for name in ("currentPassword", "idToken", "nonce", "code"))
    return False


# A DELETE that keeps what it is called on: a cancelled event or request stays readable.
KEEPING = ["DELETE /api/v1/events/{id}", "DELETE /api/v1/friend-requests/{id}"]
