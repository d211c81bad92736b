import Foundation
import TestSupport
import Testing
import Yams

@testable import App

/// The load balancers' files in `deploy` mask the paths of links in logs, because a reader of the log could open them.
@Suite struct LogMaskTests {
  /// The parameters of paths that open nothing without a login. All others are secrets.
  private static let harmless: Set<Substring> = ["id", "userId", "linkId"]

  private struct Mask {
    let proxy: String
    let pattern: Regex<AnyRegexOutput>
    let replacement: String

    func callAsFunction(_ path: String) -> String {
      path.replacing(pattern) { match in
        let kept = match.output.count > 1 ? match.output[1].substring.map(String.init) : nil
        return replacement.replacing(/\$\{(start|1)\}|\\1/, with: kept ?? "")
      }
    }
  }

  private static func file(_ name: String) throws -> String {
    try String(contentsOf: Program.checkout.appending(path: "deploy/\(name)"), encoding: .utf8)
  }

  private static func masks() throws -> [Mask] {
    let haproxy = try #require(try file("haproxy.cfg").firstMatch(of: /path,regsub\("(.*)","(.*)"\)/))
    let nginx = try #require(try file("nginx.conf").firstMatch(of: /"~(\^.*)" "(.*)";/))
    let caddy = try #require(try file("Caddyfile").firstMatch(of: /request>uri regexp "(.*)" "(.*)"/))
    // nginx's map replaces the whole value, the others what the pattern matches.
    return [
      Mask(proxy: "HAProxy", pattern: try Regex(String(haproxy.1)), replacement: String(haproxy.2)),
      Mask(proxy: "nginx", pattern: try Regex("\(nginx.1).*"), replacement: String(nginx.2)),
      Mask(proxy: "Caddy", pattern: try Regex(String(caddy.1)), replacement: String(caddy.2)),
    ]
  }

  @Test func `a proxy's log has no path that opens something without a login`() async throws {
    try await TestApp.run { app in
      let secret = "mS_the-secret.ics"
      let masks = try Self.masks()
      // nginx cannot mask its error log, so these paths have none.
      let found = try #require(try Self.file("nginx.conf").firstMatch(of: /location ~ (\^.*) \{/))
      let withoutErrorLog = try Regex(String(found.1))
      var secrets = 0
      for path in Set(app.routes.compactMap { $0.split(separator: " ").last.map(String.init) }).sorted() {
        let parameters = path.matches(of: /\{(\w+)\}/).map(\.1)
        let filled = path.replacing(/\{\w+\}/, with: secret)
        let isSecret = !Self.harmless.isSuperset(of: parameters)
        if isSecret { secrets += 1 }
        #expect(filled.contains(withoutErrorLog) == isSecret, "nginx's error log: \(path)")
        let doubled = filled.replacing("/", with: "//")
        for mask in masks {
          guard isSecret else {
            #expect(mask(filled) == filled, "\(mask.proxy) masks \(path)")
            continue
          }
          for spelling in [filled, doubled, "\(filled)?\(secret)"] {
            let masked = mask(spelling)
            #expect(!masked.contains(secret), "\(mask.proxy) logs \(spelling)")
            // It still says which page that was.
            let page = spelling.prefix(upTo: spelling.firstRange(of: secret)?.lowerBound ?? spelling.startIndex)
            #expect(masked.hasPrefix(page.prefix(4)) && masked.hasSuffix("***"), "\(mask.proxy): \(masked)")
          }
        }
      }
      #expect(secrets >= 10)
    }
  }

  @Test func `the service has no other spelling of a link that the masks do not know`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "view"}"#)
      let masks = try Self.masks()
      for (path, status) in [
        ("/e/\(link.token)", 200), ("//e//\(link.token)/", 200), ("/%65/\(link.token)", 404), ("/E/\(link.token)", 404),
        ("/./e/\(link.token)", 404), ("/x/../e/\(link.token)", 404), ("/e%2F\(link.token)", 404),
      ] {
        #expect(try await app.fetch(app.url + path).status == status, "\(path)")
        if status == 200 { for mask in masks { #expect(!mask(path).contains(link.token), "\(mask.proxy): \(path)") } }
      }
    }
  }

  @Test func `no operation takes a secret in its query`() throws {
    let document = try #require(try Yams.load(yaml: Resources.openAPI) as? [String: Any])
    let components = try #require(document["components"] as? [String: Any])
    let paths = try #require(document["paths"] as? [String: [String: Any]])
    let shared = try #require(components["parameters"] as? [String: Any]).values.compactMap { $0 as? [String: Any] }
    let own = paths.values.flatMap(\.values).flatMap { operation -> [[String: Any]] in
      ((operation as? [String: Any])?["parameters"] as? [[String: Any]] ?? [])
    }
    let names = (shared + own).filter { $0["in"] as? String == "query" }.compactMap { $0["name"] as? String }
    #expect(names.count > 5)
    for name in names { #expect(name.firstMatch(of: /(?i)token|code|key|secret|password|proof/) == nil, "\(name)") }
  }
}
