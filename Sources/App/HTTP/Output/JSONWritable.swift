import Foundation
import Postgres

/// A value that can be part of a response.
protocol JSONWritable {
  func write(to json: inout JSONWriter)
}

extension String: JSONWritable {
  func write(to json: inout JSONWriter) { json.string(self) }
}

extension Bool: JSONWritable {
  func write(to json: inout JSONWriter) { json.literal(self ? "true" : "false") }
}

extension Int: JSONWritable {
  func write(to json: inout JSONWriter) { json.integer(self) }
}

extension Double: JSONWritable {
  /// JSON has no infinity. The rules on input keep it out.
  func write(to json: inout JSONWriter) { json.raw(isFinite ? "\(self)" : "null") }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
  func write(to json: inout JSONWriter) {
    if let self { self.write(to: &json) } else { json.literal("null") }
  }
}

extension Array: JSONWritable where Element: JSONWritable {
  func write(to json: inout JSONWriter) { json.array(self) }
}

extension Identifier: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.raw(atMost: 38) { text in
      var place = 0
      func put(_ character: UInt8) {
        text[place] = character
        place += 1
      }
      func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) }
      put(UInt8(ascii: "\""))
      withUnsafeBytes(of: rawValue.uuid) { bytes in
        for index in 0..<16 {
          if index == 4 || index == 6 || index == 8 || index == 10 { put(UInt8(ascii: "-")) }
          put(digit(bytes[index] >> 4))
          put(digit(bytes[index] & 15))
        }
      }
      put(UInt8(ascii: "\""))
      return place
    }
  }
}

/// RFC 3339 in UTC with whole seconds, as Apple's `.iso8601` strategy reads it.
extension Timestamp: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.literal("\"")
    json.raw(atMost: Self.longestRFC3339) { writeRFC3339(to: $0) }
    json.literal("\"")
  }
}

extension FieldError: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("field", field)
      $0.member("code", code.rawValue)
      $0.member("message", message)
    }
  }
}
