import Foundation
import TestSupport
import Testing
@testable import App

@Suite struct JSONReaderTests {
  private func parse(_ text: String) throws(JSON.Malformed) -> JSON { try JSON(parsing: text.utf8) }

  private func nested(_ depth: Int, _ open: String, _ inside: String, _ close: String) -> String {
    String(repeating: open, count: depth) + inside + String(repeating: close, count: depth)
  }

  private func expectRefused(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
    expectRefused(Array(text.utf8), sourceLocation: sourceLocation)
  }

  private func expectRefused(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(
      throws: JSON.Malformed.self, "\(String(decoding: bytes.prefix(200), as: UTF8.self))",
      sourceLocation: sourceLocation
    ) {
      try JSON(parsing: bytes)
    }
  }

  @Test func `a document becomes a tree`() throws {
    let json = try parse(
      #" {"a": [1, -2.5e+3, true, false, null, "x"], "b": {"c": {}}, "": [], "\u00e9\ud83d\ude00\n\/": "\"\\\b\f\r\t"}"#
    )
    #expect(
      json
        == .object([
          "a": .array([.number("1"), .number("-2.5e+3"), .bool(true), .bool(false), .null, .string("x")]),
          "b": .object(["c": .object([:])]), "": .array([]), "é😀\n/": .string("\"\\\u{8}\u{c}\r\t"),
        ]))
  }

  @Test(arguments: [
    "null", " null", "\t\r\n null \n", "5", "\"\"", "[]", "{}", "[ ]", "{ }", "-0", "0.0", "1E5", "1e-05",
  ])
  func `a value may stand alone, with space around it`(_ text: String) {
    #expect(throws: Never.self) { try parse(text) }
  }

  @Test(arguments: [("[", "1", "]"), (#"{"a":"#, "1", "}"), (#"[{"a":"#, "1", "}]")])
  func `thirty-two levels are allowed, and one more is refused`(_ open: String, _ inside: String, _ close: String) {
    let levels = open.hasPrefix("[{") ? 16 : 32
    #expect(throws: Never.self) { try parse(nested(levels, open, inside, close)) }
    expectRefused(nested(levels + 1, open, inside, close))
  }

  @Test func `a thirty-third level is refused even if it is empty`() {
    #expect(throws: Never.self) { try parse(nested(31, "[", "{}", "]")) }
    expectRefused(nested(32, "[", "{}", "]"))
    expectRefused(nested(32, #"{"a":"#, "[]", "}"))
  }

  @Test(arguments: ["[", #"{"a":"#, "[[],", #"{"a":1,"b":"#])
  func `a hundred thousand brackets are refused without a crash`(_ open: String) {
    expectRefused(String(repeating: open, count: 100_000))
  }

  @Test func `siblings do not count as levels`() throws {
    let wide = "[" + Array(repeating: #"[[{"a":[1]}]]"#, count: 5000).joined(separator: ",") + "]"
    #expect(try parse(wide).array.count == 5000)
  }

  @Test(arguments: [
    #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"{"\u0061":1,"a":1}"#, #"{"x":{"a":1,"b":2,"a":1}}"#, #"[{"":1,"":1}]"#,
    #"{"a\/b":1,"a/b":2}"#, #"{"\ud83d\ude00":1,"😀":2}"#,
  ])
  func `a key that occurs twice in one object is refused, however it is spelled`(_ text: String) {
    expectRefused(text)
  }

  @Test func `a key may occur again in a nested object, or with different case`() {
    #expect(throws: Never.self) { try parse(#"{"a":{"a":{"a":1}},"A":[{"a":1},{"a":2}]}"#) }
  }

  @Test(arguments: ["\"a\u{0}b\"", #""\u0000""#, #""a\u0000""#, #"{"\u0000":1}"#, "{\"\u{0}\":1}", "\u{0}", "1\u{0}"])
  func `U+0000 is refused, raw and escaped`(_ text: String) {
    expectRefused(text)
  }

  @Test(arguments: 1..<UInt8(0x20))
  func `control characters must be escaped`(_ byte: UInt8) throws {
    expectRefused([0x22, byte, 0x22])
    let digits = String(byte, radix: 16)
    let escaped = "\"\\u00\(byte < 16 ? "0" : "")\(digits)\""
    #expect(try parse(escaped) == .string(String(Unicode.Scalar(byte))))
  }

  @Test(arguments: [
    [0xff], [0x80], [0xc3], [0xc3, 0x28], [0xc0, 0x80], [0xc0, 0xaf], [0xe2, 0x82], [0xe0, 0x80, 0xaf],
    [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80],
  ])
  func `bytes that are not UTF-8 are refused in strings, in keys and between them`(_ bytes: [UInt8]) {
    expectRefused([0x22] + bytes + [0x22])
    expectRefused(Array(#"{"\n"#.utf8) + bytes + Array(#"":1}"#.utf8))
    expectRefused(bytes)
    expectRefused(Array("[1,".utf8) + bytes + Array("]".utf8))
  }

  @Test func `a byte order mark is refused`() {
    expectRefused("\u{feff}{}")
  }

  @Test(arguments: [
    #""\ud83d""#, #""\ude00""#, #""\ude00\ud83d""#, #""\ud83d\u0041""#, #""\ud83dx""#, #""\ud83d\n""#,
    #""\ud83d\ud83d\ude00""#, #""\ud83d\"#, #""\ud83d\u"#, #""\ud83d\ude0"#, #"{"\udc00":1}"#,
  ])
  func `half a surrogate pair is refused`(_ text: String) {
    expectRefused(text)
  }

  @Test(arguments: [
    #""\x""#, #""\u12""#, #""\u 123""#, #""\u+123""#, #""\u12g4""#, #""\U0041""#, #""\'""#, "\"\\\n\"", #""\uー123""#,
  ])
  func `escapes that JSON does not have are refused`(_ text: String) {
    expectRefused(text)
  }

  @Test(arguments: [
    "01", "00", "-01", "1.", ".5", "-.5", "-", "--1", "+1", "1e", "1e+", "1E-", "1.e5", "1.5.5", "0x10", "1_000",
    "NaN", "Infinity", "-Infinity", "1e5.5", "١",
  ])
  func `numbers that JSON does not allow are refused`(_ text: String) {
    expectRefused(text)
    expectRefused("[\(text)]")
    expectRefused(#"{"a":\#(text)}"#)
  }

  @Test func `a number of any size is valid JSON, and a rule refuses one that it cannot represent`() throws {
    let long = String(repeating: "9", count: 10_000)
    for text in ["1e400", "-1e400", "1e-400", "1e99999999999999999999", long, "0.\(long)"] {
      #expect(try parse(text) == .number(text))
    }
    #expect(throws: Fields.Broken.self) { try Fields.Rule<Double>.number(-90...90).read(.number("1e400")) }
    #expect(throws: Fields.Broken.self) { try Fields.Rule<Int>.integer(1...10).read(.number(long)) }
    for whole in ["5", "5.0", "0.5e1"] {
      #expect(try Fields.Rule<Int>.integer(1...10).read(.number(whole)) == 5)
    }
    for broken in ["5.5", "11.0", "1e400", "-5.0"] {
      #expect(throws: Fields.Broken.self) { try Fields.Rule<Int>.integer(1...10).read(.number(broken)) }
    }
    #expect(try Fields.Rule<Double>.number(-90...90).read(.number("1e-400")) == 0)
  }

  @Test(arguments: [
    "", " ", "\n", "{} {}", "{},", "[1] x", "1 2", "null,", "nul", "nulll", "True", "tru", "'a'", "undefined", "[1,]",
    "[,1]", "[1 2]", #"{"a":1,}"#, #"{,"a":1}"#, #"{"a" 1}"#, #"{"a":}"#, #"{a:1}"#, #"{1:1}"#, #"{"a":1 "b":2}"#,
    "[1}", #"{"a":1]"#, "]", "}", ":", ",", "\"", "\"abc", "[1] // one", "/* */ 1", "\u{b}1", "\u{a0}1",
    "[1\u{2028}]",
  ])
  func `text that is not JSON is refused`(_ text: String) {
    expectRefused(text)
  }

  private static let sample = Array(
    #"{"title":"Pic\u006eic \ud83d\ude00 é😀","list":[1,-2.5e-3,true,false,null,{"a":{}},[[]]],"q":"\"\\\/\b\f\n\r\t"}"#
      .utf8)

  @Test func `a document cut off after any byte is refused`() {
    #expect(throws: Never.self) { try JSON(parsing: Self.sample) }
    for length in 0..<Self.sample.count { expectRefused(Array(Self.sample.prefix(length))) }
  }

  @Test func `a document with any byte replaced is refused or survives a round trip`() throws {
    for index in Self.sample.indices {
      for byte: UInt8 in [0, 0x0a, 0x20, 0x22, 0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d, 0x30, 0x75, 0x80, 0xc3, 0xed, 0xff] {
        var bytes = Self.sample
        bytes[index] = byte
        guard let json = try? JSON(parsing: bytes) else { continue }
        #expect(try JSON(parsing: written(json).utf8) == json)
      }
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `random mixtures of JSON tokens are accepted only if Foundation accepts them`(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let pieces = [
      "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\"", "1", "-", "0", ".5", "e3", "true", "null", " ", "\\",
      "\\u00", "41", "\\ud83d", "\\ude00", "é",
    ]
    for _ in 0..<5000 {
      let count = Int.random(in: 1...12, using: &random)
      let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      guard (try? parse(text)) != nil else { continue }
      #expect(throws: Never.self, "seed \(seed): \(text)") {
        try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      }
    }
  }
}
