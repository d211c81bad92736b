import Foundation
import HTTPTypes
import Synchronization

/// The current time in the format that RFC 9110 requires, formatted once per second.
final class DateHeader: Sendable {
  private let current = Mutex((second: time_t(0), text: ""))

  var field: HTTPField {
    let now = time(nil)
    let text = current.withLock { current in
      if current.second != now { current = (now, Self.text(of: now)) }
      return current.text
    }
    return HTTPField(name: .date, value: text)
  }

  private static func text(of second: time_t) -> String {
    var second = second
    var parts = tm()
    gmtime_r(&second, &parts)
    return String(unsafeUninitializedCapacity: 32) {
      strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    }
  }
}
