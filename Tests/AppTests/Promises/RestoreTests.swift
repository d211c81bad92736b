import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Replaces today's database with yesterday's dump. Copies that the dump undoes are stale, and all others stay fresh.
@Suite struct RestoreTests {
  @Test func `a restored dump makes exactly those copies stale that it has undone`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let phones = [people.ana] + people.others
      let yesterdays = try await copies(of: phones)
      let yesterdaysDeltas = try await caughtUp([:], phones)
      let yesterdaysParts = try await caughtUpByParts([:], phones)
      let dump = FileManager.default.temporaryDirectory.appending(path: "muster-\(UUID().uuidString).dump").path
      defer { try? FileManager.default.removeItem(atPath: dump) }
      try await run("pg_dump", "--format=custom", "--file=\(dump)", "--dbname=\(app.databaseURL)", for: app)

      // A day of changes. The last one restores yesterday's value.
      try await people.ana.editProfile(#"{"displayName": "Anita"}"#)
      try await people.ben.edit(people.bensEvent, #"{"title": "Brunch"}"#)
      try await people.gil.answer("going", to: people.bensEvent)
      try await people.cleo.block(people.finn)
      try await people.hugo.editProfile(#"{"bio": "New"}"#)
      try await people.hugo.editProfile(#"{"bio": null}"#)
      try await app.takeNotifications()
      let todays = try await copies(of: phones)
      #expect(todays != yesterdays)
      let todaysDeltas = try await caughtUp(yesterdaysDeltas, phones)
      let todaysParts = try await caughtUpByParts(yesterdaysParts, phones)

      try await TestCluster.withDatabase { restoredURL in
        try await run("pg_restore", "--no-owner", "--exit-on-error", "--dbname=\(restoredURL)", dump, for: app)
        let service = try await ServiceProcess(of: app, databaseURL: restoredURL)
        defer { service.program.signal(SIGKILL) }
        let place = Place(service.app)
        for phone in phones {
          let restored = place.phone(of: phone)
          for (day, copies) in [("yesterday", yesterdays), ("today", todays)] {
            let held = copies[phone.username] ?? [:]
            let stale = try await restored.stale(held.mapValues(\.stamp))
            for (collection, copy) in held {
              let what = "\(collection) of \(phone.username) of \(day)"
              let now = try await restored.copy(of: collection)
              #expect(stale.contains(collection) == (copy.stamp != now.stamp), "\(what)")
              // A different copy is never called fresh, and an unchanged one always is.
              if !stale.contains(collection) { #expect(now.items == copy.items, "\(what)") }
              let wasUndone = copy != yesterdays[phone.username]?[collection]
              #expect(stale.contains(collection) == wasUndone, "\(what)")
            }
          }
        }
        // By what has changed, copies of either day become what the service has now.
        for (deltas, parts) in [(yesterdaysDeltas, yesterdaysParts), (todaysDeltas, todaysParts)] {
          let restored = try await caughtUp(deltas, phones.map { place.phone(of: $0) })
          let restoredParts = try await caughtUpByParts(parts, phones.map { place.phone(of: $0) })
          for phone in phones {
            for (collection, copy) in restored[phone.username] ?? [:] {
              let now = try await place.phone(of: phone).copy(of: collection)
              #expect(copy.held == now, "\(collection) of \(phone.username)")
              #expect(restoredParts[phone.username]?[collection]?.held == now, "\(collection) of \(phone.username)")
            }
          }
        }
        // After the restore, no new stamp equals a stamp from before it.
        let ana = place.phone(of: people.ana)
        let stamps = todays["ana"]?.mapValues(\.stamp) ?? [:]
        try await ana.editProfile(#"{"displayName": "Anita"}"#)
        #expect(try await ana.stale(stamps).isSuperset(of: [.profile, .friendRequests, .sentFriendRequests, .events]))
      }
      try await app.takeNotifications()
    }
  }

  private func copies(of phones: [Phone]) async throws -> [String: [App.Collection: HeldCopy]] {
    var copies: [String: [App.Collection: HeldCopy]] = [:]
    for phone in phones {
      for collection in Phone.everyCollection {
        copies[phone.username, default: [:]][collection] = try await phone.copy(of: collection)
      }
    }
    return copies
  }

  /// Copies by username that are brought up to date by what has changed.
  private func caughtUp(
    _ deltas: [String: [App.Collection: DeltaCopy]], _ phones: [Phone]
  ) async throws -> [String: [App.Collection: DeltaCopy]] {
    var deltas = deltas
    for phone in phones { try await phone.catchUp(&deltas[phone.username, default: [:]]) }
    return deltas
  }

  private func caughtUpByParts(
    _ parts: [String: [App.Collection: PartsCopy]], _ phones: [Phone]
  ) async throws -> [String: [App.Collection: PartsCopy]] {
    var parts = parts
    for phone in phones { try await phone.catchUp(&parts[phone.username, default: [:]]) }
    return parts
  }

  /// Runs a program from the server's installation.
  private func run(_ program: String, _ arguments: String..., for app: TestApp) async throws {
    let folder: String? = try await app.value("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    let path = try #require(folder) + "/" + program
    let process = try await Program(path, arguments)
    #expect(try await process.exitStatus() == 0, "\(process.standardError)")
  }
}
