import Foundation
import Postgres
import Synchronization

/// The current time in the format that RFC 9110 requires, formatted once per second.
final class DateHeader: Sendable {
  private let current = Mutex((second: time_t(0), text: ""))

  var text: String {
    let now = time(nil)
    return current.withLock { current in
      if current.second != now { current = (now, Timestamp(microseconds: Int64(now) * 1_000_000).httpDate) }
      return current.text
    }
  }
}
