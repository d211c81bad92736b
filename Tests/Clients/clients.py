"""Checks the clients that Scripts/check-clients has generated: nothing is left out, and calls work."""
import datetime
import importlib
import io
import pathlib
import pkgutil
import re
import sys
import uuid

import yaml

folder, document, pictures, url = pathlib.Path(sys.argv[1]), *sys.argv[2:4], sys.argv[4].rstrip("/")
sys.path[:0] = [str(folder), str(folder / "client")]
METHODS = {"get", "put", "post", "patch", "delete"}

import models as pydantic_models  # noqa: E402
import muster_client as generated  # noqa: E402

# Nothing is left out.

with open(document, encoding="utf-8") as file:
    text = yaml.safe_load(file)
operations = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", operation["operationId"]).lower()
    for item in text["paths"].values() for method, operation in item.items() if method in METHODS
}
warnings = (folder / "warnings").read_text()
for fault in ("will not be generated", "Unable to", "Failure to process"):
    if fault in warnings:
        sys.exit(f"openapi-python-client leaves something out:\n{warnings}")
names = [module.name for module in pkgutil.walk_packages(generated.__path__, "muster_client.")]
for name in names:
    importlib.import_module(name)
made = {name.split(".")[3] for name in names if re.fullmatch(r"muster_client\.api\.\w+\.\w+", name)}
if made != operations:
    sys.exit(f"operations without a function: {operations - made}; functions without one: {made - operations}")
lacking = [name for name in text["components"]["schemas"] if not hasattr(pydantic_models, name)]
if lacking:
    sys.exit(f"datamodel-codegen has left out {lacking}")

# The calls work.

from muster_client import AuthenticatedClient, Client, models, types  # noqa: E402
from muster_client.api.cache import validate_cache  # noqa: E402
from muster_client.api.events import create_event, list_events  # noqa: E402
from muster_client.api.notifications import list_notifications, mark_notifications_read  # noqa: E402
from muster_client.api.sessions import login  # noqa: E402
from muster_client.api.users import get_me, put_picture  # noqa: E402


def succeed(response, kind):
    """The parsed body of a success."""
    if response.status_code // 100 != 2 or not isinstance(response.parsed, kind):
        sys.exit(f"{response.status_code}, no {kind.__name__}: {response.content[:500]}")
    return response.parsed


tokens = succeed(
    login.sync_detailed(
        client=Client(base_url=url), body=models.Login(login="ana", password="plans-with-friends", device="a script")),
    models.Tokens)
client = AuthenticatedClient(base_url=url, token=tokens.access_token)

me = succeed(get_me.sync_detailed(client=client), models.User)
assert me.id == tokens.user.id and me.username == "ana"

start = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(days=3)
draft = models.EventDraft(title="Generated", start_time=start, time_zone="Europe/Lisbon", location=None)
event = succeed(create_event.sync_detailed(client=client, body=draft, idempotency_key=str(uuid.uuid4())), models.Event)
assert event.start_time == start and event.my_role == "creator" and event.counts.invited == 0
listed = list_events.sync_detailed(client=client)
assert event.id in [item.id for item in succeed(listed, models.EventList).items]

claims = models.FlatClaims.from_dict({"events": None, "friends": "2026-05-01T09:30:00.123456Z"})
verdicts = succeed(
    validate_cache.sync_detailed(me.id, client=client, body=claims, include=models.CacheInclude.CHANGES),
    models.Verdicts)
assert set(verdicts.additional_keys) == {"events", "friends"} and verdicts["events"].invalidate is True
assert str(event.id) in verdicts["events"].keys and str(event.id) in verdicts["events"].changed.additional_keys

picture = next(file for file in sorted(pathlib.Path(pictures).iterdir()) if file.suffix == ".jpg")
shown = succeed(
    put_picture.sync_detailed(client=client, body=types.File(payload=io.BytesIO(picture.read_bytes()))), models.User)
assert shown.picture_url.startswith("http")

inbox = list_notifications.sync_detailed(client=client)
page = succeed(inbox, models.NotificationList)
assert page.items and page.unread > 0
first = succeed(
    mark_notifications_read.sync_detailed(client=client, body=models.ReadSome(ids=[page.items[0].id])), models.Unread)
assert first.unread >= page.unread - 1
upto = succeed(
    mark_notifications_read.sync_detailed(client=client, body=models.ReadBefore(before=page.timestamp)), models.Unread)
everything = succeed(
    mark_notifications_read.sync_detailed(client=client, body=models.ReadAll(all_=True)), models.Unread)
assert upto.unread == everything.unread == 0

# The other generator's models take the same responses.
pydantic_models.EventList.model_validate_json(listed.content)
pydantic_models.NotificationList.model_validate_json(inbox.content)

# A later release may say more words.
item = page.items[0].to_dict() | {"type": "event-praised"}
assert models.Notification.from_dict(item).type_ == "event-praised"
pydantic_models.Notification.model_validate(item)

print(f"{len(operations)} operations and {len(names)} modules of openapi-python-client, "
      f"{len(text['components']['schemas'])} schemas of datamodel-codegen: all calls work")
