import Crypto
import Foundation
import Testing

@testable import App
@testable import render_docs

/// The page at `/docs`.
@Suite struct DocsTests {
  @Test func `the page loads nothing and runs nothing`() async throws {
    try await TestApp.run { app in
      let page = try await app.send("GET", "/docs")
      #expect(page.status == 200)
      #expect(page.header("Content-Type") == "text/html; charset=utf-8")
      #expect(page.header("Referrer-Policy") == "no-referrer")
      #expect(page.header("X-Content-Type-Options") == "nosniff")
      // A browser uses the style only if its digest is right.
      let style = try #require(page.body.firstMatch(of: /<style>([^<]*)<\/style>/)?.1)
      let digest = Data(SHA256.hash(data: Data(style.utf8))).base64EncodedString()
      let policy = try #require(page.header("Content-Security-Policy"))
      #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-\(digest)';"))
      for word in ["<script", "<link", "<img", "<iframe", "<form", "@import", "url("] {
        #expect(!page.body.contains(word), "\(word)")
      }
      #expect(!page.body.contains(/<[^>]*\s(style|on[a-z]+)=/))
      #expect(page.body.utf8.count < 610_000)
    }
  }

  @Test func `the page may be cached, and is sent again only if it has changed`() async throws {
    try await TestApp.run { app in
      let page = try await app.send("GET", "/docs")
      #expect(page.header("Cache-Control") == "public, max-age=300")
      let tag = try #require(page.header("ETag"))
      let again = try await app.send("GET", "/docs?surprise=1", headers: [("If-None-Match", tag)])
      #expect(again.status == 304 && again.body.isEmpty && again.header("ETag") == tag)
      #expect(again.header("Cache-Control") == page.header("Cache-Control"))
      let stale = try await app.send("GET", "/docs", headers: [("If-None-Match", "\"other\"")])
      #expect(stale.status == 200 && stale.body == page.body)
    }
  }

  @Test func `each operation has an anchor and an example that calls this service`() async throws {
    try await TestApp.run(["MUSTER_PUBLIC_URL": "https://api.example/muster"]) { app in
      let page = try await app.send("GET", "/docs").body
      #expect(!page.contains("{{") && !page.contains("muster.invalid"))
      #expect(page.contains(#""login": "\#(DemoSeed.login)", "password": "\#(DemoSeed.password)""#))
      var count = 0
      for (path, item) in try OpenAPIDocument(yaml: Resources.openAPI).root.member("paths").members {
        for (method, operation) in item.members where method != "parameters" {
          let id = operation.member("operationId").text
          #expect(page.contains("<h3 id=\"\(id)\">"), "\(id)")
          let example = try #require(Self.example(of: id, in: page), "\(id)")
          #expect(example.hasPrefix("curl ") && !example.contains(/\{\w+\}/), "\(example)")
          let start = path.prefix { $0 != "{" }
          #expect(example.contains("'https://api.example/muster\(start)"), "\(example)")
          #expect(["get", "post"].contains(method) || example.contains("-X \(method.uppercased()) "), "\(example)")
          #expect(example.contains("$TOKEN") == APIReference.needsToken(operation), "\(example)")
          count += 1
        }
      }
      #expect(count >= 60)
    }
  }

  @Test func `an example's body is one word for the shell`() async throws {
    try await TestApp.run { app in
      let page = try await app.send("GET", "/docs").body
      let login = try #require(Self.example(of: "login", in: page))
      #expect(login.hasSuffix(#"-d '{"login": "ana", "password": "plans-with-friends", "device": "Ana'\''s iPhone"}'"#))
      let refresh = try #require(Self.example(of: "refresh", in: page))
      #expect(refresh.contains(#""refreshToken": "'"$REFRESH_TOKEN"'""#))
      #expect(Self.example(of: "putPicture", in: page)?.hasSuffix(" --data-binary @picture.jpeg") == true)
      #expect(Self.example(of: "searchUsers", in: page)?.contains("/users?query=okafro'") == true)
    }
  }

  @Test func `every link within the page has a target, and every target has one place`() async throws {
    try await TestApp.run { app in
      let page = try await app.send("GET", "/docs").body
      let targets = page.matches(of: /\sid="([^"]*)"/).map { String($0.1) }
      #expect(Set(targets).count == targets.count)
      let links = Set(page.matches(of: /\shref="#([^"]*)"/).map { String($0.1) })
      #expect(links.subtracting(targets).sorted() == [])
      #expect(links.isSuperset(of: ["examples", "safe-repeats", "tag-friends", "getMe", "schema-Event"]))
    }
  }

  @Test func `everything that a reader may search for is in the page, as text`() async throws {
    try await TestApp.run { app in
      let page = try await app.send("GET", "/docs").body
      #expect(page.contains("<code>Authorization: Bearer &lt;accessToken&gt;</code>"))
      let document = try OpenAPIDocument(yaml: Resources.openAPI).root
      for (name, schema) in document.member("components").member("schemas").members {
        #expect(page.contains("<h3 id=\"schema-\(name)\">"), "\(name)")
        for field in schema.member("properties").members { #expect(page.contains("<code>\(field.key)</code>")) }
      }
      let slugs = Set(Resources.openAPI.matches(of: /type: ([a-z-]+), title:/).map { $0.1 })
      #expect(slugs.count > 30)
      for slug in slugs { #expect(page.contains("<code>\(slug)</code>"), "\(slug)") }
    }
  }

  @Test func `the page and the document count per address, with pictures`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      for path in ["/docs", "/openapi.yaml", "/openapi.json"] {
        let limit = try await app.send("GET", path).header("RateLimit")
        #expect(limit?.hasPrefix("\"files\";r=99") == true, "\(path): \(limit ?? "")")
      }
    }
  }

  /// As a reader sees it.
  private static func example(of operation: String, in page: String) -> String? {
    guard let start = page.firstRange(of: "<pre id=\"curl-\(operation)\"") else { return nil }
    let text = page[start.upperBound...].drop { $0 != ">" }.dropFirst("><code>".count)
    guard let end = text.firstRange(of: "</code>") else { return nil }
    return String(text[..<end.lowerBound]).replacing("&#39;", with: "'").replacing("&#34;", with: "\"")
      .replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&amp;", with: "&")
  }
}
