import Foundation
import NIOCore
import Postgres
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
  func `thirty-two levels are enough`(_ open: String, _ inside: String, _ close: String) {
    let levels = open.hasPrefix("[{") ? 16 : 32
    #expect(throws: Never.self) { try parse(nested(levels, open, inside, close)) }
    expectRefused(nested(levels + 1, open, inside, close))
  }

  @Test func `the innermost of thirty-three levels may not even be an empty object`() {
    #expect(throws: Never.self) { try parse(nested(31, "[", "{}", "]")) }
    expectRefused(nested(32, "[", "{}", "]"))
    expectRefused(nested(32, #"{"a":"#, "[]", "}"))
  }

  @Test(arguments: ["[", #"{"a":"#, "[[],", #"{"a":1,"b":"#])
  func `a hundred thousand brackets are refused and nothing falls over`(_ open: String) {
    expectRefused(String(repeating: open, count: 100_000))
  }

  @Test func `siblings are not levels`() throws {
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

  @Test func `a key may occur in an object and in one inside it, and in either case of a letter`() {
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
  func `what is not UTF-8 is refused, in strings and keys and between them`(_ bytes: [UInt8]) {
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
  func `numbers are spelled as JSON spells them`(_ text: String) {
    expectRefused(text)
    expectRefused("[\(text)]")
    expectRefused(#"{"a":\#(text)}"#)
  }

  @Test func `a number of any size is JSON, and is no number for a rule that cannot hold it`() throws {
    let long = String(repeating: "9", count: 10_000)
    for text in ["1e400", "-1e400", "1e-400", "1e99999999999999999999", long, "0.\(long)"] {
      #expect(try parse(text) == .number(text))
    }
    #expect(throws: Fields.Broken.self) { try Fields.Rule<Double>.number(-90...90).read(.number("1e400")) }
    #expect(throws: Fields.Broken.self) { try Fields.Rule<Int>.integer(1...10).read(.number(long)) }
    #expect(throws: Fields.Broken.self) { try Fields.Rule<Int>.integer(1...10).read(.number("5.0")) }
    #expect(try Fields.Rule<Double>.number(-90...90).read(.number("1e-400")) == 0)
  }

  @Test(arguments: [
    "", " ", "\n", "{} {}", "{},", "[1] x", "1 2", "null,", "nul", "nulll", "True", "tru", "'a'", "undefined", "[1,]",
    "[,1]", "[1 2]", #"{"a":1,}"#, #"{,"a":1}"#, #"{"a" 1}"#, #"{"a":}"#, #"{a:1}"#, #"{1:1}"#, #"{"a":1 "b":2}"#,
    "[1}", #"{"a":1]"#, "]", "}", ":", ",", "\"", "\"abc", "[1] // one", "/* */ 1", "\u{b}1", "\u{a0}1",
    "[1\u{2028}]",
  ])
  func `what is not JSON is refused`(_ text: String) {
    expectRefused(text)
  }

  private static let sample = Array(
    #"{"title":"Pic\u006eic \ud83d\ude00 é😀","list":[1,-2.5e-3,true,false,null,{"a":{}},[[]]],"q":"\"\\\/\b\f\n\r\t"}"#
      .utf8)

  @Test func `a document cut off after any byte is refused`() {
    #expect(throws: Never.self) { try JSON(parsing: Self.sample) }
    for length in 0..<Self.sample.count { expectRefused(Array(Self.sample.prefix(length))) }
  }

  @Test func `a document with any byte exchanged is read or refused, and what is read can be written`() throws {
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
  func `random mixtures of JSON's pieces are read or refused as Foundation does, or more strictly`(_ seed: UInt64) {
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

/// A tree, written.
private func written(_ json: JSON) -> String {
  var writer = JSONWriter()
  Tree(json: json).write(to: &writer)
  return writer.text
}

private struct Tree: JSONWritable {
  let json: JSON

  func write(to writer: inout JSONWriter) {
    switch json {
    case .null: writer.raw("null")
    case .bool(let value): value.write(to: &writer)
    case .number(let text): writer.raw(text)
    case .string(let text): text.write(to: &writer)
    case .array(let elements): writer.array(elements.map(Tree.init))
    case .object(let members):
      writer.object { object in
        for (name, value) in members { object.member(name: name) { Tree(json: value).write(to: &$0) } }
      }
    }
  }
}

@Suite struct JSONWriterTests {
  private func text(_ value: some JSONWritable) -> String {
    var writer = JSONWriter()
    value.write(to: &writer)
    return writer.text
  }

  @Test func `quotes, backslashes and control characters are escaped, and nothing else`() {
    #expect(text("a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}") == #""a\"b\\c\n\r\t\u0008\u000c\u0001\u001f""#)
    #expect(text("é😀/'<>&\u{7f}\u{2028}\u{feff}") == "\"é😀/'<>&\u{7f}\u{2028}\u{feff}\"")
    #expect(text("") == "\"\"")
  }

  @Test func `every character up to U+00FF comes back, alone and between others`() throws {
    for code in UInt8.min ... .max {
      let character = String(Unicode.Scalar(code))
      for original in [character, "a\(character)b", "\(character)\(character)"] {
        let json = Data(text([original]).utf8)
        #expect(try JSONSerialization.jsonObject(with: json) as? [String] == [original], "U+\(String(code, radix: 16))")
        // The one character that is never taken in.
        guard code != 0 else { continue }
        #expect(try JSON(parsing: json) == .array([.string(original)]), "U+\(String(code, radix: 16))")
      }
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `random trees come back from our reader and from Foundation's`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<300 {
      let tree = Self.tree(depth: 0, &random)
      let text = written(tree)
      #expect(try JSON(parsing: text.utf8) == tree, "seed \(seed): \(text)")
      let foundations = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
      let again = try JSONSerialization.data(withJSONObject: foundations, options: .fragmentsAllowed)
      #expect(try JSON(parsing: again) == tree, "seed \(seed): \(text)")
    }
  }

  private static func tree(depth: Int, _ random: inout SeededRandom) -> JSON {
    switch Int.random(in: 0...(depth < 6 ? 7 : 4), using: &random) {
    case 0: .null
    case 1: .bool(.random(using: &random))
    case 2: .number(String(Int.random(in: -1_000_000...1_000_000, using: &random)))
    case 3, 4: .string(string(&random))
    case 5: .array((0..<Int.random(in: 0...4, using: &random)).map { _ in tree(depth: depth + 1, &random) })
    default:
      .object(
        (0..<Int.random(in: 0...4, using: &random)).reduce(into: [:]) { members, _ in
          _ = members.insert(tree(depth: depth + 1, &random), forKey: string(&random))
        })
    }
  }

  private static func string(_ random: inout SeededRandom) -> String {
    let scalars = (0..<Int.random(in: 0...8, using: &random)).compactMap { _ in
      // Letters, control characters, and what takes two, three and four bytes.
      let range = [0x61...0x7a, 0x01...0x1f, 0x20...0x7f, 0xc0...0x24f, 0x4e00...0x4eff, 0x1f600...0x1f640]
        .randomElement(using: &random)
      return range.flatMap {
        Unicode.Scalar(UInt32.random(in: UInt32($0.lowerBound)...UInt32($0.upperBound), using: &random))
      }
    }
    return String(String.UnicodeScalarView(scalars))
  }

  @Test func `commas stand between members and elements, and nowhere else`() {
    var writer = JSONWriter()
    writer.object {
      $0.member("a", [Int]())
      $0.member("b", [[1, 2], [], [3]])
      $0.member("c") { $0.object { _ in } }
      $0.member("d") { $0.object { $0.member("e", "x") } }
      $0.member(name: "f\"") { true.write(to: &$0) }
      $0.member("g", String?.none)
      $0.member("h", 1.5)
      $0.member("i", Double.infinity)
    }
    #expect(
      writer.text
        == #"{"a":[],"b":[[1,2],[],[3]],"c":{},"d":{"e":"x"},"f\"":true,"g":null,"h":1.5,"i":null}"#)
  }

  @Test func `ids are written in lower case and read in any`() throws {
    for _ in 0..<100 {
      let id = User.ID.new()
      #expect(text(id) == "\"\(id.rawValue.uuidString.lowercased())\"")
      #expect(User.ID(id.rawValue.uuidString.uppercased()) == id)
      #expect(User.ID(id.description) == id)
    }
    for bad in ["", "x", "0", "01a1fa40-c186-7b6a-8dd3-bc0448296e1", "01a1fa40c1867b6a8dd3bc0448296e12", "{}"] {
      #expect(User.ID(bad) == nil, "\(bad)")
    }
  }
}

@Suite struct RFC3339Tests {
  private func microseconds(_ text: String) -> Int64? { Timestamp(rfc3339: text)?.microseconds }

  @Test func `a time is read and written`() throws {
    let time = try #require(Timestamp(rfc3339: "2026-05-01T18:00:00Z"))
    #expect(time.microseconds == 1_777_658_400_000_000)
    #expect(time.rfc3339() == "2026-05-01T18:00:00Z")
    #expect(time.rfc3339(microseconds: true) == "2026-05-01T18:00:00.000000Z")
    #expect(Timestamp(microseconds: -1).rfc3339(microseconds: true) == "1969-12-31T23:59:59.999999Z")
    #expect(Timestamp(microseconds: 0).rfc3339() == "1970-01-01T00:00:00Z")
  }

  @Test(arguments: 0...12)
  func `a fraction may have any length, and what lies below the microsecond is cut off`(_ length: Int) throws {
    let whole = try #require(microseconds("2026-05-01T18:00:00Z"))
    for digits in ["123456789012", "999999999999", "000000000000", "000001999999"] {
      let fraction = digits.prefix(length)
      var counted = -1
      let time = Timestamp(
        rfc3339: "2026-05-01T18:00:00\(length == 0 ? "" : ".")\(fraction)Z", fractionDigits: &counted)
      let expected = Int64(fraction.prefix(6).padding(toLength: 6, withPad: "0", startingAt: 0))
      #expect(time?.microseconds == expected.map { whole + $0 })
      #expect(counted == length)
    }
  }

  @Test func `offsets are taken off`() {
    let noon = microseconds("2026-05-01T12:00:00Z")
    for text in [
      "2026-05-01T14:00:00+02:00", "2026-05-01T06:30:00-05:30", "2026-05-02T01:45:00+13:45",
      "2026-05-01T12:00:00+00:00", "2026-05-01T12:00:00-00:00", "2026-05-02T11:59:00+23:59",
      "2026-04-30T12:01:00-23:59", "2026-05-01t12:00:00z", "2026-05-01 12:00:00Z", "2026-05-01T14:00:00.000+02:00",
    ] {
      #expect(microseconds(text) == noon, "\(text)")
    }
  }

  @Test func `leap days are those of the Gregorian calendar`() {
    for year in ["2024", "2000", "1600", "0000", "0004", "9996"] {
      #expect(microseconds("\(year)-02-29T00:00:00Z") != nil, "\(year)")
      #expect(microseconds("\(year)-02-30T00:00:00Z") == nil, "\(year)")
    }
    for year in ["2023", "1900", "2100", "0001", "9999"] {
      #expect(microseconds("\(year)-02-28T00:00:00Z") != nil, "\(year)")
      #expect(microseconds("\(year)-02-29T00:00:00Z") == nil, "\(year)")
    }
  }

  @Test func `a leap second is the second after it`() {
    #expect(microseconds("2016-12-31T23:59:60Z") == microseconds("2017-01-01T00:00:00Z"))
    #expect(microseconds("2016-12-31T23:59:61Z") == nil)
  }

  @Test(arguments: [
    "", "x", "2026-05-01", "2026-05-01T18:00Z", "2026-05-01T18:00:00", "2026-05-01T24:00:00Z", "2026-05-01T18:60:00Z",
    "2026-00-01T18:00:00Z", "2026-13-01T18:00:00Z", "2026-05-00T18:00:00Z", "2026-05-32T18:00:00Z",
    "2026-04-31T18:00:00Z", "2026-5-1T18:00:00Z", "26-05-01T18:00:00Z", "12026-05-01T18:00:00Z",
    "-2026-05-01T18:00:00Z", "+2026-05-01T18:00:00Z", "2026-05-01T18:00:00.Z", "2026-05-01T18:00:00,5Z",
    "2026-05-01T18:00:00.5", " 2026-05-01T18:00:00Z", "2026-05-01T18:00:00Z ", "2026-05-01T18:00:00ZZ",
    "2026-05-01T18:00:00Z+01:00", "2026-05-01T18:00:00+0100", "2026-05-01T18:00:00+01", "2026-05-01T18:00:00+24:00",
    "2026-05-01T18:00:00+01:60", "2026-05-01T18:00:00~01:00", "2026-05-01T18:00:00.-5Z", "2026-05-01T-1:00:00Z",
    "２026-05-01T18:00:00Z", "2026-05-01T18:00:00.5\u{0}Z", "20260501T180000Z",
  ])
  func `what is no time is refused`(_ text: String) {
    #expect(Timestamp(rfc3339: text) == nil)
  }

  @Test func `a time cut off after any character is refused`() {
    let text = "2026-05-01T18:00:00.123456+02:00"
    for length in 0..<text.count { #expect(Timestamp(rfc3339: String(text.prefix(length))) == nil) }
  }

  @Test func `a time that RFC 3339 has no form for has the nearest one`() {
    #expect(Timestamp(microseconds: .min).rfc3339(microseconds: true) == "0000-01-01T00:00:00.000000Z")
    #expect(Timestamp(microseconds: .max).rfc3339().hasSuffix("Z"))
  }

  @Test func `the years 0000 and 9999 are the first and the last`() throws {
    for text in ["0000-01-01T00:00:00.000000Z", "0000-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"] {
      #expect(try #require(Timestamp(rfc3339: text)).rfc3339(microseconds: true) == text)
    }
    #expect(microseconds("0000-01-01T00:00:00Z") == -62_167_219_200_000_000)
    #expect(microseconds("9999-12-31T23:59:59Z") == 253_402_300_799_000_000)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `random microseconds of ten thousand years come back`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for _ in 0..<20_000 {
      let time = Timestamp(
        microseconds: .random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &random))
      let text = time.rfc3339(microseconds: true)
      #expect(text.utf8.count == 27, "seed \(seed): \(time.microseconds)")
      #expect(Timestamp(rfc3339: text) == time, "seed \(seed): \(time.microseconds)")
      let seconds = try #require(Timestamp(rfc3339: time.rfc3339()))
      #expect((0..<1_000_000).contains(time.microseconds - seconds.microseconds), "seed \(seed): \(time.microseconds)")
    }
  }

  @Test func `every day from 1969 to 2101 is the one that Foundation names`() {
    for day in -400..<48_000 {
      let seconds = Int64(day) * 86_400 + Int64(day + 400) % 86_400
      let date = Date(timeIntervalSince1970: Double(seconds))
      let text = Timestamp(microseconds: seconds * 1_000_000).rfc3339()
      // Its own formatter is slow: one day in seven, which meets every day of the month.
      if day % 7 == 0 { #expect(text == date.ISO8601Format()) }
      #expect(Timestamp(rfc3339: text)?.date == date)
    }
  }

  @Test func `times with offsets are those that Foundation reads`() throws {
    let formatter = ISO8601DateFormatter()
    for text in [
      "2026-05-01T18:00:00Z", "2000-02-29T23:59:59+14:00", "1970-01-01T00:00:00-12:00", "2038-01-19T03:14:08Z",
      "2099-12-31T23:59:59+05:45", "1999-12-31T00:00:01-09:30",
    ] {
      let date = try #require(formatter.date(from: text))
      #expect(Timestamp(rfc3339: text)?.date == date, "\(text)")
    }
  }
}

@Suite struct CursorTests {
  @Test(arguments: [1, 2] as [UInt64])
  func `a cursor comes back`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for number in 0..<1000 {
      let stamp = Timestamp(microseconds: .random(in: 0...253_402_300_799_999_999, using: &random))
      let cursor = Cursor(
        list: number % 2 == 0 ? .friends : .invitationsByStatus, stamp: number % 3 == 0 ? nil : stamp,
        time: Timestamp(microseconds: .random(in: -1_000_000...253_402_300_799_999_999, using: &random)), id: UUID())
      #expect(Cursor(cursor.text) == cursor)
      // Goes into a query without escaping.
      #expect(cursor.text.wholeMatch(of: /[A-Za-z0-9_-]+/) != nil)
    }
  }

  @Test func `a cursor that is cut off, lengthened or no cursor at all is refused`() {
    let text = Cursor(list: .events, stamp: .now(), time: .now(), id: UUID()).text
    for length in 0..<text.count { #expect(Cursor(String(text.prefix(length))) == nil, "\(length) of \(text)") }
    for bad in [
      text + "A", text + text, "garbage", "0", "=", "====", "null", "é", "\u{0}", " " + text, text + "\n", "%00",
    ] {
      #expect(Cursor(bad) == nil, "\(bad)")
    }
  }

  @Test func `a made-up cursor is refused unless its times can be written and its list is known`() {
    func cursor(_ stamp: Int64, _ time: Int64, list: UInt8 = ListName.events.rawValue) -> Cursor? {
      var bytes = Data([list])
      for number in [stamp, time] { withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) } }
      bytes.append(contentsOf: [UInt8](repeating: 0, count: 16))
      return Cursor(bytes.base64URL)
    }
    let (first, last): (Int64, Int64) = (-62_135_596_800_000_000, 253_402_300_799_999_999)
    for good in [first, -1, 0, last] { #expect(cursor(good, good) != nil) }
    #expect(cursor(.min, 0).map { $0.stamp == nil } == true)
    // PostgreSQL has no room for all of these, and RFC 3339 for none.
    for bad in [Int64.min, .min + 1, first - 1, last + 1, .max] {
      #expect(cursor(0, bad) == nil)
      if bad != .min { #expect(cursor(bad, 0) == nil) }
    }
    for list: UInt8 in [0, 100, 255] { #expect(cursor(0, 0, list: list) == nil) }
  }

  @Test func `random text is no cursor, and breaks nothing`() {
    var random = SeededRandom(seed: 7)
    for _ in 0..<5000 {
      let length = Int.random(in: 0...60, using: &random)
      let bytes = (0..<length).map { _ in UInt8.random(in: 0x20...0x7e, using: &random) }
      guard let cursor = Cursor(String(decoding: bytes, as: UTF8.self)) else { continue }
      #expect(Cursor(cursor.text) == cursor)
    }
  }
}

@Suite struct FieldsTests {
  private struct Spot: Equatable {
    var name = ""
    var latitude: Double?
  }

  private static var spot: Fields.Rule<Spot> {
    .object(Spot()) {
      Spot(name: $0.required("name", .text(1...5)), latitude: $0.optional("latitude", .number(-90...90)))
    }
  }

  /// - Returns: the names of the bad fields, in the order in which they are told.
  private func badFields(_ text: String, _ body: (inout Fields) -> Void) throws -> [String] {
    let json = try JSON(parsing: text.utf8)
    do {
      try Fields.read(json, body)
      return []
    } catch let error as AppError {
      #expect(error.kind == .invalid)
      #expect(error.slug == "invalid-fields")
      for field in error.fields { #expect(!field.message.isEmpty && error.message.contains(field.field)) }
      return error.fields.map(\.field)
    }
  }

  @Test func `every bad field is told, not the first`() throws {
    let bad = try badFields(#"{"title": 5, "size": "x", "half": 1e9, "when": "tomorrow", "who": "me", "word": "blue"}"#)
    {
      _ = $0.required("title", .text(1...5))
      _ = $0.required("size", .integer(1...5))
      _ = $0.optional("half", .number(0...1))
      _ = $0.optional("when", .time)
      let _: User.ID? = $0.optional("who", .id())
      _ = $0.optional("word", .word(of: Invitation.answers))
      _ = $0.required("missing", .text(1...5))
      _ = $0.optional("absent", .text(1...5))
    }
    #expect(bad == ["title", "size", "half", "when", "who", "word", "missing"])
  }

  @Test func `a field inside an object is told by its path`() throws {
    let read: (inout Fields) -> Void = { _ = $0.optional("location", Self.spot) }
    #expect(
      try badFields(#"{"location": {"name": "", "latitude": 91}}"#, read) == ["location.name", "location.latitude"])
    #expect(try badFields(#"{"location": {"latitude": "x"}}"#, read) == ["location.name", "location.latitude"])
    #expect(try badFields(#"{"location": []}"#, read) == ["location"])
    #expect(try badFields(#"{"location": null}"#, read) == [])
    #expect(try badFields(#"{"location": {"name": "here", "other": 1}}"#, read) == [])
  }

  @Test func `an element of a list is told by its index`() throws {
    let words: (inout Fields) -> Void = { _ = $0.required("list", .list(of: .text(1...3), atMost: 4)) }
    #expect(try badFields(#"{"list": ["a", "", 5, null]}"#, words) == ["list[1]", "list[2]", "list[3]"])
    #expect(try badFields(#"{"list": ["a", "b", "c", "d", "e"]}"#, words) == ["list"])
    #expect(try badFields(#"{"list": {}}"#, words) == ["list"])
    #expect(try badFields(#"{"list": []}"#, words) == [])
    let spots: (inout Fields) -> Void = { _ = $0.required("list", .list(of: Self.spot, atMost: 4)) }
    #expect(
      try badFields(#"{"list": [{"name": "a"}, {"name": 5, "latitude": -91}, 5]}"#, spots)
        == ["list[1].name", "list[1].latitude", "list[2]"])
  }

  @Test func `an object in an object in an object has its whole path`() throws {
    let inner: Fields.Rule<Spot> = .object(Spot()) { fields in
      _ = fields.optional("list", .list(of: Self.spot, atMost: 2))
      return fields.optional("spot", Self.spot) ?? Spot()
    }
    let bad = try badFields(#"{"outer": {"spot": {"name": 5}, "list": [{"name": "ok"}, {}]}}"#) {
      _ = $0.required("outer", inner)
    }
    #expect(bad == ["outer.list[1].name", "outer.spot.name"])
  }

  @Test func `in an edit, absent keeps, null clears where there may be nothing, and is refused elsewhere`() throws {
    func edit(_ text: String) throws -> (title: String, note: String?) {
      try Fields.read(try JSON(parsing: text.utf8)) {
        (
          $0.edit("title", .text(1...5)).applied(to: "old"), $0.clearableEdit("note", .text(0...5)).applied(to: "old")
        )
      }
    }
    #expect(try edit("{}") == ("old", "old"))
    #expect(try edit(#"{"title": "new", "note": null}"#) == ("new", nil))
    #expect(try edit(#"{"note": "new"}"#) == ("old", "new"))
    #expect(
      try badFields(#"{"title": null, "note": 5}"#) {
        _ = $0.edit("title", .text(1...5))
        _ = $0.clearableEdit("note", .text(0...5))
      } == ["title", "note"])
  }

  @Test(arguments: ["[]", "5", "\"x\"", "null", "true"])
  func `a body that is no object is malformed`(_ text: String) throws {
    let json = try JSON(parsing: text.utf8)
    let error = #expect(throws: AppError.self) { try Fields.read(json) { _ in } }
    #expect(error?.kind == .malformed)
    #expect(error?.slug == "malformed-body")
  }

  @Test func `text is trimmed, composed and counted in characters`() throws {
    let rule = Fields.Rule<String>.text(1...3)
    #expect(try rule.read(.string(" \n abc\u{3000}\t")) == "abc")
    #expect(try Array(rule.read(.string("e\u{301}")).unicodeScalars) == ["é"])
    #expect(try rule.read(.string("😀😀😀")) == "😀😀😀")
    for bad in ["", " ", "\n\u{2003}", "abcd", "😀😀😀😀"] {
      #expect(throws: Fields.Broken.self, "\(bad)") { try rule.read(.string(bad)) }
    }
  }

  @Test func `times are kept to the second, from 1970 to 9999`() throws {
    func read(_ text: String) throws -> String {
      try Fields.Rule<Timestamp>.time.read(.string(text)).rfc3339(microseconds: true)
    }
    #expect(try read("2026-05-01T18:00:00.999999+02:00") == "2026-05-01T16:00:00.000000Z")
    #expect(try read("1970-01-01T00:00:00Z") == "1970-01-01T00:00:00.000000Z")
    #expect(try read("9999-12-31T23:59:59Z") == "9999-12-31T23:59:59.000000Z")
    #expect(throws: Fields.Broken.self) { try read("1969-12-31T23:59:59Z") }
    #expect(throws: Fields.Broken.self) { try read("0000-01-01T00:00:00Z") }
    // In UTC this is the year 10000, which nobody's parser takes.
    #expect(throws: Fields.Broken.self) { try read("9999-12-31T23:59:59-23:59") }
  }
}
