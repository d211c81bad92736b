import Foundation

extension PreviewWorld {
  mutating func user(_ request: PreviewRequest) throws -> TransportResponse {
    let words = request.words
    switch (request.method, words.count > 1 ? words[1] : "", words.count > 2 ? words[2] : "") {
    case ("GET", "", _): return try list(search(request), request)
    case ("GET", "recommended", _): return try list(lists.surroundings?.recommended ?? [], request)
    case ("GET", "me", ""): break
    case ("GET", "me", "export"): return try .json(["profile": me])
    case ("PATCH", "me", ""):
      let edit: ProfileEdit = try request.read()
      try perform(.editProfile(edit))
      if let email = edit.email { lists.profile?.pendingEmail = email }
      // The response has the new stamp.
      settle()
    case ("PUT", "me", "picture"):
      // Image views can load it without a service.
      lists.profile?.pictureUrl = URL(string: "data:image/png;base64," + request.body.base64EncodedString())
      settle()
    case ("DELETE", "me", "picture"):
      lists.profile?.pictureUrl = nil
      return .noContent
    case ("GET", "me", "calendar"): return try shownCalendarLink()
    case ("POST", "me", "calendar"):
      let id: Identifier<CalendarLink> = newID()
      let file = "calendars/\(id).ics"
      let url = export.baseURL.appendingPathComponent(file)
      let webcal = URL(string: "webcal" + url.absoluteString.drop { $0 != ":" }) ?? url
      calendarLink = CalendarLink(url: url, webcalUrl: webcal, createdAt: now)
      return try .json(calendarLink, status: 201)
    case ("DELETE", "me", "calendar"):
      calendarLink = nil
      return .noContent
    case ("DELETE", "me", ""): return .noContent
    case ("GET", _, ""):
      let id: User.ID = try request.id(1, else: .userNotFound)
      guard let profile = lists.surroundings?.people[id] else { throw Problem.missing(.userNotFound) }
      return try .json(profile)
    default: throw Problem.missing(.routeNotFound)
    }
    return try .json(me)
  }

  private func shownCalendarLink() throws -> TransportResponse {
    if let calendarLink { return try .json(calendarLink) }
    let nothing: JSONValue = .object(["url": .null, "webcalUrl": .null, "createdAt": .null])
    return try .json(nothing)
  }

  mutating func people(_ request: PreviewRequest) throws -> TransportResponse {
    let words = request.words
    switch (request.method, words[0], words.count > 2 ? words[2] : "") {
    case ("GET", "friends", _): return try list(.friends, request)
    case ("GET", "blocks", _): return try list(.blocks, request)
    case ("GET", "friend-requests", _) where words.count == 1:
      switch request.query["direction"] {
      case RequestDirection.sent.rawValue: return try list(.sentFriendRequests, request)
      // Everyone in the demo has verified an address.
      case RequestDirection.filtered.rawValue: return try list([FriendRequest](), request)
      default: return try list(.friendRequests, request)
      }
    case ("GET", "friend-requests", _): return try shownRequest(request)
    case ("POST", "friend-requests", "") where words.count == 1: return try sendRequest(request)
    case ("POST", "friend-requests", "accept"): try perform(.acceptRequest(request.id(1, else: .friendRequestNotFound)))
    case ("POST", "friend-requests", "decline"):
      try perform(.declineRequest(request.id(1, else: .friendRequestNotFound)))
    case ("DELETE", "friend-requests", _): try perform(.cancelRequest(request.id(1, else: .friendRequestNotFound)))
    case ("DELETE", "friends", _):
      try perform(.endFriendship(with: request.id(1, else: .userNotFound)))
      return .noContent
    case ("PUT", "blocks", _):
      let id: User.ID = try request.id(1, else: .userNotFound)
      let profile = id == me.id ? me.person : lists.surroundings?.people[id]?.person
      // An unknown id gets the same response as a hidden user's.
      if let profile { try perform(.block(profile)) }
      return .noContent
    case ("DELETE", "blocks", _):
      try perform(.unblock(request.id(1, else: .userNotFound)))
      return .noContent
    default: throw Problem.missing(.routeNotFound)
    }
    return try shownRequest(request)
  }

  private func shownRequest(_ request: PreviewRequest) throws -> TransportResponse {
    let id: FriendRequest.ID = try request.id(1, else: .friendRequestNotFound)
    let open = (lists.friendRequests ?? []) + (lists.sentFriendRequests ?? [])
    guard let found = (open + (lists.surroundings?.closed ?? [])).first(where: { $0.id == id }) else {
      throw Problem.missing(.friendRequestNotFound)
    }
    return try .json(found)
  }

  private mutating func sendRequest(_ request: PreviewRequest) throws -> TransportResponse {
    let body: [String: User.ID] = try request.read()
    let receiver = body["receiverId"] ?? User.ID()
    let theirs = lists.friendRequests?.first { $0.sender.id == receiver }
    let mine = lists.sentFriendRequests?.first { $0.receiver.id == receiver }
    let person = receiver == me.id ? me.person : lists.surroundings?.people[receiver]?.person
    let id: FriendRequest.ID = newID()
    try perform(.sendRequest(to: person ?? Person(id: receiver, username: "", displayName: ""), temporaryID: id))
    if let theirs {
      // Both have asked, and both are notified.
      let banner = InboxItem.friends(theirs.sender, id: InboxItem.ID(id.rawValue), now)
      lists.notifications?.insert(banner, at: 0)
      return try .json(lists.surroundings?.closed.last)
    }
    if let mine { return try .json(mine) }
    return try .json(lists.sentFriendRequests?.first, status: 201)
  }

  /// Friends come first, as in the service. The match is simpler: a part of a name.
  private func search(_ request: PreviewRequest) throws -> [Person] {
    let people = lists.surroundings?.people ?? [:]
    if let ids: [User.ID] = request.ids() { return ids.compactMap { people[$0]?.person } }
    guard let query = request.query["query"] else { throw Problem.invalid("query", .required, "is required") }
    let found = people.values.filter { profile in
      [profile.username, profile.displayName].contains {
        $0.range(of: query, options: [.caseInsensitive, .diacriticInsensitive]) != nil
      }
    }
    let sorted = found.sorted {
      ($0.friendship == .friends ? 0 : 1, $0.username) < ($1.friendship == .friends ? 0 : 1, $1.username)
    }
    return sorted.map(\.person)
  }
}

extension PublicProfile {
  fileprivate var person: Person {
    Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl)
  }
}

extension InboxItem {
  fileprivate static func friends(_ person: Person, id: InboxItem.ID, _ time: Date) -> InboxItem {
    InboxItem(
      id: id, createdAt: time, message: "You and \(person.displayName) are now friends.", locKey: "friend-accepted",
      locArgs: [person.displayName], type: .friendAccepted, actor: person.displayName, userId: person.id)
  }
}
