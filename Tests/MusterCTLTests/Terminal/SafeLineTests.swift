import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct SafeLineTests {
  @Test(arguments: [
    ("\u{1B}[2J", #"\u{1B}[2J"#), ("\u{9B}31m", #"\u{009B}31m"#), ("a\rb", #"a\rb"#),
    ("a\u{7F}\u{8}", #"a\u{7F}\u{08}"#),
    ("abc\u{202E}def", #"abc\u{202E}def"#), ("\u{2066}x\u{2069}", #"\u{2066}x\u{2069}"#), ("a\tb", "a b"),
    ("a\nb\u{2028}c", #"a\nb\u{2028}c"#), ("\u{1B}]0;title\u{7}", #"\u{1B}]0;title\u{07}"#), ("\u{AD}", #"\u{00AD}"#),
    ("a\u{E0061}\u{E0062}b", #"a\u{000E0061}\u{000E0062}b"#), ("\u{E0001}", #"\u{000E0001}"#),
    ("🏴\u{E0068}\u{E0069}\u{E007F}", #"🏴\u{000E0068}\u{000E0069}\u{000E007F}"#),
    ("a\u{200B}\u{2060}", #"a\u{200B}\u{2060}"#),
    ("\u{3164}\u{115F}\u{FFA0}", #"\u{3164}\u{115F}\u{FFA0}"#), ("a\u{E0100}\u{34F}", #"a\u{000E0100}\u{034F}"#),
  ])
  func `writes control characters as codes`(text: String, safe: String) {
    #expect(text.safeLine == safe)
  }

  @Test(arguments: ["Ana", "👩‍👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿🏴󠁧󠁢󠁷󠁬󠁳󠁿", "☕\u{FE0E}", "می‌خواهم", "क्‍ष", "❤️", "Ine\u{302}s", "“quoted” \\ /"])
  func `keeps what scripts and emoji need`(text: String) {
    #expect(text.safeLine == text)
  }

  @Test func `lines of a note stay lines`() {
    #expect("one\ntwo\r\n\u{1B}three".safeLines == ["one", "two", #"\u{1B}three"#])
  }

  @Test func `every character that is not safe is escaped in JSON`() throws {
    let text = "\u{1B}[2J \u{9B}2J \u{7F} \u{202E} \u{2028} \u{E0001} \n \u{200D} 喫"
    let json = JSONText.of(.object(["title": .string(text)]))
    #expect(json.unicodeScalars.allSatisfy { $0 == "\n" || $0.isSafe })
    #expect(json.contains(#"\u001b[2J \u009b2J \u007f \u202e \u2028 \udb40\udc01 \n"#))
    #expect(try JSONDecoder.muster().decode(JSONValue.self, from: Data(json.utf8))["title"] == .string(text))
  }
}
