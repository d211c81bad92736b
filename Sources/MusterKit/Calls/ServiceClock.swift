import Foundation

/// The service's time, from the `Date` of its responses. Between them, a clock runs on that no one can set, so the
/// device's time of day does not matter.
final class ServiceClock: Sendable {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private let latest = Guarded<(time: Date, at: ContinuousClock.Instant)?>(nil)

  /// The time, or a few seconds less. Nil before the first response.
  var now: Date? {
    latest.withLock { latest in
      latest.map { $0.time.addingTimeInterval((ContinuousClock.now - $0.at) / .seconds(1)) }
    }
  }

  /// Reads a response. One that does not come from Muster does not count.
  func read(_ response: TransportResponse, of outcome: Outcome) {
    switch outcome {
    case .success, .problem: break
    case .foreign, .lost, .unsent: return
    }
    guard let time = response.headers["date"].flatMap(Self.date) else { return }
    latest.withLock { $0 = (time, .now) }
  }

  /// A time as a response has it, for previews and tests.
  static func text(_ date: Date) -> String {
    let text = Array(WireTime.text(date))
    let month = months[(Int(String(text[5...6])) ?? 1) - 1]
    // No reader needs the day of the week.
    return "Mon, \(String(text[8...9])) \(month) \(String(text[0...3])) \(String(text[11...18])) GMT"
  }

  /// Reads a time such as `Fri, 01 May 2026 09:30:00 GMT`.
  static func date(_ header: String) -> Date? {
    let words = header.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", words[1].count == 2, let month = months.firstIndex(of: String(words[2]))
    else { return nil }
    let number = String(month + 101).dropFirst()
    return WireTime.date("\(words[3])-\(number)-\(words[1])T\(words[4])Z")
  }
}
