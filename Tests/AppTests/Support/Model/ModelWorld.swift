import Postgres
import TestSupport
import Testing

@testable import App

/// Five users who do random things, allowed or not, in an order that follows from the seed. After each step, the world
/// compares what all users see with ``Model``: see ``ModelComparison``.
struct ModelWorld {
  typealias Verb = RandomVerb

  /// The service and the model differ.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  /// A thing that the path of an act names.
  enum Thing {
    case event(Int), guest(Model.Guest), user(Int), request(Int), link(Int), proposal(String)
  }

  let app: TestApp
  private let seed: UInt64
  private var random: SeededRandom
  var model = Model()
  /// By the model's indices, including deleted accounts.
  var phones: [Phone] = []
  /// The tokens that verify their addresses.
  var verifyTokens: [String] = []
  private var comparison: ModelComparison
  private var trace: [String] = []
  private var names = 0
  /// The number of successful calls of each verb.
  var done: [Verb: Int] = [:]

  init(_ app: TestApp, seed: UInt64, deltas method: DeltaCopy.Method = .digests) async throws {
    self.app = app
    self.seed = seed
    comparison = ModelComparison(app, by: method)
    random = SeededRandom(seed: seed)
    for _ in 0..<5 { try await signUp() }
    // A few friendships to begin with.
    for (one, other) in [(0, 1), (0, 2), (1, 2), (3, 0), (4, 1)] {
      if other == 0 { try await deliver() }
      try await send(from: one, to: other)
      try await close(model.requests.count - 1, by: other, .accept)
    }
    // And a few links, because most verbs on visitors need one.
    for _ in 0..<3 {
      _ = try await create()
      _ = try await createLink()
    }
    // Visitors are merged into accounts with verified addresses only. Accounts that come later verify theirs at times.
    for person in model.present { try await verify(person) }
    try await visitAsGuest()
    try await checkEverything()
  }

  /// - Throws: ``Violation``, with all steps that led to it.
  mutating func run(steps: Int) async throws {
    let verbs = Verb.all { $0.alone }
    for _ in 0..<steps {
      let verb = verbs[roll(0..<verbs.count)]
      let event = try await perform(verb)
      try await check(verb.isFarReaching ? Array(model.events.indices.suffix(6)) : event.map { [$0] } ?? [])
    }
    try await checkEverything()
  }

  mutating func checkEverything() async throws {
    try await check(Array(model.events.indices))
  }

  /// - Parameter events: the events to check one by one, in addition to all lists.
  private mutating func check(_ events: [Int]) async throws {
    do {
      try await comparison.check(model, phones, events)
    } catch let deviation as ModelComparison.Deviation {
      throw violation(deviation.description)
    }
  }

  // MARK: Verbs

  /// - Returns: the event that the verb was about.
  private mutating func perform(_ verb: Verb) async throws -> Int? {
    switch verb {
    case .send: try await send(from: liveUser(), to: chance(0.8) ? liveUser() : anyUser())
    case .accept, .decline, .cancelRequest: try await close(verb)
    case .unfriend: try await unfriend()
    case .block: try await block()
    case .unblock: try await unblock()
    case .create: return try await create()
    case .edit: return try await edit()
    case .cancelEvent: return try await cancelEvent()
    case .invite: return try await invite()
    case .withdraw: return try await withdraw()
    case .answer: return try await answer()
    case .createLink: return try await createLink()
    case .revokeLink: return try await revokeLink()
    case .join: return try await join()
    case .visit: return try await visit()
    case .revisit: return try await revisit()
    case .eraseVisit: return try await eraseVisit()
    case .approve: return try await approve()
    case .confirm: return try await confirm()
    case .verify: try await verify()
    case .merge: try await merge()
    case .addHost: return try await addHost()
    case .removeHost: return try await removeHost()
    case .setAnswer: return try await setAnswer()
    case .remind: return try await remind()
    case .duplicate: return try await duplicate()
    case .acceptProposal: return try await decide(accepts: true)
    case .declineProposal: return try await decide(accepts: false)
    case .editProfile: try await editProfile()
    case .deleteAccount: try await deleteAccount()
    case .markRead: try await markRead()
    case .choose: try await choose()
    case .archive: try await archive()
    case .deliver: try await deliver()
    // Only a history has them.
    case .writeBio, .putPicture, .removePicture, .purge: break
    }
    return nil
  }

  // MARK: Calls and the trace

  /// Performs the act of a verb.
  ///
  /// - Parameter things: what its path names.
  mutating func call(
    _ verb: Verb, by person: Int, of things: Thing..., body: Members? = nil, headers: [(String, String)] = []
  ) async throws -> APIResponse {
    let act = try Act.named(verb.act)
    let (method, path) = (act.method, try act.path(things.map(ids).reduce(into: [:]) { $0.merge($1) { $1 } }))
    let body = body.map(json)
    let response = try await phones[person].send(method, path, body, headers: headers)
    let given = headers.map { " (\($0): \($1))" }.joined()
    note("\(model.people[person].username): \(method) \(path)\(given) \(body ?? "") -> \(response.status)")
    if response.status < 300 { done[verb, default: 0] += 1 }
    return response
  }

  /// Its id, by the names that acts have for it.
  private func ids(of thing: Thing) -> [String: String] {
    switch thing {
    case .event(let event): ["event": model.events[event].id]
    case .guest(let guest): ["invitee": model.id(of: guest)]
    case .user(let user): ["user": model.people[user].id, "invitee": model.people[user].id]
    // A request that was sent is another kind of thing, but has the same id.
    case .request(let request): ["request": model.requests[request].id, "sentRequest": model.requests[request].id]
    case .link(let link): ["link": model.links[link].id, "linkToken": model.links[link].token]
    case .proposal(let id): ["proposal": id]
    }
  }

  func judge(_ response: APIResponse, _ right: Set<Int>) throws {
    let isServed = response.problem != "route-not-found" && response.problem != "method-not-allowed"
    guard right.contains(response.status), isServed else {
      throw violation("the status of the last response must be one of \(right.sorted()): \(response.body)")
    }
  }

  func judge(_ response: APIResponse, _ right: Int) throws {
    try judge(response, [right])
  }

  mutating func note(_ event: String) {
    trace.append(event)
  }

  func violation(_ what: String) -> Violation {
    Violation(description: "seed \(seed): \(what)\nAfter\n" + trace.joined(separator: "\n"))
  }

  // MARK: Random choices

  mutating func someEvent() -> Int? {
    let open = model.events.indices.filter { !model.events[$0].isClosed }
    return pick(chance(0.85) ? open : Array(model.events.indices))
  }

  /// A host of an event, or sometimes another user who tries.
  mutating func someHost(of event: Int) -> Int {
    rightful(pick(model.events[event].hosts) ?? model.events[event].creator)
  }

  /// The user who may do something, or sometimes another user who tries.
  mutating func rightful(_ person: Int) -> Int {
    chance(0.85) && !model.people[person].isGone ? person : liveUser()
  }

  mutating func liveUser() -> Int {
    model.present[roll(0..<model.present.count)]
  }

  /// Any user, including deleted ones.
  mutating func anyUser() -> Int {
    roll(0..<model.people.count)
  }

  mutating func pick<Element>(_ elements: [Element]) -> Element? {
    elements.randomElement(using: &random)
  }

  mutating func fresh() -> Int {
    names += 1
    return names
  }

  mutating func roll(_ range: Range<Int>) -> Int {
    Int.random(in: range, using: &random)
  }

  mutating func chance(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &random) < probability
  }
}
