import Foundation
import HTTPServer
import Logging
import Synchronization

/// The id that connects a request's response, problem and log line.
enum RequestID {
  /// The client's own id if it is one word of at most 128 bytes, or else a new one.
  static func of(_ request: Request) -> String {
    guard let given = request.headers.value(of: .xRequestID), (1...128).contains(given.utf8.count),
      given.utf8.allSatisfy(isAllowed)
    else { return fresh() }
    return given
  }

  /// Unique within this process, and almost certainly unique across processes.
  static func fresh() -> String {
    String(first &+ count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9e37_79b9_7f4a_7c15, radix: 16)
  }

  private static let first = UInt64.random(in: .min ... .max)
  private static let count = Atomic<UInt64>(0)

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
