import Foundation

extension PreviewWorld {
  mutating func user(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    switch (request.method, words.count > 1 ? words[1] : "", words.count > 2 ? words[2] : "") {
    case ("GET", "", _): return try list(search(request), request)
    case ("GET", "recommended", _): return try list(recommended, request)
    case ("GET", "me", ""): return try .json(me)
    case ("GET", "me", "export"): return try .json(["profile": me])
    case ("PATCH", "me", ""): return try .json(edit(request))
    case ("PUT", "me", "picture"):
      // Image views can load it without a service.
      me.pictureUrl = URL(string: "data:image/png;base64," + request.body.base64EncodedString())
      touch(.profile)
      return try .json(me)
    case ("DELETE", "me", "picture"):
      me.pictureUrl = nil
      touch(.profile)
      return .noContent
    case ("DELETE", "me", ""): return .noContent
    case ("GET", let id, ""):
      guard let profile = UUID(uuidString: id).flatMap({ profiles[$0] }) else { throw Problem.missing(.userNotFound) }
      return try .json(profile)
    default: throw Problem.missing(.routeNotFound)
    }
  }

  mutating func people(_ request: PreviewRequest, _ words: [String]) throws -> TransportResponse {
    let id = words.count > 1 ? UUID(uuidString: words[1]) : nil
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
    case ("GET", "friend-requests", _):
      guard let found = (incoming + sent + closed).first(where: { $0.id == id }) else {
        throw Problem.missing(.friendRequestNotFound)
      }
      return try .json(found)
    case ("POST", "friend-requests", ""): return try ask(request)
    case ("POST", "friend-requests", "accept"): return try .json(close(id, in: \.incoming, as: .accepted))
    case ("POST", "friend-requests", "decline"): return try .json(close(id, in: \.incoming, as: .declined))
    case ("DELETE", "friend-requests", _): return try .json(close(id, in: \.sent, as: .cancelled))
    case ("DELETE", "friends", _): part(from: id)
    case ("PUT", "blocks", _): block(id)
    case ("DELETE", "blocks", _): unblock(id)
    default: throw Problem.missing(.routeNotFound)
    }
    return .noContent
  }

  /// Friends come first, as in the service. The match is simpler: a part of a name.
  private func search(_ request: PreviewRequest) -> [Person] {
    if let ids = request.ids { return ids.compactMap { profiles[$0]?.person } }
    let query = request.query["query"] ?? ""
    let found = profiles.values.filter { profile in
      profile.id != me.id
        && [profile.username, profile.displayName].contains {
          $0.range(of: query, options: [.caseInsensitive, .diacriticInsensitive]) != nil
        }
    }
    let sorted = found.sorted {
      ($0.friendship == .friends ? 0 : 1, $0.username) < ($1.friendship == .friends ? 0 : 1, $1.username)
    }
    return sorted.map(\.person)
  }

  private mutating func edit(_ request: PreviewRequest) throws -> User {
    let edit: ProfileEdit = try request.read()
    me.username = edit.username ?? me.username
    me.displayName = edit.displayName ?? me.displayName
    me.bio = edit.bio.applied(to: me.bio)
    me.pendingEmail = edit.email ?? me.pendingEmail
    me.requestsFrom = edit.requestsFrom ?? me.requestsFrom
    me.findableBy = edit.findableBy ?? me.findableBy
    touch(.profile)
    return me
  }

  private mutating func ask(_ request: PreviewRequest) throws -> TransportResponse {
    let body: [String: UUID] = try request.read()
    guard let other = body["receiverId"].flatMap({ profiles[$0] }), other.id != me.id else {
      throw Problem.missing(.userNotFound)
    }
    if friends.contains(where: { $0.id == other.id }) {
      throw Problem.preview(.alreadyFriends, 409, "You are already friends.")
    }
    if let pending = sent.first(where: { $0.receiver.id == other.id }) { return try .json(pending) }
    if let theirs = incoming.first(where: { $0.sender.id == other.id }) {
      return try .json(close(theirs.id, in: \.incoming, as: .accepted))
    }
    let new = FriendRequest(id: newID(), sender: me.person, receiver: other.person, createdAt: now)
    sent.insert(new, at: 0)
    profiles[other.id]?.friendship = .requested
    recommended.removeAll { $0.id == other.id }
    touch(.sentFriendRequests)
    return try .json(new, status: 201)
  }

  /// Closes a pending request. The same verb again changes nothing.
  private mutating func close(
    _ id: UUID?, in list: WritableKeyPath<PreviewWorld, [FriendRequest]>, as status: FriendRequestStatus
  ) throws -> FriendRequest {
    if let before = closed.first(where: { $0.id == id }) {
      guard before.status != status else { return before }
      throw Problem.preview(.friendRequestClosed, 409, "The friend request is already \(before.status.rawValue).")
    }
    guard let place = self[keyPath: list].firstIndex(where: { $0.id == id }) else {
      throw Problem.missing(.friendRequestNotFound)
    }
    var request = self[keyPath: list].remove(at: place)
    request.status = status
    closed.append(request)
    let other = request.sender.id == me.id ? request.receiver : request.sender
    profiles[other.id]?.friendship = status == .accepted ? .friends : .none
    if status == .accepted {
      // Newest first, as in the service.
      friends.insert(Friend(user: other, since: now), at: 0)
      touch(.friends)
    }
    touch(request.sender.id == me.id ? .sentFriendRequests : .friendRequests)
    return request
  }

  private mutating func part(from id: UUID?) {
    guard let id, friends.contains(where: { $0.id == id }) else { return }
    friends.removeAll { $0.id == id }
    profiles[id]?.friendship = .none
    touch(.friends)
  }

  private mutating func block(_ id: UUID?) {
    guard let id, let person = profiles[id]?.person, id != me.id else { return }
    part(from: id)
    incoming.removeAll { $0.sender.id == id }
    sent.removeAll { $0.receiver.id == id }
    recommended.removeAll { $0.id == id }
    profiles[id] = nil
    blocks.insert(Block(user: person, since: now), at: 0)
    touch(.blocks, .friendRequests, .sentFriendRequests)
  }

  private mutating func unblock(_ id: UUID?) {
    guard let user = blocks.first(where: { $0.id == id })?.user else { return }
    blocks.removeAll { $0.id == id }
    profiles[user.id] = PublicProfile(
      id: user.id, username: user.username, displayName: user.displayName, pictureUrl: user.pictureUrl)
    touch(.blocks)
  }
}

extension PublicProfile {
  fileprivate var person: Person {
    Person(id: id, username: username, displayName: displayName, pictureUrl: pictureUrl)
  }
}
