import Foundation

@testable import MusterKit

extension ScriptedServer.State {
  mutating func respond(to request: ScriptedServer.Received) throws -> TransportResponse {
    if request.isValidation { return try json(verdicts(on: request.body)) }
    let parts = request.path.split(separator: "/").map(String.init)
    switch (request.method, parts.first, parts.count) {
    case ("GET", "events", 2), ("GET", "users", 2), ("GET", "notification-preferences", 1):
      return try json(object(parts)?.json ?? .null)
    case ("GET", "events", 3): return try guests(of: parts[1], isMore: request.query["cursor"] != nil)
    case ("GET", _, _): return try page(request)
    case ("POST", "events", 1): return try json(createEvent(request.body))
    case ("PATCH", _, 2), ("PUT", "notification-preferences", 1): return try edit(parts, request.ifMatch, request.body)
    case ("DELETE", "users", 3):
      let removed = try edit(parts, request.ifMatch, .object(["pictureUrl": .null]))
      return removed.status == 200 ? TransportResponse(status: 204) : removed
    case ("PUT", "users", 3):
      return try edit(parts, request.ifMatch, .object(["pictureUrl": .string("http://muster.test/\(clock)")]))
    case ("DELETE", "events", 2):
      return try json(changeEvent(parts[1]) { $0.merge(.object(["status": .string("cancelled")])) })
    case ("PUT", "events", 4): return try answer(parts[1], request.body)
    case ("POST", "events", 3): return try json(changeEvent(parts[1]) { _ in })
    case ("POST", "friend-requests", 1): return try json(sendRequest(request.body))
    case ("DELETE", "friend-requests", 2): return try json(cancelRequest(parts[1]))
    case ("POST", "notifications", 2): return try json(["unread": 0])
    default: return TransportResponse(status: 204)
    }
  }

  mutating func replace(_ collection: CacheCollection, _ items: [JSONValue]) {
    let old = Dictionary((lists[collection]?.items ?? []).map { ($0.key, $0) }, uniquingKeysWith: { $1 })
    clock += 1
    let digits = String(clock)
    let stamp = "2026-05-01T09:00:00." + String(repeating: "0", count: 6 - digits.count) + digits + "Z"
    lists[collection] = ScriptedServer.List(
      items: items.enumerated().map { place, item in
        let key = collection.key(of: item) ?? ""
        if let same = old[key], same.json == item { return same }
        return ScriptedServer.Item(key: key, json: item, digest: ScriptedServer.digest(clock, place))
      }, stamp: Stamp(rawValue: stamp))
  }

  mutating func replacePast(_ items: [JSONValue]?) {
    clock += 1
    let change = clock
    past = items.map { items in
      ScriptedServer.List(
        items: items.enumerated().map { place, item in
          ScriptedServer.Item(
            key: CacheCollection.events.key(of: item) ?? "", json: item,
            digest: ScriptedServer.digest(change, place))
        })
    }
  }

  private func json(_ value: some Encodable) throws -> TransportResponse {
    TransportResponse(
      status: 200, headers: ["content-type": "application/json"], body: try JSONEncoder.muster().encode(value))
  }

  private func verdicts(on claims: JSONValue?) -> [String: Verdict] {
    guard case .object(let claims)? = claims else { return [:] }
    var room = changedLimit
    var verdicts: [String: Verdict] = [:]
    for (name, claim) in claims.sorted(by: { $0.key < $1.key }) {
      if name == PastUpdate.list, let past, let held = claim["held"]?.string {
        verdicts[name] = parts(of: past, held, claim, room: &room)
        continue
      }
      guard let collection = CacheCollection(rawValue: name), let list = lists[collection] else {
        verdicts[name] = Verdict(invalidate: true)
        continue
      }
      let stamp = claim.string ?? claim["timestamp"]?.string
      if stamp == list.stamp.rawValue {
        verdicts[name] = Verdict(invalidate: false, timestamp: list.stamp)
      } else if let held = claim["held"]?.string {
        verdicts[name] = parts(of: list, held, claim, room: &room)
      } else {
        verdicts[name] = Verdict(invalidate: true, timestamp: list.stamp)
      }
    }
    return verdicts
  }

