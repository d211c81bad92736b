import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct LinkTableTests {
  private static let url = "https://muster.example/e/AaIMuTzodLeQtWaW0N7D_DSq5hcVVkkXb29PlUjw14o"

  /// With the longest rules, and a time with a year.
  private func link(unmailed: Int = 0) throws -> ShareLink {
    ShareLink(
      id: try #require(ShareLink.ID("01900000-0000-7000-8004-00000000abcd")), url: URL(string: Self.url),
      kind: .answer, shows: .names, expiresAt: Date(timeIntervalSince1970: 1_900_000_000), maxGuests: 100,
      maxPlusOnes: 10, email: .required, approval: false, joined: 12, unmailed: unmailed,
      createdAt: Date(timeIntervalSince1970: 0))
  }

  private func lines(_ columns: Int) throws -> [String] {
    Table.links([try link()]).lines(within: columns, isColored: false)
  }

  @Test func `80 columns show how many have joined, when the link expires, and all of its URL`() throws {
    let lines = try lines(80)
    #expect(lines[0].split(separator: " ") == ["ID", "RULES", "JOINED", "EXPIRES"])
    #expect(lines[1].contains("answer, shows names, up to 10 plus") && lines[1].contains("12 of 100"), "\(lines)")
    let expiry = TimeText.here.dayAndTime(Date(timeIntervalSince1970: 1_900_000_000))
    #expect(lines[1].hasSuffix(expiry) && expiry.contains("2030"), "\(lines)")
    #expect(lines.dropFirst(2) == ["  " + Self.url])
  }

  @Test func `40 columns still show how many have joined, and a wide terminal has one line for each link`() throws {
    #expect(try lines(40)[1].hasSuffix("12 of 100"))
    let wide = try lines(200)
    #expect(wide.count == 2 && wide[0].hasSuffix("LINK") && wide[1].hasSuffix("  " + Self.url))
  }

  @Test func `a link says how many visitors got no e-mail`() throws {
    let line = Table.links([try link(unmailed: 3)]).lines(within: 80, isColored: false)[1]
    #expect(line.contains("12 of 100, 3 unmailed"), "\(line)")
  }
}
