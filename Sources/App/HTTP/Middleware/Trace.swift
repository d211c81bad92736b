import Foundation

/// The trace of W3C Trace Context that a request belongs to. Log lines name it, and the webhooks that follow from the
/// request pass it on.
struct Trace: Sendable, Equatable {
  /// The trace of the request that the task handles.
  @TaskLocal static var current: Trace?

  /// 32 hexadecimal digits.
  let id: String
  /// Two hexadecimal digits, such as `01` for a trace that is recorded.
  let flags: String

  /// - Parameter traceparent: the header. Nil unless it has version 00 and follows the standard to the letter.
  init?(traceparent: String) {
    let bytes = Array(traceparent.utf8)
    guard bytes.count == 55, bytes.starts(with: "00-".utf8), bytes[35] == UInt8(ascii: "-"),
      bytes[52] == UInt8(ascii: "-"), Self.isID(bytes[3..<35]), Self.isID(bytes[36..<52]), Self.isHex(bytes[53...])
    else { return nil }
    id = String(decoding: bytes[3..<35], as: UTF8.self)
    flags = String(decoding: bytes[53...], as: UTF8.self)
  }

  /// - Parameter stored: see ``stored``.
  init?(stored: String) {
    let parts = stored.split(separator: "-")
    guard parts.count == 2, parts[0].utf8.count == 32, parts[1].utf8.count == 2, Self.isID(Array(parts[0].utf8)[...]),
      Self.isHex(Array(parts[1].utf8)[...])
    else { return nil }
    (id, flags) = (String(parts[0]), String(parts[1]))
  }

  /// The form in the database.
  var stored: String { "\(id)-\(flags)" }

  /// The header for a request to another service, as a new child of the trace.
  func traceparent() -> String {
    let parent = String(UInt64.random(in: 1 ... .max), radix: 16)
    return "00-\(id)-\(String(repeating: "0", count: 16 - parent.utf8.count))\(parent)-\(flags)"
  }

  /// Digits that are not all zero.
  private static func isID(_ bytes: ArraySlice<UInt8>) -> Bool {
    isHex(bytes) && bytes.contains { $0 != UInt8(ascii: "0") }
  }

  private static func isHex(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
  }
}