  /// - Parameter room: the number of new items that fit into the response.
  private func parts(of list: ScriptedServer.List, _ held: String, _ claim: JSONValue, room: inout Int) -> Verdict {
    let cursor = claim["cursor"]?.string?.split(separator: " ") ?? []
    guard cursor.first.map({ $0 == list.stamp.rawValue }) ?? true else { return Verdict(invalidate: true) }
    let places = Dictionary(zip(ScriptedServer.digests(held), 0...)) { $1 }
    let start = cursor.last.flatMap { Int($0) } ?? 0
    let limit: Int = if case .integer(let limit)? = claim["limit"] { limit } else { 500 }
    var parts: [ListPart] = []
    for item in list.items.dropFirst(start).prefix(min(limit, partsLimit)) {
      if let place = places[item.digest] {
        parts.append(ListPart(first: place, count: 1))
      } else {
        guard room > 0 || parts.isEmpty && changedLimit > 0 else { break }
        room -= 1
        parts.append(ListPart(digest: item.digest, item: item.json))
      }
    }
    let end = start + parts.count
    return Verdict(
      invalidate: true, timestamp: list.stamp, nextCursor: end < list.items.count ? "\(list.stamp) \(end)" : nil,
      parts: parts)
  }

  private func page(_ request: ScriptedServer.Received) throws -> TransportResponse {
    let collection: CacheCollection =
      switch request.path {
      case "/friend-requests": request.query["direction"] == "sent" ? .sentFriendRequests : .friendRequests
      default: CacheCollection(rawValue: String(request.path.dropFirst())) ?? .profile
      }
    guard let list = lists[collection] else { return try ScriptedServer.problem(404, "route-not-found") }
    let cursor = request.query["cursor"]?.split(separator: " ") ?? []
    let start = cursor.last.flatMap { Int($0) } ?? 0
    let limit = request.query["limit"].flatMap { Int($0) } ?? 50
    let items = list.items.dropFirst(start).prefix(limit)
    let isCurrent = cursor.first.map { $0 == list.stamp.rawValue } ?? true
    let end = start + items.count
    return try json(
      Page(
        items: items.map(\.json), nextCursor: end < list.items.count ? "\(cursor.first ?? "") \(end)" : nil,
        timestamp: isCurrent ? list.stamp : nil, digests: items.map(\.digest)))
  }

  private mutating func createEvent(_ body: JSONValue?) throws -> JSONValue {
    let draft: EventDraft = try (body ?? .null).decode()
    if let id = draft.id, let event = lists[.events]?.items.first(where: { $0.key == id.wire }) { return event.json }
    let event = Event(
      id: draft.id ?? ScriptedServer.id(5000 + clock), title: draft.title, startTime: draft.startTime,
      timeZone: draft.timeZone,
      status: .scheduled, creator: ScriptedServer.ana, hosts: [ScriptedServer.ana], version: 1,
      createdAt: ScriptedServer.noon, updatedAt: ScriptedServer.noon, myRole: .creator, myStatus: "creator",
      counts: Counts())
    let json = try JSONValue(encoding: event)
    replace(.events, (lists[.events]?.items.map(\.json) ?? []) + [json])
    return json
  }

  private mutating func sendRequest(_ body: JSONValue?) throws -> JSONValue {
    let draft: FriendRequestDraft = try (body ?? .null).decode()
    if let id = draft.id, let sent = lists[.sentFriendRequests]?.items.first(where: { $0.key == id.wire }) {
      return sent.json
    }
    let request = FriendRequest(
      id: draft.id ?? ScriptedServer.id(7000 + clock), sender: ScriptedServer.ana, receiver: ScriptedServer.ben,
      createdAt: ScriptedServer.noon)
    let json = try JSONValue(encoding: request)
    replace(.sentFriendRequests, [json] + (lists[.sentFriendRequests]?.items.map(\.json) ?? []))
    return json
  }

  private mutating func cancelRequest(_ id: String) throws -> JSONValue {
    let items = lists[.sentFriendRequests]?.items.map(\.json) ?? []
    guard let request = items.first(where: { $0["id"]?.string == id }) else {
      throw MusterError.unreachable("The scripted server has no request \(id).")
    }
    replace(.sentFriendRequests, items.filter { $0 != request })
    return request
  }

