import Foundation
import TestSupport
import Testing

@testable import App

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
      // A killed service refuses connections immediately. The phones then move to the next one.
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
