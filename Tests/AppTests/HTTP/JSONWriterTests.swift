import Foundation
import Postgres
import TestSupport
import Testing
@testable import App

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

  @Test func `a character that needs an escape is found at every place of a text of any length`() {
    for length in 1...20 {
      for place in 0..<length {
        for (character, escaped) in [("\"", #"\""#), ("\\", #"\\"#), ("\n", #"\n"#), ("\u{1f}", #"\u001f"#)] {
          let (before, after) = (
            String(repeating: "!", count: place), String(repeating: "ÿ", count: length - place - 1)
          )
          #expect(text(before + character + after) == "\"\(before)\(escaped)\(after)\"")
        }
      }
    }
  }

  @Test func `integers of any size are written`() {
    for number in [0, 7, -7, 10, .max, .min] { #expect(text(number) == String(number)) }
  }

  @Test func `text around the size of the first memory is written whole`() {
    for length in 1000...1050 {
      let original = String(repeating: "a", count: length)
      #expect(text(original) == "\"\(original)\"")
      #expect(text([original, "\n", original]) == "[\"\(original)\",\"\\n\",\"\(original)\"]")
    }
  }

  @Test func `every character up to U+00FF survives a round trip, alone and between others`() throws {
    for code in UInt8.min ... .max {
      let character = String(Unicode.Scalar(code))
      for original in [character, "a\(character)b", "\(character)\(character)"] {
        let json = Data(text([original]).utf8)
        #expect(try JSONSerialization.jsonObject(with: json) as? [String] == [original], "U+\(String(code, radix: 16))")
        // The one character that the parser refuses.
        guard code != 0 else { continue }
        #expect(try JSON(parsing: json) == .array([.string(original)]), "U+\(String(code, radix: 16))")
      }
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func `random trees survive a round trip through our parser and Foundation's`(_ seed: UInt64) throws {
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
      // Letters, control characters, and characters of two, three and four bytes.
      let range = [0x61...0x7a, 0x01...0x1f, 0x20...0x7f, 0xc0...0x24f, 0x4e00...0x4eff, 0x1f600...0x1f640]
        .randomElement(using: &random)
      return range.flatMap {
        Unicode.Scalar(UInt32.random(in: UInt32($0.lowerBound)...UInt32($0.upperBound), using: &random))
      }
    }
    return String(String.UnicodeScalarView(scalars))
  }

  @Test func `commas separate members and elements, and occur nowhere else`() {
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

  @Test func `the bytes of a part can be read, and a cleared writer starts over`() {
    var writer = JSONWriter()
    var elements: [String] = []
    for _ in 0..<2 {
      writer.object {
        $0.member("a", 1)
        $0.member("b") {
          $0.array(["x", "", "y,"]) { json, text in
            let start = json.count
            json.string(text)
            json.withBytes(from: start) { elements.append(String(decoding: $0, as: UTF8.self)) }
          }
        }
        $0.member("c", 2)
      }
      #expect(writer.text == #"{"a":1,"b":["x","","y,"],"c":2}"#)
      #expect(elements == [#""x""#, #""""#, #""y,""#])
      writer.clear()
      elements = []
      #expect(writer.text == "")
    }
  }

  @Test func `ids are written in lower case and read in either case`() throws {
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
