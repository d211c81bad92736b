import Foundation

@testable import MusterKit

/// The clock of a phone, which its user sets at any time, in both directions. It remembers what it has told.
final class PhoneClock: Sendable {
  private struct State {
    /// Seconds that the clock is ahead.
    var ahead: TimeInterval = 0
    /// The true times of readings, by the microseconds that were read.
    var readings: [Int64: Date] = [:]
  }

  private let state = Guarded(State())

  var now: Date {
    state.withLock { state in
      let time = Date()
      let reading = time.addingTimeInterval(state.ahead)
      // Another setting may have told the same before.
      let number = Self.microseconds(reading)
      state.readings[number] = state.readings[number] ?? time
      return reading
    }
  }

  /// Sets the clock, relative to the true time.
  func set(ahead: TimeInterval) { state.withLock { $0.ahead = ahead } }

  /// The true time when the clock told a time.
  func trueTime(of reading: Date) -> Date? {
    state.withLock { state in
      let number = Self.microseconds(reading)
      return (-1...1).compactMap { state.readings[number + $0] }.first
    }
  }

  private static func microseconds(_ date: Date) -> Int64 { Int64((date.timeIntervalSince1970 * 1_000_000).rounded()) }
}
