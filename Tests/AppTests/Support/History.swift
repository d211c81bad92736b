import Foundation
import Synchronization
import TestSupport
import Testing

@testable import App

/// All that the phones received, and all violations of the cache's promise in it.
final class History: Sendable {
  struct Tally: Sendable {
    /// Verdicts on one collection.
    var validations = 0
    var fresh = 0
    /// Lists whose items came with a validation.
    var broughtAlong = 0
    /// Lists that were brought up to date by what had changed.
    var changed = 0
    /// GETs with the response 304.
    var unchanged = 0
    /// The number of times that each verb was done.
    var done: [RandomPerson.Verb: Int] = [:]
  }

  private struct Key: Hashable {
    let user: String
    let collection: App.Collection
    let stamp: String
  }

  private struct State {
    /// A hash of the items that came with a stamp.
    var seen: [Key: Int] = [:]
    var violations: [String] = []
    var tally = Tally()
    var isEnded = false
  }

  private let state = Mutex(State())
  private let goal: Int
  private let endsAtViolation: Bool
  private let hasEveryVerb: Bool

  /// - Parameters:
  ///   - goal: the number of validations after which the history is over.
  ///   - hasEveryVerb: whether it goes on until every verb was done, for at most five times as many validations.
  init(goal: Int = .max, endsAtViolation: Bool = false, hasEveryVerb: Bool = false) {
    self.goal = goal
    self.hasEveryVerb = hasEveryVerb
    self.endsAtViolation = endsAtViolation
  }

  var violations: [String] { state.withLock { $0.violations } }
  var tally: Tally { state.withLock { $0.tally } }

  var isOver: Bool {
    state.withLock {
      if $0.isEnded || endsAtViolation && !$0.violations.isEmpty { return true }
      let (validations, done) = ($0.tally.validations, $0.tally.done.count)
      return validations >= goal
        && (!hasEveryVerb || done == RandomPerson.Verb.allCases.count || validations / 5 >= goal)
    }
  }

  func end() {
    state.withLock { $0.isEnded = true }
  }

  func count(_ change: (inout Tally) -> Void) {
    state.withLock { change(&$0.tally) }
  }

  func report(_ violation: String) {
    state.withLock { if $0.violations.count < 20 { $0.violations.append(violation) } }
  }

  /// Checks that a stamp always comes with the same items, for every reader, and for GETs and validations alike.
  func note(_ copy: HeldCopy, of collection: App.Collection, of user: Phone) {
    let key = Key(user: user.id, collection: collection, stamp: copy.stamp)
    let hash = copy.items.hashValue
    let isOther = state.withLock { state -> Bool in
      if let known = state.seen[key] { return known != hash }
      state.seen[key] = hash
      return false
    }
    if isOther {
      report(
        "\(collection) of \(user.username): \(copy.stamp) has come with other items: \(copy.items.prefix(2000))")
    }
  }
}

/// The address of the service. It changes when the service's process is killed and started again.
final class Place: Sendable {
  private let app: Mutex<TestApp>

  init(_ app: TestApp) {
    self.app = Mutex(app)
  }

  func move(to next: TestApp) {
    app.withLock { $0 = next }
  }

  /// A user's phone that sends its requests to the current address.
  func phone(of person: Phone) -> Phone {
    Phone(app.withLock { $0 }, person.username, id: person.userID, accessToken: person.accessToken)
  }

