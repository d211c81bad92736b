import Testing

@testable import musterctl

@Suite struct ServerURLTests {
  @Test(arguments: [
    ("https://muster.example", "https://muster.example"), ("muster.example", "https://muster.example"),
    ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"), ("HTTPS://Muster.Example/api/v1/", "https://muster.example"),
    ("https://example.org/muster/api/v1", "https://example.org/muster"), ("http://[::1]:8080", "http://[::1]:8080"),
  ])
  func `takes what users paste`(text: String, url: String) throws {
    #expect(try ServerURL(text).description == url)
  }

  @Test(arguments: [
    "", "ftp://muster.example", "https://", "https://ana:secret@muster.example", "http://a.b?x=1", "a b",
  ])
  func `refuses everything else`(text: String) {
    #expect(throws: Failure.self) { try ServerURL(text) }
  }

  @Test func `different services have different file names`() throws {
    let names = try [
      "http://a.b:1", "http://a.b:11", "https://a.b:1", "https://a.b/1", "https://a.b-1", "https://a.b_1",
    ].map { try ServerURL($0).fileName }
    #expect(Set(names).count == names.count)
    for name in names { #expect(!name.contains("/") && !name.hasPrefix(".")) }
  }
}