  /// An event, the profile or the preferences, with the tag that `If-Match` takes.
  private func object(_ parts: [String]) -> (collection: CacheCollection, json: JSONValue, tag: String)? {
    let collection: CacheCollection =
      switch parts.first {
      case "events": .events
      case "users": .profile
      default: .notificationPreferences
      }
    guard let list = lists[collection] else { return nil }
    guard collection == .events else {
      guard var json = list.items.first?.json else { return nil }
      json.merge(.object(["timestamp": .string(list.stamp.rawValue)]))
      return (collection, json, list.stamp.rawValue)
    }
    guard let event = list.items.first(where: { $0.key == parts[1] })?.json,
      case .integer(let version)? = event["version"]
    else { return nil }
    return (collection, event, "\(version)")
  }

  /// As the service: a change that has happened already succeeds, whatever it is based on.
  private mutating func edit(_ parts: [String], _ ifMatch: String?, _ body: JSONValue?) throws -> TransportResponse {
    guard let (collection, old, tag) = object(parts) else {
      throw MusterError.unreachable("The scripted server has no \(parts).")
    }
    var new = old
    new.merge(body?.trimmed)
    guard new != old else { return try json(old) }
    if let ifMatch, ifMatch != "\"\(tag)\"" { return try ScriptedServer.problem(412, .lostUpdate) }
    if collection == .events, case .integer(let version)? = old["version"] {
      new.merge(.object(["version": .integer(version + 1)]))
    }
    let key = collection.key(of: old)
    replace(collection, (lists[collection]?.items ?? []).map { $0.key == key ? new : $0.json })
    return try json(object(parts)?.json ?? .null)
  }

  private mutating func answer(_ id: String, _ body: JSONValue?) throws -> TransportResponse {
    let body: InvitationAnswer = try (body ?? .null).decode()
    guard let event: Event = try object(["events", id])?.json.decode() else {
      throw MusterError.unreachable("The scripted server has no event \(id).")
    }
    let isSuperseded = event.myParty.supersedes(
      body.status, bringing: body.plusOnes, ifStatus: body.ifStatus, ifPlusOnes: body.ifPlusOnes)
    if isSuperseded {
      let current = CurrentAnswer(status: event.myStatus, plusOnes: event.myPlusOnes)
      let problem = Problem(type: .superseded, title: "409", status: 409, requestId: "r", current: current)
      return TransportResponse(
        status: 409, headers: ["content-type": "application/problem+json"],
        body: try JSONEncoder.muster().encode(problem))
    }
    let status = body.status == .going && !hasRoom ? GuestStatus.waitlisted.rawValue : body.status.rawValue
    let answer: [String: JSONValue] = [
      "myStatus": .string(status), "myPlusOnes": .integer(body.plusOnes ?? event.myPlusOnes),
    ]
    answeredAt[id] = time
    return try json(changeEvent(id) { $0.merge(.object(answer)) })
  }

  /// The user, and on a page of his own, Ben.
  private func guests(of id: String, isMore: Bool) throws -> TransportResponse {
    if isMore { return try json(Page(items: [ScriptedServer.guest])) }
    guard let event: Event = try object(["events", id])?.json.decode() else {
      return try ScriptedServer.problem(404, .eventNotFound)
    }
    let ana = ScriptedServer.ana
    let guest = Guest(
      id: Guest.ID(ana.id), user: ana, name: ana.displayName, status: event.myStatus, plusOnes: event.myPlusOnes,
      answeredAt: answeredAt[id])
    return try json(Page(items: [guest], nextCursor: "ben"))
  }

  private mutating func changeEvent(_ id: String, _ change: (inout JSONValue) -> Void) throws -> JSONValue {
    var items = lists[.events]?.items.map(\.json) ?? []
    guard let index = items.firstIndex(where: { $0["id"]?.string == id }) else {
      throw MusterError.unreachable("The scripted server has no event \(id).")
    }
    change(&items[index])
    replace(.events, items)
    return items[index]
  }
}

extension JSONValue {
  /// An object whose texts have no spaces at their ends.
  fileprivate var trimmed: JSONValue {
    guard case .object(let members) = self else { return self }
    return .object(
      members.mapValues { value in
        value.string.map { .string($0.trimmingCharacters(in: .whitespaces)) } ?? value
      })
  }

  /// Takes over the members of another object.
  fileprivate mutating func merge(_ other: JSONValue?) {
    guard case .object(var members) = self, case .object(let new)? = other else { return }
    members.merge(new) { $1 }
    self = .object(members)
  }
}
