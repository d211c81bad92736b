import Foundation
import NIOHTTP1
import Postgres

extension DeliveryFailure.Remedy {
  /// No receiver can delay a notification for longer than this, in seconds.
  private static let longestPause = 3600

  /// Another attempt, no earlier than the `Retry-After` header asks for, in seconds or as a date.
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
