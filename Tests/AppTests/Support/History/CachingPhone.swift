import Foundation
import TestSupport
import Testing

@testable import App

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
  /// The same, by parts.
  private var parts: [App.Collection: PartsCopy] = [:]

  init(of owner: Phone, at place: Place, _ history: History, seed: UInt64, datesLate: Bool = false) {
    self.owner = owner
    self.place = place
    self.history = history
    self.datesLate = datesLate
    random = SeededRandom(seed: seed)
  }

  /// Validates all copies, and checks each.
  ///
  /// - Parameter isAtRest: whether nothing changes from now on, so that all copies must be current.
  mutating func round(isAtRest: Bool = false) async throws {
    let includesItems = !datesLate && Int.random(in: 0..<5, using: &random) < 2
    let response = try await validate(query: includesItems ? "?include=items" : "")
    for collection in Phone.everyCollection {
      let verdict = try HeldVerdict(collection, in: response)
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
  /// - Parameter isAtRest: whether nothing changes from now on, so that all copies must be current.
  mutating func catchUp(isAtRest: Bool = false) async throws {
    let claims = Phone.claims(deltas)
    let response = try await insist { try await $0.send("POST", "cache/validate/\($0.id)?include=changes", claims) }
    for (name, text) in try RawJSON.members(of: response.body) {
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
        let response = try await insist { try await $0.send("GET", Phone.wholePath(of: collection)) }
        let now = try HeldCopy(collection, response)
        if held != now { history.report("\(self.name(collection)): at rest, \(held) is held, but \(now) is right") }
      }
      history.note(held, of: collection, of: owner)
    }
    try await catchUpByParts(isAtRest: isAtRest)
  }

  /// The same by parts. Between two verdicts on a long list, it may change.
  private mutating func catchUpByParts(isAtRest: Bool) async throws {
    var (open, rounds) = (Phone.everyCollection, 0)
    repeat {
      let claims = Phone.claims(parts, of: open)
      let response = try await insist { try await $0.send("POST", "cache/validate/\($0.id)?include=changes", claims) }
      for (name, text) in try RawJSON.members(of: response.body) {
        guard let collection = App.Collection(rawValue: name) else { throw Unexpected(text) }
        let verdict = try RawJSON.members(of: text)
        if verdict["invalidate"] == "true" {
          if isAtRest { history.report("\(self.name(collection)): \(text) although at rest") }
          try parts[collection, default: PartsCopy()].apply(verdict)
          history.count { $0.changed += 1 }
        }
        guard let held = parts[collection]?.held else { continue }
        if isAtRest {
          let now = try HeldCopy(
            collection, try await insist { try await $0.send("GET", Phone.wholePath(of: collection)) })
          if held != now { history.report("\(self.name(collection)): at rest, \(held) is held, but \(now) is right") }
        }
        history.note(held, of: collection, of: owner)
      }
      open.removeAll { parts[$0]?.held != nil }
      rounds += 1
    } while !open.isEmpty && (rounds < 4 || history.isOver && rounds < 1000)
    if history.isOver, !open.isEmpty { history.report("\(open) of \(owner.username) never end") }
  }

  private func name(_ collection: App.Collection) -> String { "\(collection) of \(owner.username)" }

  private func validate(query: String = "") async throws -> APIResponse {
    let stamps = copies.mapValues(\.stamp)
    return try await insist { try await $0.validate(echoing: stamps, query: query) }
  }

  /// Reads a copy that was called fresh again, sometimes with `If-None-Match`.
  private mutating func look(at collection: App.Collection, _ held: HeldCopy) async throws -> HeldCopy {
    history.count { $0.fresh += 1 }
    let path = Phone.wholePath(of: collection)
    if Int.random(in: 0..<4, using: &random) == 0 {
      let response = try await insist { try await $0.send("GET", path, headers: [held.ifNoneMatch]) }
      guard response.status == 304 else { return try HeldCopy(collection, response) }
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

  private func insist(_ ask: (Phone) async throws -> APIResponse) async throws -> APIResponse {
    try await place.insist(owner, ask)
  }
}
