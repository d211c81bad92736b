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
