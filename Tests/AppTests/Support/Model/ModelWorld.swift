import Postgres
import TestSupport
import Testing

@testable import App

/// Five users who do random things, allowed or not, in an order that follows from the seed. After each step, the world
/// compares all lists of all users and the queue with ``Model``, and each user's ``DeltaCopy`` of each collection with
/// its GET.
struct ModelWorld {
  /// The service and the model differ.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  /// Named for acts, except for what visitors, workers and operators do.
  enum Verb: String, CaseIterable, Sendable {
    case send = "sendFriendRequest"
    case accept = "acceptFriendRequest"
    case decline = "declineFriendRequest"
    case cancelRequest = "cancelFriendRequest"
    case unfriend = "endFriendship"
    case block, unblock
    case create = "createEvent"
    case edit = "editEvent"
    case invite = "inviteToEvent"
    case withdraw = "withdrawInvitation"
    case answer = "answerInvitation"
    case cancelEvent, createLink, revokeLink
    case join = "joinByLink"
    case approve = "approveGuest"
    case verify = "verifyEmail"
    case remind = "remindGuests"
    case duplicate = "duplicateEvent"
    case addHost, removeHost, setAnswer, acceptProposal, declineProposal
    case editProfile = "editMe"
    case deleteAccount = "deleteMe"
    case markRead = "markNotificationsRead"
    case choose = "setNotificationPreferences"
    case archive, visit, revisit, eraseVisit, confirm, merge, deliver

    /// The relative frequency of the verb.
    fileprivate var weight: Int {
      switch self {
      case .answer: 22
      case .send, .accept, .visit: 12
      case .revisit: 9
      case .approve, .createLink, .addHost, .setAnswer: 8
      case .create, .edit, .unblock: 9
      case .invite: 8
      case .withdraw, .markRead, .join, .eraseVisit, .acceptProposal: 5
      case .editProfile, .deleteAccount: 4
      case .decline, .cancelRequest, .removeHost, .remind: 6
      // Often enough that the queued notices of one subject fit into one step of fan-out.
      case .deliver, .confirm, .merge: 12
      case .unfriend, .block, .cancelEvent, .archive, .choose, .revokeLink, .duplicate: 3
      case .verify, .declineProposal: 2
      }
    }

    /// Whether the verb may change the view of any event for any user.
    fileprivate var isFarReaching: Bool {
      [.block, .unblock, .editProfile, .deleteAccount, .archive, .merge].contains(self)
    }
  }

  /// A GET of one user.
  private struct Reading: Sendable {
    let person: Int
    let path: String
    let listing: Listing
    /// Nil if the response must be 404.
    let expected: [String]?
    var isCollection = false
  }

  /// The last response that a user got.
  private struct Copy {
    let body: String
    let lines: [String]
    let stamp: String
  }

  let app: TestApp
  private let seed: UInt64
  private var random: SeededRandom
  var model = Model()
  /// By the model's indices, including deleted accounts.
  private var phones: [Phone] = []
  /// The tokens that verify their addresses.
  var verifyTokens: [String] = []
  private var copies: [String: Copy] = [:]
  private let deltaMethod: DeltaCopy.Method
  private var deltas: [Int: [App.Collection: DeltaCopy]] = [:]
  private var trace: [String] = []
  private var names = 0
  /// The number of successful calls of each verb.
  var done: [Verb: Int] = [:]

