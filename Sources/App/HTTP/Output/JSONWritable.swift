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
  func write(to json: inout JSONWriter) { json.raw(self ? "true" : "false") }
}

extension Int: JSONWritable {
  func write(to json: inout JSONWriter) { json.raw(String(self)) }
}

extension Double: JSONWritable {
  /// JSON has no infinity. The rules on input keep it out.
  func write(to json: inout JSONWriter) { json.raw(isFinite ? "\(self)" : "null") }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
  func write(to json: inout JSONWriter) {
    if let self { self.write(to: &json) } else { json.raw("null") }
  }
}

extension Array: JSONWritable where Element: JSONWritable {
  func write(to json: inout JSONWriter) { json.array(self) }
}

extension Identifier: JSONWritable {
  func write(to json: inout JSONWriter) {
    withUnsafeBytes(of: rawValue.uuid) { bytes in
      // One append: a call for each digit takes a tenth of the time of a list.
      json.raw(atMost: 38) { text in
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
        var count = 0
        func put(_ character: UInt8) {
          text[count] = character
          count += 1
        }
        put(UInt8(ascii: "\""))
        for (index, byte) in bytes.enumerated() {
          if index == 4 || index == 6 || index == 8 || index == 10 { put(UInt8(ascii: "-")) }
          put(digit(byte >> 4))
          put(digit(byte & 15))
        }
        put(UInt8(ascii: "\""))
        return count
      }
    }
  }
}

/// RFC 3339 in UTC with whole seconds, as Apple's `.iso8601` strategy reads it.
extension Timestamp: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.raw("\"")
    json.raw(atMost: Self.longestRFC3339) { writeRFC3339(to: $0) }
    json.raw("\"")
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
