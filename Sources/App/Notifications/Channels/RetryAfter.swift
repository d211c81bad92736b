import Foundation
import NIOHTTP1
import Postgres

extension DeliveryFailure.Remedy {
  /// Nobody makes a notification wait for longer than this, in seconds.
  private static let longestPause = 3600

  /// Another attempt, not before the other side wants it by its `Retry-After`: so many seconds, or a date.
  static func later(_ headers: HTTPHeaders, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    guard let text = headers.first(name: "Retry-After")?.trimmingCharacters(in: .whitespaces) else {
      return .later(seconds: nil)
    }
    var seconds = Int(text)
    if let date = Timestamp(httpDate: text) { seconds = Int((date.microseconds - now.microseconds) / 1_000_000) }
    guard let seconds, seconds > 0 else { return .later(seconds: nil) }
    return .later(seconds: min(seconds, longestPause))
  }
}

extension Timestamp {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Reads a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
  init?(httpDate text: String) {
    guard let match = text.wholeMatch(of: /[A-Za-z]{3}, (\d\d) ([A-Za-z]{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT/),
      let index = Self.months.firstIndex(of: String(match.output.2))
    else { return nil }
    let month = index < 9 ? "0\(index + 1)" : "\(index + 1)"
    self.init(rfc3339: "\(match.output.3)-\(month)-\(match.output.1)T\(match.output.4)Z")
  }
}

extension OutgoingAnswer {
  /// A word of a provider's, for the log; nil for anything that looks like more than that.
  static func word(_ value: JSON?) -> String? {
    guard case .string(let text) = value, text.wholeMatch(of: /[A-Za-z_]{1,60}/) != nil else { return nil }
    return text
  }
}

extension JSON: JSONWritable {
  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.raw("null")
    case .bool(let value): value.write(to: &json)
    case .number(let text): json.raw(text)
    case .string(let text): json.string(text)
    case .array(let elements): json.array(elements)
    case .object(let members):
      json.object { object in
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
          object.member(name: name) { value.write(to: &$0) }
        }
      }
    }
  }
}