  init(_ app: TestApp, seed: UInt64, deltas method: DeltaCopy.Method = .digests) async throws {
    self.app = app
    self.seed = seed
    deltaMethod = method
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
    let verbs = Verb.allCases.flatMap { Array(repeating: $0, count: $0.weight) }
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
    case .archive:
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 1000, in: $0) }
      model.archive()
      note("all events that are over are archived")
      done[.archive, default: 0] += 1
    case .deliver: try await deliver()
    }
    return nil
  }

  private mutating func deliver() async throws {
    try await app.takeNotifications()
    model.deliver()
    note("all queued notices are delivered")
    done[.deliver, default: 0] += 1
  }

  private mutating func signUp() async throws {
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

  private mutating func editProfile() async throws {
    let me = liveUser()
    var members: [String] = []
    var username: String?
    var displayName: String?
    var bio: String??
    if chance(0.2) {
      username = "renamed\(fresh())"
      members.append("\"username\": \(Self.json(username))")
    }
    if chance(0.5) {
      displayName = "Name \(roll(0..<9))"
      members.append("\"displayName\": \(Self.json(displayName))")
    }
    if chance(0.4) {
      let words: String? = chance(0.4) ? nil : "Bio \(roll(0..<9))"
      bio = .some(words)
      members.append("\"bio\": \(Self.json(words))")
    }
    let body = "{\(members.joined(separator: ", "))}"
    let response = try await call(.editProfile, by: me, [:], body)
    model.edit(me, username: username, displayName: displayName, bio: bio)
    try judge(response, [200])
  }

  /// Deletes an account, and registers a new one in its place.
  private mutating func deleteAccount() async throws {
    let me = liveUser()
    let response = try await call(
      .deleteAccount, by: me, [:], #"{"password": "\#(phones[me].password)"}"#)
    model.deleteAccount(of: me)
    try judge(response, [204])
    try await signUp()
  }

  private mutating func send(from me: Int, to other: Int) async throws {
    let response = try await call(
      .send, by: me, [:], #"{"receiverId": "\#(model.people[other].id)"}"#)
    let right = model.send(response.json["id"].string ?? "", from: me, to: other)
    try judge(response, right)
  }

  private mutating func close(_ verb: Verb) async throws {
    let pending = model.requests.indices.filter { model.requests[$0].status == "pending" }
    guard let request = pick(chance(0.8) ? pending : model.requests.suffix(12).indices.map { $0 }) else { return }
    let isSenders = verb == .cancelRequest
    let person = rightful(isSenders ? model.requests[request].sender : model.requests[request].receiver)
    try await close(request, by: person, verb)
  }

  private mutating func close(_ request: Int, by person: Int, _ verb: Verb) async throws {
    let id = model.requests[request].id
    // A request that was sent is another kind of thing, but has the same id.
    let response = try await call(verb, by: person, ["request": id, "sentRequest": id])
    let right =
      switch verb {
      case .accept: model.accept(request, by: person)
      case .decline: model.decline(request, by: person)
      default: model.cancel(request, by: person)
      }
    try judge(response, right)
  }

  private mutating func unfriend() async throws {
    let me = liveUser()
    let other = chance(0.8) ? pick(model.friends(of: me)) : anyUser()
    guard let other, other != me else { return }
    let response = try await call(.unfriend, by: me, ["user": model.people[other].id])
    let right = model.unfriend(other, by: me)
    try judge(response, right)
  }

  private mutating func block() async throws {
    let (me, other) = (liveUser(), chance(0.9) ? liveUser() : anyUser())
    guard other != me else { return }
    let response = try await call(.block, by: me, ["user": model.people[other].id])
    let right = model.block(other, by: me, wasDone: response.status < 300)
    try judge(response, right)
  }

  private mutating func unblock() async throws {
    guard let block = pick(model.blocks) else { return }
    let me = rightful(block.by)
    guard me != block.of else { return }
    let response = try await call(.unblock, by: me, ["user": model.people[block.of].id])
    let right = model.unblock(block.of, by: me)
    try judge(response, right)
  }

  // MARK: Notifications

  private mutating func markRead() async throws {
    let me = liveUser()
    let list = try await phones[me].get("notifications?limit=100")
    let ids = list["items"].array.compactMap { $0["id"].string }
    // By the ids of some of them, or by the stamp of the list.
    let rows: [Int]? = chance(0.6) ? ids.indices.filter { _ in chance(0.3) } : nil
    let body =
      rows.map { rows in "{\"ids\": [\(rows.map { Self.json(ids[$0]) }.joined(separator: ", "))]}" }
      ?? "{\"before\": \(Self.json(list["timestamp"].string))}"
    let response = try await call(.markRead, by: me, [:], body)
    let unread = model.markRead(rows, by: me)
    try judge(response, [200])
    guard response.json["unread"].int == unread else { throw violation("\(unread) are unread, not \(response.body)") }
  }

  private mutating func choose() async throws {
    let me = liveUser()
    let choices = Model.types.filter { _ in chance(0.3) }.map { (type: $0, isOn: chance(0.5)) }
    let body = choices.map { "\"\($0.type)\": \($0.isOn)" }.joined(separator: ", ")
    let response = try await call(.choose, by: me, [:], "{\(body)}")
    model.choose(choices, by: me)
    try judge(response, [200])
  }

  // MARK: Plans

  mutating func create() async throws -> Int? {
    let me = liveUser()
    var guests = model.friends(of: me).filter { _ in chance(0.8) }
    if chance(0.06) { guests.append(anyUser()) }
    let isOver = chance(0.2)
    let (start, end) = times(isOver: isOver)
    let number = fresh()
    let plan = Model.Plan(
      title: "Event \(number)", note: chance(0.5) ? nil : "Note", start: start, end: end,
      location: chance(0.5) ? nil : "Park", url: Self.url(number),
      capacity: isOver || chance(0.3) ? nil : roll(1..<5),
      answerBy: chance(0.75) ? nil : deadline(isOver: isOver || chance(0.3)),
      maxPlusOnes: chance(0.4) ? 0 : roll(1..<4))
    let members = [
      "\"title\": \(Self.json(plan.title))", "\"note\": \(Self.json(plan.note))", "\"timeZone\": \"Europe/Berlin\"",
      "\"inviteeIds\": \(ids(guests))", "\"maxPlusOnes\": \(plan.maxPlusOnes)",
      "\"answerBy\": \(Self.json(plan.answerBy))", "\"url\": \(Self.json(plan.url))",
    ]
    let body = "{\((members + [Self.times(plan), Self.place(plan), Self.capacity(plan)]).joined(separator: ", "))}"
    let response = try await call(.create, by: me, [:], body)
    let right = model.create(response.json["id"].string ?? "", plan, by: me, inviting: guests)
    try judge(response, right)
    return right == [201] ? model.events.count - 1 : nil
  }

  private static func url(_ number: Int) -> String? { number % 3 == 0 ? nil : "https://example.com/\(number % 4)" }

  private mutating func edit() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let old = model.events[event]
    var plan = old.plan
    var members: [String] = []
    if chance(0.4) {
      let number = fresh()
      plan.title = "Event \(number)"
      members.append("\"title\": \(Self.json(plan.title))")
      if number % 2 == 0 {
        plan.url = Self.url(number)
        members.append("\"url\": \(Self.json(plan.url))")
      }
    }
    if chance(0.3) {
      plan.note = chance(0.4) ? nil : "Note \(roll(0..<3))"
      members.append("\"note\": \(Self.json(plan.note))")
    }
    if chance(0.3) {
      (plan.start, plan.end) = times(isOver: plan.isOver)
      members.append(Self.times(plan))
    }
    if chance(0.3) {
      plan.location = chance(0.4) ? nil : "Park \(roll(0..<3))"
      members.append(Self.place(plan))
    }
    if chance(0.5), !plan.isOver {
      plan.capacity = chance(0.3) ? nil : roll(1..<4)
      members.append(Self.capacity(plan))
    }
    if chance(0.2) {
      plan.answerBy = chance(0.6) ? nil : deadline(isOver: plan.isOver || chance(0.4))
      members.append("\"answerBy\": \(Self.json(plan.answerBy))")
    }
    if chance(0.2) {
      plan.maxPlusOnes = roll(0..<4)
      members.append("\"maxPlusOnes\": \(plan.maxPlusOnes)")
    }
    let version: Int? = chance(0.7) ? nil : old.version + (chance(0.3) ? 1 : 0)
    let me = someHost(of: event)
    let response = try await call(
      .edit, by: me, ["event": old.id], "{\(members.joined(separator: ", "))}",
      headers: version.map { [("If-Match", "\"\($0)\"")] } ?? [])
    let right = model.edit(event, by: me, to: plan, ifVersion: version)
    try judge(response, right)
    return event
  }

  private mutating func cancelEvent() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = chance(0.8) ? rightful(model.events[event].host) : someHost(of: event)
    let response = try await call(.cancelEvent, by: me, ["event": model.events[event].id])
    let right = model.cancelEvent(event, by: me)
    try judge(response, right)
    return event
  }

  private mutating func invite() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let (me, hosts) = (someHost(of: event), model.events[event].hosts)
    var guests = model.friends(of: me).filter { _ in chance(0.5) }
    let stranger = anyUser()
    // The contract does not say whether a former friend may be invited twice.
    if chance(0.1), model.invitation(of: stranger, to: event) == nil, !hosts.contains(stranger) {
      guests.append(stranger)
    }
    // A friend across another host's block is refused, and with them all others: rarely, so that others are invited.
    if chance(0.8) { guests.removeAll { model.isHidden($0, fromHostsOf: event) } }
    guard !guests.isEmpty else { return nil }
    let response = try await call(
      .invite, by: me, ["event": model.events[event].id], "{\"userIds\": \(ids(guests))}")
    let right = model.invite(guests, to: event, by: me)
    try judge(response, right)
    return event
  }

  private mutating func withdraw() async throws -> Int? {
    guard let event = someEvent() else { return nil }
    let me = someHost(of: event)
    let guest = chance(0.9) ? pick(model.allGuests(of: event)) : anyUser()
    // The contract does not say whether a host may withdraw the invitation of a hidden guest.
    guard let guest, !model.isHidden(guest, from: me) else { return nil }
    let (id, guestID) = (model.events[event].id, model.id(of: guest))
    let response = try await call(.withdraw, by: me, ["event": id, "invitee": guestID])
    let right = model.withdraw(guest, from: event, by: me)
    try judge(response, right)
    return event
  }

  private mutating func answer() async throws -> Int? {
    let ofInvitees = model.invitations.filter { $0.guest < Model.firstVisitor }
    let live = ofInvitees.filter { !model.events[$0.event].isClosed }
    let invitation = pick(chance(0.9) ? live : ofInvitees)
    let event = chance(0.95) ? invitation?.event : someEvent()
    guard let event else { return nil }
    let me = chance(0.95) ? invitation?.guest ?? liveUser() : liveUser()
    let status = ["going", "going", "going", "maybe", "declined"][roll(0..<5)]
    let plusOnes: Int? = chance(0.4) ? nil : roll(0..<4)
    let others = plusOnes.map { #", "plusOnes": \#($0)"# } ?? ""
    let response = try await call(
      .answer, by: me, ["event": model.events[event].id],
      #"{"status": "\#(status)"\#(others)}"#)
    let right = model.answer(status, plusOnes: plusOnes, to: event, by: me)
    try judge(response, right)
    return event
  }

  // MARK: Comparing

  /// - Parameter events: the events to check one by one, in addition to all lists.
  private mutating func check(_ events: [Int]) async throws {
    try await checkQueue()
    let everybodys = model.present.map { readings(of: $0, events) }
    let responses = try await read(everybodys)
    for (reading, response) in responses { try compare(reading, response) }
    try await catchUp()
    for (reading, response) in responses { try compareDelta(reading, response) }
  }

  private func readings(of person: Int, _ events: [Int]) -> [Reading] {
    var readings = Phone.everyCollection.map { collection in
      let (listing, expected) = model.list(of: collection, for: person)
      return Reading(
        person: person, path: Phone.wholePath(of: collection), listing: listing, expected: expected, isCollection: true)
    }
    // Neither this list nor the archive is a collection, and so they have no stamp.
    readings.append(
      Reading(
        person: person, path: "friend-requests?direction=filtered&limit=100", listing: .requests,
        expected: model.requestList(of: person, .filtered)))
    let archive = model.eventList(of: person, archived: true)
    readings.append(
      Reading(person: person, path: "events?when=past&limit=100", listing: .events, expected: archive))
    for event in events {
      let (path, view) = ("events/\(model.events[event].id)", model.view(of: event, for: person))
      readings.append(Reading(person: person, path: path, listing: .event, expected: view))
      let guests = model.guestList(of: event, for: person)
      readings.append(
        Reading(person: person, path: "\(path)/invitations?limit=100", listing: .guests, expected: guests))
    }
    return readings
  }

  /// Reads for all users at the same time.
  private func read(_ readings: [[Reading]]) async throws -> [(Reading, APIResponse)] {
    let phones = phones
    return try await withThrowingTaskGroup(of: [(Reading, APIResponse)].self) { group in
      for ones in readings {
        group.addTask {
          var responses: [(Reading, APIResponse)] = []
          for reading in ones {
            let response = try await phones[reading.person].send("GET", reading.path)
            responses.append((reading, response))
          }
          return responses
        }
      }
      var all: [(Reading, APIResponse)] = []
      for try await responses in group { all += responses }
      return all
    }
  }

  private mutating func compare(_ reading: Reading, _ response: APIResponse) throws {
    let what = "\(reading.path) for \(model.people[reading.person].username)"
    let status = reading.expected == nil ? 404 : 200
    guard response.status == status else {
      throw violation("\(what) is \(response.status), not \(status): \(response.body)")
    }
    guard let expected = reading.expected else { return }
    let key = "\(reading.person) \(reading.path)"
    let copy = copies[key]
    if let copy, copy.body == response.body, copy.lines == expected { return }
    let json = response.json
    let lines = reading.listing.lines(of: json)
    guard lines == expected else {
      throw violation(
        """
        \(what) differs from the model. It is
        \(lines.joined(separator: "\n"))
        but should be
        \(expected.joined(separator: "\n"))
        """)
    }
    let stamp = json["timestamp"].string ?? ""
    if reading.isCollection {
      guard !stamp.isEmpty else { throw violation("\(what) has no stamp") }
      // The body contains the stamp, so a different body with the same stamp means that an item differs.
      if let copy, copy.body != response.body, copy.stamp >= stamp {
        throw violation(
          "\(what) has changed, but its stamp has not moved. It was\n\(copy.body)\nand is\n\(response.body)")
      }
    }
    copies[key] = Copy(body: response.body, lines: lines, stamp: stamp)
  }

  /// Brings all users' copies up to date by what has changed, at the same time.
  private mutating func catchUp() async throws {
    let (phones, deltas, method) = (phones, deltas, deltaMethod)
    self.deltas = try await withThrowingTaskGroup(of: (Int, [App.Collection: DeltaCopy]).self) { group in
      for person in model.present {
        group.addTask {
          var copies = deltas[person, default: [:]]
          try await phones[person].catchUp(&copies, by: method)
          return (person, copies)
        }
      }
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }

  private func compareDelta(_ reading: Reading, _ response: APIResponse) throws {
    let collection = Phone.everyCollection.first { Phone.wholePath(of: $0) == reading.path }
    guard let collection else { return }
    let (held, now) = (deltas[reading.person]?[collection]?.held, try HeldCopy(collection, response))
    guard held == now else {
      throw violation(
        """
        \(collection) of \(model.people[reading.person].username), kept by its changes, differs from its GET. It is
        \(held?.stamp ?? "") \(held?.items ?? "")
        but should be
        \(now.stamp) \(now.items)
        """)
    }
  }

  private func checkQueue() async throws {
    // Fan-out skips deleted recipients.
    let present = Set(model.present.map { model.people[$0].id })
    let lines = try await app.queuedNotices().filter { present.contains($0.recipient) }.map { queued in
      guard queued.payload["type"].string == queued.type, queued.payload["message"].string?.isEmpty == false else {
        throw violation("\(queued.payload) is not a payload of \(queued.type)")
      }
      return Listing.notice(queued.type, for: queued.recipient, Listing.members(of: queued.payload))
    }.sorted()
    guard lines == model.queueLines else {
      throw violation(
        """
        The queue differs from the model. It is
        \(lines.joined(separator: "\n"))
        but should be
        \(model.queueLines.joined(separator: "\n"))
        """)
    }
  }

  // MARK: Calls and the trace

  mutating func call(
    _ verb: Verb, by person: Int, _ things: [String: String], _ body: String? = nil,
    headers: [(String, String)] = []
  ) async throws -> APIResponse {
    let act = try Act.named(verb.rawValue)
    let (method, path) = (act.method, try act.path(things))
    let response = try await phones[person].send(method, path, body, headers: headers)
    let given = headers.map { " (\($0): \($1))" }.joined()
    note("\(model.people[person].username): \(method) \(path)\(given) \(body ?? "") -> \(response.status)")
    if response.status < 300 { done[verb, default: 0] += 1 }
    return response
  }

  func judge(_ response: APIResponse, _ right: Set<Int>) throws {
    let isServed = response.problem != "route-not-found" && response.problem != "method-not-allowed"
    guard right.contains(response.status), isServed else {
      throw violation("the status of the last response must be one of \(right.sorted()): \(response.body)")
    }
  }

  mutating func note(_ event: String) {
    trace.append(event)
  }

  func violation(_ what: String) -> Violation {
    Violation(description: "seed \(seed): \(what)\nAfter\n" + trace.joined(separator: "\n"))
  }

  static func json(_ text: String?) -> String {
    text.map { "\"\($0)\"" } ?? "null"
  }

  private static func times(_ plan: Model.Plan) -> String {
    "\"startTime\": \(json(plan.start)), \"endTime\": \(json(plan.end))"
  }

  private static func place(_ plan: Model.Plan) -> String {
    "\"location\": \(plan.location.map { "{\"name\": \"\($0)\"}" } ?? "null")"
  }

  private static func capacity(_ plan: Model.Plan) -> String {
    "\"capacity\": \(plan.capacity.map { String($0) } ?? "null")"
  }

  private func ids(_ people: [Int]) -> String {
    "[\(people.map { "\"\(model.people[$0].id)\"" }.joined(separator: ", "))]"
  }

  // MARK: Random choices

  /// Times long ago or years ahead. Some events start at the same time.
  mutating func times(isOver: Bool) -> (start: String, end: String?) {
    let day = "\(isOver ? 2020 : 2035)-05-0\(roll(1..<8))"
    return ("\(day)T1\(roll(0..<3)):00:00Z", chance(0.5) ? nil : "\(day)T2\(roll(0..<3)):00:00Z")
  }

  /// Long ago or years ahead, and before all starts.
  private mutating func deadline(isOver: Bool) -> String { "\(isOver ? 2019 : 2034)-04-0\(roll(1..<8))T10:00:00Z" }

  mutating func someEvent() -> Int? {
    let open = model.events.indices.filter { !model.events[$0].isClosed }
    return pick(chance(0.85) ? open : Array(model.events.indices))
  }

  /// A host of an event, or sometimes another user who tries.
  mutating func someHost(of event: Int) -> Int {
    rightful(pick(model.events[event].hosts) ?? model.events[event].host)
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
