import Foundation
import Synchronization

/// The current time in the format that RFC 9110 requires, formatted once per second.
final class DateHeader: Sendable {
  private let current = Mutex((second: time_t(0), text: ""))

  var text: String {
    var now = time(nil)
    return current.withLock { current in
      if current.second != now {
        var parts = tm()
        gmtime_r(&now, &parts)
        let text = String(unsafeUninitializedCapacity: 32) {
          strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        }
        current = (now, text)
      }
      return current.text
    }
  }
}
