import Testing

@testable import musterctl

@Suite struct DisplayWidthTests {
  @Test(arguments: [
    ("", 0), ("Ana Duarte", 10), ("Inês", 4), ("Ine\u{302}s", 4), ("Горан Илић", 10), ("佐藤 花", 7), ("喫茶店めぐり", 12),
    ("ﾊﾝｶｸ", 4), ("ＡＢ", 4), ("한국어", 6), ("\u{1112}\u{1161}\u{11AB}", 2), ("สวัสดี", 4), ("مرحبا", 5), ("नि", 2),
    ("🎉", 2), ("👩‍👩‍👧", 2), ("👍🏽", 2), ("🇵🇹", 2), ("🇵", 1), ("❤️", 2), ("❤", 1), ("1️⃣", 2), ("☕", 2), ("©", 1), ("é…ß", 3),
    ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 2), ("a\u{200D}b", 2), ("𠮷", 2), ("x\u{301}\u{302}\u{303}", 1),
  ])
  func `counts the columns of any script`(text: String, columns: Int) {
    #expect(DisplayWidth.of(text) == columns)
  }

  @Test(arguments: [
    ("Pasta night", 11, "Pasta night"), ("Pasta night", 10, "Pasta nig…"), ("Pasta", 1, "…"), ("Pasta", 0, ""),
    ("喫茶店", 6, "喫茶店"), ("喫茶店", 5, "喫茶…"), ("喫茶店", 4, "喫…"), ("a喫茶店", 4, "a喫…"), ("喫", 1, "…"),
    ("👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"), ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
  ])
  func `shortens between characters`(text: String, columns: Int, shortened: String) {
    let result = DisplayWidth.fit(text, within: columns)
    #expect(result == shortened)
    #expect(DisplayWidth.of(result) <= columns)
  }
}
