import Foundation

extension PreviewWorld {
  mutating func editMe(_ request: PreviewRequest) throws -> TransportResponse {
    let edit: ProfileEdit = try request.read()
    try perform(.editProfile(edit), basedOn: .profile, in: request)
    if let email = edit.email { lists.profile?.pendingEmail = email }
    // The response has the new stamp.
    settle()
    return try .json(me)
  }

  mutating func putPicture(_ request: PreviewRequest) throws -> TransportResponse {
    // Image views can load it without a service.
    let url = URL(string: "data:image/png;base64," + request.body.base64EncodedString())
    if lists.profile?.pictureUrl != url, !request.isBased(on: stamps[.profile]) { throw Problem.lostUpdate }
    lists.profile?.pictureUrl = url
    settle()
    return try .json(me)
  }

  mutating func removePicture(_ request: PreviewRequest) throws -> TransportResponse {
    try perform(.removePicture, basedOn: .profile, in: request)
    return .noContent
  }

  func shownCalendarLink() throws -> TransportResponse {
    if let calendarLink { return try .json(calendarLink) }
    let nothing: JSONValue = .object(["url": .null, "webcalUrl": .null, "createdAt": .null])
    return try .json(nothing)
  }

  mutating func makeCalendarLink() throws -> TransportResponse {
    let id: Identifier<CalendarLink> = newID()
    let url = export.baseURL.appendingPathComponent("calendars/\(id).ics")
    let webcal = URL(string: "webcal" + url.absoluteString.drop { $0 != ":" }) ?? url
    calendarLink = CalendarLink(url: url, webcalUrl: webcal, createdAt: now)
    return try .json(calendarLink, status: 201)
  }

  mutating func revokeCalendarLink() -> TransportResponse {
    calendarLink = nil
    return .noContent
  }

  func user(_ id: User.ID) throws -> TransportResponse {
    guard let profile = lists.surroundings?.people[id] else { throw Problem.missing(.userNotFound) }
    return try .json(profile)
  }

  mutating func block(_ id: User.ID) throws -> TransportResponse {
    let profile = id == me.id ? me.person : lists.surroundings?.people[id]?.person
    // An unknown id gets the same response as a hidden user's.
    if let profile { try perform(.block(profile)) }
    return .noContent
  }

  func listRequests(_ request: PreviewRequest) throws -> TransportResponse {
    switch request.query["direction"] {
    case RequestDirection.sent.rawValue: try list(.sentFriendRequests, request)
    // Everyone in the demo has verified an address.
    case RequestDirection.filtered.rawValue: try list([FriendRequest](), request)
    default: try list(.friendRequests, request)
    }
  }

  mutating func shown(_ id: FriendRequest.ID, after write: Write? = nil) throws -> TransportResponse {
    if let write { try perform(write) }
    let open = (lists.friendRequests ?? []) + (lists.sentFriendRequests ?? [])
    guard let found = (open + (lists.surroundings?.closed ?? [])).first(where: { $0.id == id }) else {
      throw Problem.missing(.friendRequestNotFound)
    }
    return try .json(found)
  }

  mutating func sendRequest(_ request: PreviewRequest) throws -> TransportResponse {
    let draft: FriendRequestDraft = try request.read()
    if let id = draft.id, let sent = try lists.sentRequest(id) { return try .json(sent) }
    let receiver = draft.receiverId
    let theirs = lists.friendRequests?.first { $0.sender.id == receiver }
    let mine = lists.sentFriendRequests?.first { $0.receiver.id == receiver }
    let person = receiver == me.id ? me.person : lists.surroundings?.people[receiver]?.person
    let id = draft.id ?? newID()
    try perform(.sendRequest(to: person ?? Person(id: receiver, username: "", displayName: ""), id: id))
    if let theirs {
      // Both have asked, and both are notified.
      let banner = InboxItem.friends(theirs.sender, id: InboxItem.ID(id.rawValue), now)
      lists.notifications?.insert(banner, at: 0)
      let shown = draft.id ?? theirs.id
      return try .json(lists.surroundings?.closed.last { $0.id == shown })
    }
    if let mine { return try .json(mine) }
    return try .json(lists.sentFriendRequests?.first, status: 201)
  }

  /// Friends come first, as in the service. The match is simpler: a part of a name.
  func search(_ request: PreviewRequest) throws -> [FoundUser] {
    let people = lists.surroundings?.people ?? [:]
    if let ids: [User.ID] = request.ids() { return ids.compactMap { people[$0]?.asFound } }
    guard let query = request.query["query"] else { throw Problem.invalid("query", .required, "is required") }
    let found = people.values.filter { profile in
      [profile.username, profile.displayName].contains {
        $0.range(of: query, options: [.caseInsensitive, .diacriticInsensitive]) != nil
      }
    }
    let sorted = found.sorted {
      ($0.friendship == .friends ? 0 : 1, $0.username) < ($1.friendship == .friends ? 0 : 1, $1.username)
    }
    return sorted.map(\.asFound)
  }
}

extension PublicProfile {
  fileprivate var asFound: FoundUser {
    FoundUser(
      id: id, username: username, displayName: displayName, pictureUrl: pictureUrl, friendship: friendship,
      mutualFriendCount: mutualFriendCount)
  }
}

extension InboxItem {
  fileprivate static func friends(_ person: Person, id: InboxItem.ID, _ time: Date) -> InboxItem {
    InboxItem(
      id: id, createdAt: time, message: "You and \(person.displayName) are now friends.", locKey: "friend-accepted",
      locArgs: [person.displayName], type: .friendAccepted, actor: person.displayName, userId: person.id)
  }
}
