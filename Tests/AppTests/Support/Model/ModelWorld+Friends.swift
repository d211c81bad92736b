import Postgres
import Testing

@testable import App

/// The verbs on accounts, friends and inboxes.
extension ModelWorld {
  mutating func signUp() async throws {
    let name = "user\(fresh())"
    // Mails to visitors who are gone have no address.
    try await app.database.execute("DELETE FROM mails")
    let phone = try await app.signUp(name, displayName: "The \(name)", isVerified: false)
    phones.append(phone)
    verifyTokens.append(try await app.takeToken("mail-verify-email"))
    model.register(
      Model.Person(id: phone.id, email: "\(name)@example.com", username: name, displayName: "The \(name)"))
    note("\(name) signs up: \(phone.id)")
  }

  mutating func verify() async throws {
    guard let person = pick(model.present.filter { !model.people[$0].isVerified }) else { return }
    try await verify(person)
  }

  mutating func verify(_ person: Int) async throws {
    let response = try await call(.verify, by: person, body: [("token", verifyTokens[person])])
    try judge(response, model.verify(person))
  }

  mutating func editProfile() async throws {
    let me = liveUser()
    let username = chance(0.2) ? "renamed\(fresh())" : nil
    let displayName = chance(0.5) ? "Name \(roll(0..<9))" : nil
    let bio: String?? = chance(0.4) ? .some(chance(0.4) ? nil : "Bio \(roll(0..<9))") : nil
    var body: Members = []
    if let username { body.append(("username", username)) }
    if let displayName { body.append(("displayName", displayName)) }
    if let bio { body.append(("bio", bio)) }
    let response = try await call(.editProfile, by: me, body: body)
    model.edit(me, username: username, displayName: displayName, bio: bio)
    try judge(response, 200)
  }

  /// Deletes an account, and registers a new one in its place.
  mutating func deleteAccount() async throws {
    let me = liveUser()
    let response = try await call(.deleteAccount, by: me, body: [("password", phones[me].password)])
    model.deleteAccount(of: me)
    try judge(response, 204)
    try await signUp()
  }

  // MARK: Friends

  mutating func send(from me: Int, to other: Int) async throws {
    let response = try await call(.send, by: me, body: [("receiverId", model.people[other].id)])
    try judge(response, model.send(response.json["id"].string ?? "", from: me, to: other))
  }

  mutating func close(_ verb: Verb) async throws {
    let pending = model.requests.indices.filter { model.requests[$0].status == "pending" }
    guard let request = pick(chance(0.8) ? pending : model.requests.suffix(12).indices.map { $0 }) else { return }
    let isSenders = verb == .cancelRequest
    let me = rightful(isSenders ? model.requests[request].sender : model.requests[request].receiver)
    try await close(request, by: me, verb)
  }

  mutating func close(_ request: Int, by me: Int, _ verb: Verb) async throws {
    let response = try await call(verb, by: me, of: .request(request))
    switch verb {
    case .accept: try judge(response, model.accept(request, by: me))
    case .decline: try judge(response, model.decline(request, by: me))
    default: try judge(response, model.cancel(request, by: me))
    }
  }

  mutating func unfriend() async throws {
    let me = liveUser()
    let other = chance(0.8) ? pick(model.friends(of: me)) : anyUser()
    guard let other, other != me else { return }
    let response = try await call(.unfriend, by: me, of: .user(other))
    try judge(response, model.unfriend(other, by: me))
  }

  mutating func block() async throws {
    let (me, other) = (liveUser(), chance(0.9) ? liveUser() : anyUser())
    guard other != me else { return }
    let response = try await call(.block, by: me, of: .user(other))
    try judge(response, model.block(other, by: me))
  }

  mutating func unblock() async throws {
    guard let block = pick(model.blocks) else { return }
    let me = rightful(block.by)
    guard me != block.of else { return }
    let response = try await call(.unblock, by: me, of: .user(block.of))
    try judge(response, model.unblock(block.of, by: me))
  }

  // MARK: Notifications

  mutating func deliver() async throws {
    try await app.takeNotifications()
    model.deliver()
    note("all queued notices are delivered")
    done[.deliver, default: 0] += 1
  }

  /// By the ids of some notifications, or by the stamp of the list.
  mutating func markRead() async throws {
    let me = liveUser()
    let list = try await phones[me].get("notifications?limit=100")
    let ids = list["items"].array.compactMap { $0["id"].string }
    let rows: [Int]? = chance(0.6) ? ids.indices.filter { _ in chance(0.3) } : nil
    let named: Members = [("ids", (rows ?? []).map { ids[$0] })]
    let response = try await call(
      .markRead, by: me, body: rows == nil ? [("before", list["timestamp"].string)] : named)
    let unread = model.markRead(rows, by: me)
    try judge(response, 200)
    guard response.json["unread"].int == unread else { throw violation("\(unread) are unread, not \(response.body)") }
  }

  mutating func choose() async throws {
    let me = liveUser()
    let choices = Model.types.filter { _ in chance(0.3) }.map { (type: $0, isOn: chance(0.5)) }
    let response = try await call(.choose, by: me, body: choices.map { ($0.type, $0.isOn) })
    model.choose(choices, by: me)
    try judge(response, 200)
  }
}
