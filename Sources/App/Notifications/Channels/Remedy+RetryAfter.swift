import Foundation
import NIOHTTP1
import Postgres

extension DeliveryFailure.Remedy {
  /// No receiver can delay a notification for longer than this, in seconds.
  private static let longestPause = 3600

  /// Another attempt, no earlier than the `Retry-After` header asks for, in seconds or as a date.
  static func later(_ headers: HTTPHeaders, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    .later(seconds: pause(headers, now: now))
  }

  private static func pause(_ headers: HTTPHeaders, now: Timestamp) -> Int? {
    guard let text = headers.first(name: "Retry-After")?.trimmingCharacters(in: .whitespaces) else { return nil }
    var seconds = Int(text)
    if let date = Timestamp(httpDate: text) { seconds = Int((date.microseconds - now.microseconds) / 1_000_000) }
    guard let seconds, seconds > 0 else { return nil }
    return min(seconds, longestPause)
  }

  /// Another attempt after a response of Apple or Google. Without `Retry-After`, Google asks for 60 seconds after 429,
  /// and for at least 10 after an error of its own. Apple names no times, so the same ones do for it.
  static func later(_ response: OutgoingResponse, now: Timestamp = .now()) -> DeliveryFailure.Remedy {
    let minimum: Int? =
      switch response.status {
      case 429: 60
      case 500...: 10
      default: nil
      }
    return .later(seconds: pause(response.headers, now: now) ?? minimum)
  }
}
