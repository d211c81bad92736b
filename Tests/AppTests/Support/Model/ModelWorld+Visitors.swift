import Postgres
import TestSupport

@testable import App

/// Share links, and the visitors who come through them.
extension ModelWorld {
  mutating func createLink() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let (maxPlusOnes, approval) = (roll(0..<4), chance(0.4))
    _ = try await createLink(to: event, by: someHost(of: event), maxPlusOnes: maxPlusOnes, approval: approval)
    return event
  }

  /// - Returns: the link, if there is one.
  private mutating func createLink(to event: Int, by me: Int, maxPlusOnes: Int, approval: Bool) async throws -> Int? {
    let response = try await call(
      .createLink, by: me, of: .event(event),
      body: [("kind", "answer"), ("maxPlusOnes", maxPlusOnes), ("approval", approval)])
    // An event has at most 20 links.
    if response.problem == "too-many-links" { return nil }
    try judge(response, model.mayCreateLink(to: event, by: me))
    guard response.status == 201 else { return nil }
    let token = String(response.json["url"].string?.split(separator: "/").last ?? "")
    model.add(
      Model.Link(
        id: response.json["id"].string ?? "", event: event, by: me, token: token, maxPlusOnes: maxPlusOnes,
        approval: approval))
    return model.links.count - 1
  }

  mutating func revokeLink() async throws -> Int? {
    guard let link = someLink() else { return nil }
    let event = model.links[link].event
    let me = someHost(of: event)
    let response = try await call(.revokeLink, by: me, of: .event(event), .link(link))
    try judge(response, model.revoke(link, by: me))
    return event
  }

  mutating func join() async throws -> Int? {
    guard let link = someLink() else { return nil }
    let me = liveUser()
    let response = try await call(.join, by: me, of: .link(link))
    try judge(response, model.join(link, by: me))
    return model.links[link].event
  }

  mutating func visit() async throws -> Int? {
    guard let link = someLink() else { return nil }
    // Often of a guest, whose answer and the visitor's are then merged.
    let owner = chance(0.5) ? pick(model.invitees(of: model.links[link].event)) ?? liveUser() : liveUser()
    let email = chance(0.8) && !model.people[owner].isGone ? model.people[owner].email : nil
    // At once, because many visitors are gone before their turn comes.
    let status = someAnswer()
    if try await visit(link, status, plusOnes: roll(0..<4), email: email), email != nil, chance(0.5) {
      try await confirm(model.visitors.count - 1, isMailed: true)
    }
    return model.links[link].event
  }

  /// A guest who has not answered also comes through a link, twice: the first answer is merged, and the second is
  /// proposed and accepted.
  mutating func visitAsGuest() async throws {
    var found: (event: Int, guest: Int)?
    while found == nil {
      guard let event = try await create(), !model.events[event].plan.isOver, !model.events[event].plan.isPastAnswers
      else { continue }
      found = model.invitees(of: event).first.map { (event, $0) }
    }
    guard let (event, guest) = found else { return }
    let link = try await createLink(to: event, by: model.events[event].creator, maxPlusOnes: 1, approval: false)
    for (status, plusOnes) in [("going", 0), ("maybe", 1)] {
      guard let link, try await visit(link, status, plusOnes: plusOnes, email: model.people[guest].email) else {
        throw violation("the guest's visit is refused")
      }
      try await confirm(model.visitors.count - 1, isMailed: true)
      try await merge()
    }
    _ = try await decide(accepts: true)
  }

  /// - Returns: whether there is a new visitor.
  private mutating func visit(_ link: Int, _ status: String, plusOnes: Int, email: String?) async throws -> Bool {
    let token = model.links[link].token
    let name = "Visitor \(fresh())"
    let form = try await app.send("GET", "/e/\(token)").body.firstMatch(of: /name="form" value="([^"]+)"/)
    var fields = ["form": String(form?.output.1 ?? ""), "name": name, "answer": status, "plusOnes": "\(plusOnes)"]
    fields["email"] = email
    let response = try await app.submit("/e/\(token)", fields)
    note("\(name): POST /e/\(token) \(status) \(plusOnes) \(email ?? "") -> \(response.status)")
    let right = try model.visit(link, status, plusOnes: plusOnes) {
      let visit = Visit(app: app, token: try app.visitorToken(in: response))
      return Model.Visitor(id: visit.id.description, name: name, link: link, token: visit.token, email: email)
    }
    try judge(response, right)
    guard response.status == 303 else { return false }
    // The model knows no minutes.
    try await app.endMinuteOfVisitors()
    done[.visit, default: 0] += 1
    return true
  }

  mutating func revisit() async throws -> Int? {
    guard let visitor = someVisitor() else { return nil }
    let status = someAnswer()
    let plusOnes: Int? = chance(0.4) ? nil : roll(0..<4)
    var fields = ["do": "answer", "answer": status]
    if let plusOnes { fields["plusOnes"] = "\(plusOnes)" }
    try await act(.revisit, visitor, fields) { $0.revisit(visitor, status, plusOnes: plusOnes) }
    return event(of: visitor)
  }

  mutating func eraseVisit() async throws -> Int? {
    guard let visitor = someVisitor() else { return nil }
    try await act(.eraseVisit, visitor, ["do": "erase"]) { $0.erase(visitor) }
    return event(of: visitor)
  }

  mutating func confirm() async throws -> Int? {
    let asked = model.visitors.indices.filter { visitor in
      let shown = model.visitors[visitor]
      return shown.email != nil && !shown.isConfirmed && model.invitation(ofVisitor: visitor) != nil
    }
    guard let visitor = chance(0.9) ? pick(asked) : someVisitor() else { return nil }
    try await confirm(visitor, isMailed: chance(0.9))
    return event(of: visitor)
  }

  /// - Parameter isMailed: whether to open the page with the link in the mail, if there is one. The visitor's own link
  ///   proves nothing.
  private mutating func confirm(_ visitor: Int, isMailed: Bool) async throws {
    let id = app.dependencies.visitorTokens.read(model.visitors[visitor].token)?.id
    let row = try await app.database.first("SELECT \(Visitor.columns) FROM visitors AS v WHERE v.id = \(id)")
    let mailed = try row.flatMap { app.dependencies.visitorTokens.mailed(to: try Visitor(row: $0)) }
    let token = isMailed ? mailed : nil
    try await act(.confirm, visitor, ["do": "confirm"], at: token) { $0.confirm(visitor, isMailed: token != nil) }
  }

  /// The steps of a worker.
  mutating func merge() async throws {
    while try await Visitor.mergeMarked(in: app.service, logger: .quiet) > 0 {}
    note("all visitors with the address of an account are merged")
    if model.merge() > 0 { done[.merge, default: 0] += 1 }
  }

  /// - Parameter token: of the page; nil for the visitor's own link.
  private mutating func act(
    _ verb: Verb, _ visitor: Int, _ fields: [String: String], at token: String? = nil,
    right: (inout Model) -> Set<Int>
  ) async throws {
    let shown = model.visitors[visitor]
    let response = try await app.submit("/g/\(token ?? shown.token)", fields)
    note("\(shown.name): POST /g/ \(fields) -> \(response.status)")
    try judge(response, right(&model))
    try await app.endMinuteOfVisitors()
    if response.status < 400 { done[verb, default: 0] += 1 }
  }

  mutating func approve() async throws -> Int? {
    let pending = model.invitations.filter { $0.status == "pending" }
    guard let invitation = pick(chance(0.9) ? pending : model.invitations) else { return nil }
    let event = invitation.event
    let me = someHost(of: event)
    guard !model.isHidden(invitation.guest, from: me) else { return nil }
    let response = try await call(.approve, by: me, of: .event(event), .guest(invitation.guest))
    try judge(response, model.approve(invitation.guest, at: event, by: me))
    return event
  }

  func event(of visitor: Int) -> Int { model.links[model.visitors[visitor].link].event }

  private mutating func someLink() -> Int? {
    let open = model.links.indices.filter {
      !model.events[model.links[$0].event].isClosed && !model.revoked.contains($0)
    }
    return pick(chance(0.9) ? open : Array(model.links.indices))
  }

  private mutating func someVisitor() -> Int? {
    let here = model.visitors.indices.filter { model.invitation(ofVisitor: $0) != nil }
    return pick(chance(0.95) ? here : Array(model.visitors.indices))
  }
}
