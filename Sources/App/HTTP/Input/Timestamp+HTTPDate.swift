import Foundation
import Postgres

extension Timestamp {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Parses a date in HTTP's format: `Sun, 06 Nov 1994 08:49:37 GMT`.
  init?(httpDate text: String) {
    guard let match = text.wholeMatch(of: /[A-Za-z]{3}, (\d\d) ([A-Za-z]{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT/),
      let index = Self.months.firstIndex(of: String(match.output.2))
    else { return nil }
    let month = index < 9 ? "0\(index + 1)" : "\(index + 1)"
    self.init(rfc3339: "\(match.output.3)-\(month)-\(match.output.1)T\(match.output.4)Z")
  }

  /// The time in that format.
  var httpDate: String {
    var seconds = time_t(microseconds / 1_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    return String(unsafeUninitializedCapacity: 32) {
      strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    }
  }
}
