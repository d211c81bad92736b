import Postgres
import Synchronization
import TestSupport

@testable import App

/// Performs random verbs as random users. Refusals are expected, because another user may have been faster.
struct RandomPerson {
  typealias Verb = RandomVerb

  private static let verbs = Verb.all { $0.together }
  /// The number of events at which they are archived, so that they fit on a page.
  private static let maximumPlans = 60

  private let cast: [Phone]
  private let app: TestApp
  private let place: Place
  private let acts: SharedActs
  private let history: History
  private var random: SeededRandom

  init(_ cast: [Phone], in app: TestApp, at place: Place, _ acts: SharedActs, _ history: History, seed: UInt64) {
    self.cast = cast
    self.app = app
    self.place = place
    self.acts = acts
    self.history = history
    random = SeededRandom(seed: seed)
  }

  /// Performs one verb, then pauses, so that some copies stay fresh.
  mutating func act() async throws {
    var verb = Self.verbs[roll(Self.verbs.count)]
    if acts.planCount >= Self.maximumPlans { verb = .archive }
    let me = roll(cast.count)
    let other = (me + 1 + roll(cast.count - 1)) % cast.count
    switch verb {
    case .editProfile, .writeBio, .putPicture, .removePicture: await changeLooks(verb, of: me)
    case .send:
      let response = await call(verb, by: me, [:], #"{"receiverId": "\#(cast[other].id)"}"#)
      guard let id = response?.json["id"].string else { break }
      acts.add(SharedActs.Request(id: id, sender: me, receiver: other))
    case .accept, .decline, .cancelRequest: await close(verb)
    case .unfriend, .block, .unblock: _ = await call(verb, by: me, ["user": cast[other].id])
    case .create: await create(by: me)
    case .edit, .invite, .join, .visit, .withdraw, .answer, .cancelEvent, .addHost, .removeHost, .setAnswer, .remind:
      await change(verb)
    case .acceptProposal, .declineProposal: await decide(verb, by: me)
    case .archive: await archive()
    case .markRead:
      let now = Timestamp.now().rfc3339()
      _ = await call(verb, by: me, [:], #"{"before": "\#(now)"}"#)
    case .purge:
      // Hides rows that are a second old. Sometimes hides everything, because entries can lie in the future when the
      // clock was set back. The rest fits on a page.
      let age = roll(3) == 0 ? -3600 : 1
      let floor: SQL = "now() - make_interval(secs => \(Double(age)))"
      let raised = try? await app.service.change { try await InboxItem.raiseFloors(to: floor, atMost: 1000, in: $0) }
      if let raised, raised > 0 { history.count { $0.done[.purge, default: 0] += 1 } }
    // Only the model has them. A visit does some of it, and workers are other tasks.
    case .duplicate, .approve, .createLink, .revokeLink, .verify, .deleteAccount, .revisit, .eraseVisit, .confirm,
      .merge, .deliver:
      break
    case .choose:
      let isOn = roll(2) == 0
      _ = await call(verb, by: me, [:], #"{"event-updated": \#(isOn)}"#)
    }
    try await Task.sleep(for: .milliseconds(5 + roll(40)))
  }

  private mutating func changeLooks(_ verb: Verb, of me: Int) async {
    let word = "Word \(roll(1000))"
    switch verb {
    case .editProfile: _ = await call(verb, by: me, [:], #"{"displayName": "\#(word)"}"#)
    case .writeBio: _ = await call(verb, by: me, [:], #"{"bio": "\#(word)"}"#)
    case .putPicture: _ = await call(verb, by: me, [:], Sample.webpText)
    default: _ = await call(verb, by: me)
    }
  }

  private mutating func close(_ verb: Verb) async {
    guard let request = acts.requests.randomElement(using: &random) else { return }
    let person = verb == .cancelRequest ? request.sender : request.receiver
    _ = await call(verb, by: person, ["request": request.id, "sentRequest": request.id])
  }

  /// Creates an event. Some events are over and are archived next time, and some have two places only.
  private mutating func create(by me: Int) async {
    let (word, year, capacity) = (roll(1000), 2030 - 10 * roll(2), roll(2) == 0 ? "null" : "2")
    let body = """
      {"title": "Event \(word)", "startTime": "\(year)-05-01T18:00:00Z", "timeZone": "UTC", "capacity": \(capacity),
       "maxPlusOnes": \(roll(3))}
      """
    let response = await call(.create, by: me, [:], body)
    guard let id = response?.json["id"].string else { return }
    acts.add(SharedActs.Plan(id: id, host: me))
  }

  private mutating func change(_ verb: Verb) async {
    guard let plan = acts.plans.randomElement(using: &random) else { return }
    let (path, event) = ("events/\(plan.id)", ["event": plan.id])
    let guest = (plan.host + 1 + roll(cast.count - 1)) % cast.count
    let (word, capacity) = (roll(1000), roll(4) == 0 ? #", "capacity": null"# : "")
    let status = ["going", "maybe", "declined"][roll(3)]
    // Sometimes a co-host, and sometimes a user who is refused.
    let editor = roll(4) == 0 ? roll(cast.count) : plan.host
    switch verb {
    case .edit: _ = await call(verb, by: editor, event, #"{"title": "Event \#(word)"\#(capacity)}"#)
    case .invite:
      _ = await call(verb, by: editor, event, #"{"userIds": ["\#(cast[guest].id)"]}"#)
    case .join:
      let host = place.phone(of: cast[plan.host])
      guard let link = try? await host.send("POST", "\(path)/links", #"{"kind": "answer"}"#).json,
        let url = link["url"].string, let id = link["id"].string
      else { return }
      _ = await call(verb, by: guest, ["linkToken": String(url.suffix(43))])
      _ = try? await host.send("DELETE", "\(path)/links/\(id)")
    case .visit: await visit(plan)
    case .withdraw: _ = await call(verb, by: plan.host, ["event": plan.id, "invitee": cast[guest].id])
    case .answer:
      let invitations = try? await place.phone(of: cast[guest]).send("GET", "invitations").json["items"].array
      guard let id = invitations?.randomElement(using: &random)?["event"]["id"].string else { return }
      let body = #"{"status": "\#(status)", "plusOnes": \#([0, 0, 1, 2][roll(4)])}"#
      _ = await call(verb, by: guest, ["event": id], body)
    case .addHost:
      _ = await call(verb, by: plan.host, ["event": plan.id, "invitee": cast[guest].id])
      let decisions: [Verb?] = [.acceptProposal, .declineProposal, nil]
      if let decision = decisions[roll(3)] { await decide(decision, by: guest) }
    case .removeHost:
      let remover = roll(2) == 0 ? guest : plan.host
      _ = await call(verb, by: remover, ["event": plan.id, "invitee": cast[guest].id])
    case .setAnswer:
      // Of any guest. An event has few, so that one of the cast is rarely among them.
      let guests = try? await place.phone(of: cast[plan.host]).send("GET", "\(path)/invitations").json["items"].array
      guard let guests, let id = guests.randomElement(using: &random)?["id"].string else { return }
      _ = await call(verb, by: editor, ["event": plan.id, "invitee": id], #"{"status": "\#(status)"}"#)
    case .remind: _ = await call(verb, by: editor, event)
    default: _ = await call(verb, by: plan.host, event)
    }
  }

  /// Accepts or declines the latest offer to host an event.
  private mutating func decide(_ verb: Verb, by me: Int) async {
    let proposals = try? await place.phone(of: cast[me]).send("GET", "proposals").json["items"]
    guard let proposal = proposals?[0]["id"].string else { return }
    _ = await call(verb, by: me, ["proposal": proposal])
  }

  /// A person without an account answers through a link, and does something else.
  private mutating func visit(_ plan: SharedActs.Plan) async {
    let (host, path) = (place.phone(of: cast[plan.host]), "events/\(plan.id)")
    let approval = roll(2) == 0
    let (plusOnes, next) = (roll(2), roll(4))
    guard
      let link = try? await host.send(
        "POST", "\(path)/links", #"{"kind": "answer", "maxPlusOnes": 1, "approval": \#(approval)}"#
      ).json, let url = link["url"].string, let id = link["id"].string, let linkID = ShareLink.ID(id),
      let form = app.dependencies.visitorTokens.forms.token(for: linkID)
    else { return }
    let response = try? await host.app.submit(
      "/e/\(url.suffix(43))", ["form": form, "name": "Zoe", "answer": "going", "plusOnes": "\(plusOnes)"])
    if let response, response.status == 303, let token = try? app.visitorToken(in: response) {
      history.count { $0.done[.visit, default: 0] += 1 }
      let visit = Visit(app: host.app, token: token)
      if approval { _ = try? await host.send("POST", "\(path)/invitations/\(visit.id)/approve") }
      if next % 2 == 1 { _ = try? await host.send("PUT", "\(path)/invitations/\(visit.id)", #"{"status": "maybe"}"#) }
      let acts = ["withdraw", "erase"]
      if next < acts.count { _ = try? await host.app.submit(visit.path, ["do": acts[next]]) }
    }
    _ = try? await host.send("DELETE", "\(path)/links/\(id)")
  }

  /// Archives the events that are over, or all events if they would soon not fit on a page.
  private func archive() async {
    let isFull = acts.planCount >= Self.maximumPlans
    let now = isFull ? Timestamp.now().adding(seconds: 20 * 365 * 86_400) : .now()
    if isFull { _ = acts.forgetPlans() }
    let archived = try? await app.service.change {
      try await Event.archive(endedBefore: now, atMost: 1000, in: $0)
    }
    if let archived, archived > 0 { history.count { $0.done[.archive, default: 0] += 1 } }
  }

  /// - Returns: nil if there was no response.
  private func call(
    _ verb: Verb, by person: Int, _ things: [String: String] = [:], _ body: String? = nil
  ) async -> APIResponse? {
    guard let act = try? Act.named(verb.act), let path = try? act.path(things) else {
      history.report("\(verb) has no act, or a thing is missing")
      return nil
    }
    guard let response = try? await place.phone(of: cast[person]).send(act.method, path, body) else { return nil }
    if response.status < 300 { history.count { $0.done[verb, default: 0] += 1 } }
    // No request is malformed, and no user is logged out, but several phones of one user may upload a picture at once.
    if [400, 401, 405, 413, 415, 429].contains(response.status), response.problem != "upload-in-progress" {
      history.report("\(verb): \(response.body)")
    }
    return response
  }

  private mutating func roll(_ count: Int) -> Int {
    Int.random(in: 0..<count, using: &random)
  }
}
