import Foundation
import Testing

@testable import App

/// Text that takes quadratic time to normalize: a long run of combining marks in the wrong order. Code that reads it
/// must not normalize it, so that it costs about as much as plain text of the same length.
@Suite struct HostileTextTests {
  /// - Parameter bytes: the most bytes of UTF-8.
  static func marks(_ bytes: Int) -> String {
    String(repeating: "\u{301}", count: bytes / 4) + String(repeating: "\u{316}", count: bytes / 4)
  }

  private static func plain(_ bytes: Int) -> String { String(repeating: "a", count: bytes / 4 * 4) }

  /// The fastest of five runs, which other processes have disturbed least.
  private func seconds(_ body: () throws -> Void) rethrows -> Double {
    var best = Double.infinity
    for _ in 1...5 {
      let start = ContinuousClock.now
      try body()
      best = min(best, (ContinuousClock.now - start) / .seconds(1))
    }
    return best
  }

  /// Far above the normal variation, and far below the factor of hundreds or thousands that normalizing costs.
  private static let factor = 30.0

  @Test func `a long name of combining marks among nine hundred costs as much as a plain one`() throws {
    let members = (0..<900).map { "\"\($0)\":1" }.joined(separator: ",")
    let (hostile, plain) = (Self.marks(57_000), Self.plain(57_000))
    let (cost, fair) = (
      try seconds { _ = try JSON(parsing: #"{"\#(hostile)":1,\#(members)}"#.utf8) },
      try seconds { _ = try JSON(parsing: #"{"\#(plain)":1,\#(members)}"#.utf8) }
    )
    #expect(cost < Self.factor * fair)
  }

  @Test func `members are distinguished by their bytes`() throws {
    let json = try JSON(parsing: #"{"\u00e9": 1, "e\u0301": 2}"#.utf8)
    #expect(json.keys.count == 1)
    guard case .object(let members) = json else { throw Unexpected() }
    #expect(members.map(\.value) == [.number("1"), .number("2")])
    #expect(members["\u{e9}"] == .number("1") && members["e\u{301}"] == .number("2"))
    #expect(JSON.string("\u{e9}") != .string("e\u{301}"))
    // For any number of members.
    for count in [1, 8, 9, 100] {
      let names = (0..<count).map { "\"\($0)\":\($0)" }.joined(separator: ",")
      guard case .object(var object) = try JSON(parsing: "{\(names)}".utf8) else { throw Unexpected() }
      #expect(object.keys == (0..<count).map(String.init))
      #expect((0..<count).allSatisfy { object["\($0)"] == .number("\($0)") } && object["\(count)"] == nil)
      #expect(throws: JSON.Malformed.self) { try JSON(parsing: "{\(names),\"0\":0}".utf8) }
      #expect(object.removeValue(forKey: "0") == .number("0"))
      #expect(object["0"] == nil && object.count == count - 1)
    }
  }

  private struct Unexpected: Error {}

  private struct Sent {
    let target: String
    var body: String?
    var headers: [(String, String)] = []
  }

  @Test func `no text rule normalizes text that it refuses for its length`() {
    func reading<Value>(_ rule: Fields.Rule<Value>) -> (String) -> Void { { _ = try? rule.read(.string($0)) } }
    let rules: [(String, (String) -> Void)] = [
      ("text", reading(.text(1...254))), ("long text", reading(.text(0...2000))), ("line", reading(.line(1...100))),
      ("username", reading(.text(3...30).username)), ("email", reading(.email)), ("login", reading(.login)),
      ("password", reading(.password)), ("any password", reading(.anyPassword)), ("opaque", reading(.opaque(1...1024))),
    ]
    for (name, read) in rules {
      // Beyond all limits, and within them.
      for length in [60_000, 1000] {
        let (hostile, plain) = (Self.marks(length), Self.plain(length))
        let cost = seconds { read(hostile) }
        let fair = seconds { read(plain) }
        // Marks are checked one by one, and ASCII letters eight at a time.
        #expect(cost < Self.factor * max(fair, 1e-5), "\(name), \(length): \(cost) and \(fair)")
      }
    }
    for text in ["a" + String(repeating: "\u{301}", count: 31), String(repeating: "\u{316}\u{301}", count: 16)] {
      #expect(throws: Fields.Broken.self) { try Fields.Rule<String>.text(1...100).read(.string(text)) }
    }
    #expect(throws: Never.self) {
      try Fields.Rule<String>.text(1...100).read(.string("a" + String(repeating: "\u{301}", count: 30)))
    }
  }

  @Test func `words are compared by their bytes`() {
    let rule = Fields.Rule<PictureSize>.word(of: [.small, .large])
    let (hostile, plain) = (JSON.string(Self.marks(60_000)), JSON.string(Self.plain(60_000)))
    let (cost, fair) = (seconds { _ = try? rule.read(hostile) }, seconds { _ = try? rule.read(plain) })
    #expect(cost < Self.factor * max(fair, 1e-5))
  }

  @Test func `requests full of combining marks cost as much as plain ones`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let (hostile, plain) = (Self.marks(60_000), Self.plain(60_000))
      let (hostileHeader, plainHeader) = (Self.marks(14_000), Self.plain(14_000))
      func login(_ text: String) -> String { #"{"login": "\#(text)", "password": "x"}"# }
      let encoded = Self.marks(5000).utf8.map { "%" + String($0, radix: 16) }.joined()
      let encodedPlain = Self.plain(5000).utf8.map { "%" + String($0, radix: 16) }.joined()
      func get(_ path: String, _ headers: [(String, String)] = []) -> Sent { Sent(target: path, headers: headers) }
      func post(_ path: String, _ body: String) -> Sent { Sent(target: path, body: body) }
      let validation = "/api/v1/cache/validate/\(ana.id)"
      var pairs: [(what: String, hostile: Sent, plain: Sent)] = [
        ("a login", post("/api/v1/auth/login", login(hostile)), post("/api/v1/auth/login", login(plain))),
        ("a validation", post(validation, #"{"\#(hostile)": 1}"#), post(validation, #"{"\#(plain)": 1}"#)),
      ]
      for start in ["friends?cursor=", "friend-requests?direction=", "users?query=", "users/"] {
        pairs.append((start, get("/api/v1/\(start)\(encoded)"), get("/api/v1/\(start)\(encodedPlain)")))
      }
      for name in ["Authorization", "Content-Type", "If-None-Match", "X-Request-Id", "Expect", "Accept", "Connection"] {
        let prefix = name == "Authorization" ? "Bearer " : ""
        pairs.append(
          (
            name, get("/api/v1/users/me", [(name, prefix + hostileHeader)]),
            get("/api/v1/users/me", [(name, prefix + plainHeader)])
          ))
      }
      for (what, hostile, plain) in pairs {
        func fastest(_ sent: Sent) async throws -> Duration {
          var best = Duration.seconds(1000)
          for _ in 1...5 {
            let token = sent.headers.first?.0 == "Authorization" ? nil : ana.accessToken
            let start = ContinuousClock.now
            let response = try await app.sendRaw(
              sent.body == nil ? "GET" : "POST", sent.target, body: sent.body.map { Array($0.utf8) },
              headers: sent.headers, token: token)
            best = min(best, ContinuousClock.now - start)
            #expect((200..<500).contains(response.status), "\(what): \(response.status)")
          }
          return best
        }
        let (cost, fair) = (try await fastest(hostile), try await fastest(plain))
        #expect(cost < fair * Self.factor, "\(what): \(cost) and \(fair)")
      }
    }
  }
}