  /// Repeats a request while there is no service, or only server errors.
  func insist(_ owner: Phone, _ ask: (Phone) async throws -> Answer) async throws -> Answer {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      if let answer = try? await ask(phone(of: owner)), answer.status < 500 {
        guard answer.status == 200 || answer.status == 304 else { throw Unexpected("\(answer.status): \(answer.body)") }
        return answer
      }
      guard ContinuousClock.now < deadline else { throw Unexpected("no service responds to \(owner.username)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

/// A phone that keeps copies of its owner's collections and validates them. For each copy that is called fresh, it
/// checks that the service would send the same.
struct CachingPhone {
  private let owner: Phone
  private let place: Place
  private let history: History
  /// Takes the stamp from a later response than the items. This bug must be detected.
  private let datesLate: Bool
  private var random: SeededRandom
  private var copies: [App.Collection: HeldCopy] = [:]
  /// Copies that are brought up to date by what has changed, apart from `copies`.
  private var deltas: [App.Collection: DeltaCopy] = [:]

  init(of owner: Phone, at place: Place, _ history: History, seed: UInt64, datesLate: Bool = false) {
    self.owner = owner
    self.place = place
    self.history = history
    self.datesLate = datesLate
    random = SeededRandom(seed: seed)
  }

  /// Validates all copies, and checks each.
  ///
  /// - Parameter isAtRest: whether nothing changes any more, so that all copies must be current.
  mutating func round(isAtRest: Bool = false) async throws {
    let includesItems = !datesLate && Int.random(in: 0..<5, using: &random) < 2
    let answer = try await validate(query: includesItems ? "?include=items" : "")
    for collection in Phone.everyCollection {
      let verdict = try HeldVerdict(collection, in: answer)
      let held = copies[collection]
      if verdict.isFresh {
        guard let copy = held, copy.stamp == verdict.stamp else {
          history.report("\(name(collection)): \(held?.stamp ?? "nothing") is called fresh at \(verdict.stamp)")
          continue
        }
        let now = try await look(at: collection, copy)
        if now.stamp == copy.stamp, now.items != copy.items {
          history.report("\(name(collection)): stale called fresh at \(now.stamp): \(copy.items) and now \(now.items)")
        }
        keep(now, collection)
      } else {
        if isAtRest { history.report("\(name(collection)): \(held?.stamp ?? "no copy") is stale although at rest") }
        if held?.stamp == verdict.stamp { history.report("\(name(collection)): \(verdict.stamp) is called stale") }
        let new = try await renew(collection, verdict)
        keep(new, collection)
      }
    }
    history.count { $0.validations += Phone.everyCollection.count }
  }

  /// Brings all copies up to date by what has changed. For each stamp, their items must be those of all other
  /// responses with this stamp.
  ///
  /// - Parameter isAtRest: whether nothing changes any more, so that all copies must be current.
  mutating func catchUp(isAtRest: Bool = false) async throws {
    let claims = Phone.claims(deltas)
    let answer = try await insist { try await $0.send("POST", "cache/validate/\($0.id)?include=changes", claims) }
    for (name, text) in try RawJSON.members(of: answer.body) {
      guard let collection = App.Collection(rawValue: name) else { throw Unexpected(text) }
      let verdict = try RawJSON.members(of: text)
      if verdict["invalidate"] == "true" {
        if isAtRest { history.report("\(self.name(collection)): \(text) although at rest") }
        let missing = try deltas[collection, default: DeltaCopy()].apply(verdict)
        if !missing.isEmpty { history.report("\(self.name(collection)): \(missing) are missing") }
        history.count { $0.changed += 1 }
      }
      guard let held = deltas[collection]?.held else {
        history.report("\(self.name(collection)): nothing is called fresh")
        continue
      }
      if isAtRest {
        let answer = try await insist { try await $0.send("GET", Phone.wholePath(of: collection)) }
        let now = try HeldCopy(collection, answer)
        if held != now { history.report("\(self.name(collection)): at rest, \(held) is held, but \(now) is right") }
      }
      history.note(held, of: collection, of: owner)
    }
  }

  private func name(_ collection: App.Collection) -> String { "\(collection) of \(owner.username)" }

  private func validate(query: String = "") async throws -> Answer {
    let stamps = copies.mapValues(\.stamp)
    return try await insist { try await $0.validate(echoing: stamps, query: query) }
  }

  /// Reads a copy that was called fresh again, sometimes with `If-None-Match`.
  private mutating func look(at collection: App.Collection, _ held: HeldCopy) async throws -> HeldCopy {
    history.count { $0.fresh += 1 }
    let path = Phone.wholePath(of: collection)
    if Int.random(in: 0..<4, using: &random) == 0 {
      let answer = try await insist { try await $0.send("GET", path, headers: [held.ifNoneMatch]) }
      guard answer.status == 304 else { return try HeldCopy(collection, answer) }
      history.count { $0.unchanged += 1 }
    }
    return try HeldCopy(collection, try await insist { try await $0.send("GET", path) })
  }

  private func renew(_ collection: App.Collection, _ verdict: HeldVerdict) async throws -> HeldCopy {
    if let items = verdict.items {
      history.count { $0.broughtAlong += 1 }
      return HeldCopy(stamp: verdict.stamp, items: items)
    }
    let path = Phone.wholePath(of: collection)
    let copy = try HeldCopy(collection, try await insist { try await $0.send("GET", path) })
    guard datesLate else { return copy }
    return HeldCopy(stamp: try HeldVerdict(collection, in: try await validate()).stamp, items: copy.items)
  }

  /// Stores a copy. One phone sends its requests one after the other, so its stamps must never go back.
  private mutating func keep(_ copy: HeldCopy, _ collection: App.Collection) {
    if let held = copies[collection], copy.stamp < held.stamp {
      history.report("\(name(collection)): \(copy.stamp) comes after \(held.stamp)")
    }
    history.note(copy, of: collection, of: owner)
    copies[collection] = copy
  }

  private func insist(_ ask: (Phone) async throws -> Answer) async throws -> Answer {
    try await place.insist(owner, ask)
  }
}

/// A few users, their phones, and their concurrent actions.
struct CrowdedWorld: Sendable {
  let app: TestApp
  let cast: [Phone]
  let place: Place
  let history: History
  private static let doersAtOnce = 4

  /// Five friends.
  init(in app: TestApp, _ history: History) async throws {
    self.app = app
    self.history = history
    place = Place(app)
    var cast: [Phone] = []
    for name in ["ana", "ben", "cleo", "dev", "emre"] { cast.append(try await app.signUp(name)) }
    for (index, one) in cast.enumerated() {
      for other in cast.dropFirst(index + 1) { try await app.befriend(one, other) }
    }
    self.cast = cast
  }

  /// Users act, a worker fans out, and phones of each user watch, until the history is over. After that nothing
  /// changes, and all phones must end with the state of the service.
  ///
  /// - Parameters:
  ///   - phonesEach: the number of phones per user.
  ///   - clockIsSet: whether the clock is set back and forth all the time.
  func run(phonesEach: Int = 2, datesLate: Bool = false, clockIsSet: Bool = false) async throws {
    var phones = try await app.withFanOut {
      // A killed service refuses connections at once. The phones then go on to the next one.
      try await app.withConnections(64, isPatient: false) {
        try await live(phonesEach: phonesEach, datesLate: datesLate, clockIsSet: clockIsSet)
      }
    }
    guard history.violations.isEmpty else { return }
    try await app.fanOut()
    for index in phones.indices {
      try await phones[index].round()
      try await phones[index].round(isAtRest: true)
      try await phones[index].catchUp()
      try await phones[index].catchUp(isAtRest: true)
    }
  }

  /// - Returns: the phones, after the history is over.
  private func live(phonesEach: Int, datesLate: Bool, clockIsSet: Bool) async throws -> [CachingPhone] {
    let acts = SharedActs()
    return try await withThrowingTaskGroup(of: CachingPhone?.self) { group in
      for number in 0..<Self.doersAtOnce {
        group.addTask {
          var person = RandomPerson(cast, in: app, at: place, acts, history, seed: UInt64(number))
          while !history.isOver { try await person.act() }
          return nil
        }
      }
      for number in 0..<phonesEach * cast.count {
        group.addTask {
          let owner = cast[number % cast.count]
          var phone = CachingPhone(
            of: owner, at: place, history, seed: UInt64(100 + number), datesLate: datesLate)
          while !history.isOver {
            try await phone.round()
            if !datesLate { try await phone.catchUp() }
          }
          return phone
        }
      }
      if clockIsSet {
        group.addTask {
          while !history.isOver {
            try? await Trouble.setClock(secondsAhead: Int.random(in: -600...600), in: app)
            try await Task.sleep(for: .milliseconds(50))
          }
          return nil
        }
      }
      var phones: [CachingPhone] = []
      for try await phone in group { if let phone { phones.append(phone) } }
      return phones
    }
  }
}
