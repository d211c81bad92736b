import Testing

@testable import HTTPServer

@Suite struct URITests {
  @Test(
    arguments: [
      ("/a/b", "/a/b", nil), ("/a?x=1", "/a", "x=1"), ("/a?", "/a", ""), ("/a?x=1#y", "/a", "x=1"), ("", "/", nil),
      ("?x", "/", "x"), ("*", "*", nil), ("a/b", "a/b", nil), ("http://host/a?x", "/a", "x"), ("http://host", "/", nil),
      ("https://host:8443?x", "/", "x"), ("/a://b", "/a://b", nil), ("//host/a", "//host/a", nil),
      ("a?x=http://host/b", "a", "x=http://host/b"), ("a/b://c", "a/b://c", nil), ("a:b", "a:b", nil),
    ] as [(String, String, String?)])
  func `a target has a path and perhaps a query`(target: String, path: String, query: String?) {
    let uri = URI(target)
    #expect(uri.path == path)
    #expect(uri.query == query)
  }

  @Test(
    arguments: [
      ("", []), ("a=1", ["a", "1"]), ("a=1&b=2", ["a", "1", "b", "2"]), ("a=1&a=2", ["a", "1", "a", "2"]),
      ("a", ["a", ""]), ("a=", ["a", ""]), ("=1", ["", "1"]), ("a=1&", ["a", "1"]), ("&a=1", ["", "", "a", "1"]),
      ("a=1=2", ["a", "1=2"]), ("a=%C3%a9+%25", ["a", "é+%"]), ("a=%", ["a", "%"]), ("a=%4", ["a", "%4"]),
      ("a=%zz", ["a", "%zz"]), ("a=%%41", ["a", "%%41"]), ("%61=1", ["%61", "1"]), ("a=%ff", ["a", "\u{fffd}"]),
    ] as [(String, [String])])
  func `parameters are decoded in their order`(query: String, expected: [String]) {
    #expect(URI("/?" + query).queryParameters.flatMap { [$0.name, $0.value] } == expected)
  }

  @Test func `the first parameter of a name counts`() {
    #expect(URI("/?a=1&a=2").queryParameter("a") == "1")
    #expect(URI("/?ab=1").queryParameter("a") == nil)
    #expect(URI("/a=1").queryParameter("a") == nil)
  }
}
