import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct LinkMatchTests {
  private func link(_ id: String, token: String) throws -> ShareLink {
    ShareLink(
      id: try #require(ShareLink.ID(id)), url: URL(string: "https://muster.example/e/\(token)"), kind: .answer,
      createdAt: Date(timeIntervalSince1970: 1_777_449_807))
  }

  @Test func `finds links by URLs, ids and parts of ids`() throws {
    let links = [
      try link("01900000-0000-7000-8004-00000000abcd", token: "one"),
      try link("01900000-0000-7000-8004-0000000012cd", token: "two"),
    ]
    func found(_ text: String) -> [String] {
      LinkMatch.candidates(for: text, in: links).compactMap(\.url?.lastPathComponent)
    }
    #expect(found("https://muster.example/e/two") == ["two"])
    #expect(found("ABCD") == ["one"] && found("01900000-0000-7000-8004-0000000012cd") == ["two"])
    #expect(found("0190") == ["one", "two"] && found("cd").isEmpty && found("three").isEmpty)
  }

  @Test(arguments: [
    ("https://muster.example/e/AaBb-_1", "AaBb-_1"), ("muster.example/e/AaBb", "AaBb"), ("AaBb", "AaBb"),
    ("https://muster.example/e/AaBb?fbclid=1#x", "AaBb"), (" AaBb ", "AaBb"),
    ("https://muster.example/events/AaBb", nil), ("https://muster.example/", nil), ("", nil),
  ])
  func `reads the token of a link`(text: String, token: String?) {
    #expect(LinkMatch.token(in: text) == token)
  }
}
