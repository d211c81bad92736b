import Foundation
import Postgres

/// A value that can be part of a response.
protocol JSONWritable {
  func write(to json: inout JSONWriter)
}

extension String: JSONWritable {
  func write(to json: inout JSONWriter) { json.string(self) }
}

extension JSONWritable where Self: RawRepresentable, RawValue == String {
  func write(to json: inout JSONWriter) { json.string(rawValue) }
}

extension Bool: JSONWritable {
  func write(to json: inout JSONWriter) { json.literal(self ? "true" : "false") }
}

extension Int: JSONWritable {
  func write(to json: inout JSONWriter) { json.integer(self) }
}

extension Double: JSONWritable {
  /// JSON has no infinity. The rules on input keep it out.
  func write(to json: inout JSONWriter) { json.raw(isFinite ? description : "null") }
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
      let digits = ("0123456789abcdef" as StaticString).utf8Start
      text[0] = UInt8(ascii: "\"")
      var place = text + 1
      withUnsafeBytes(of: rawValue.uuid) { bytes in
        for index in 0..<16 {
          if index == 4 || index == 6 || index == 8 || index == 10 {
            place[0] = UInt8(ascii: "-")
            place += 1
          }
          place[0] = digits[Int(bytes[index] >> 4)]
          place[1] = digits[Int(bytes[index] & 15)]
          place += 2
        }
      }
      place[0] = UInt8(ascii: "\"")
      return place + 1 - text
    }
  }
}

/// RFC 3339 in UTC with whole seconds, as Apple's `.iso8601` strategy reads it.
extension Timestamp: JSONWritable {
  func write(to json: inout JSONWriter) { json.time(self) }
}

/// A document of the database.
extension JSONDocument: JSONWritable {
  func write(to json: inout JSONWriter) { json.raw(text) }
}

/// A value that is already written.
struct WrittenJSON<Bytes: ContiguousBytes>: JSONWritable {
  let bytes: Bytes

  func write(to json: inout JSONWriter) {
    bytes.withUnsafeBytes { json.raw($0.assumingMemoryBound(to: UInt8.self)) }
  }
}

/// A word that comes as text, from the database or from a table.
struct Word: RawRepresentable {
  let rawValue: String
}

extension FieldError: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.fieldError(field: field, code: code, message: message)
  }
}

extension JSON: JSONWritable {
  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.literal("null")
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
