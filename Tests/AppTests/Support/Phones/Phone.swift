import Foundation
import Synchronization
import TestSupport
import Testing

@testable import App

/// The phone of a user who is logged in. It makes the calls that an app makes.
final class Phone: Sendable {
  let app: TestApp
  let username: String
  let id: String
  private let tokens: Mutex<(access: String, refresh: String)>

  init(_ app: TestApp, _ username: String, _ response: APIResponse) throws {
    self.app = app
    self.username = username
    id = try #require(response.json["user"]["id"].string)
    tokens = Mutex(
      (try #require(response.json["accessToken"].string), try #require(response.json["refreshToken"].string)))
  }

  /// The phone of a user whom SQL has created. It has no refresh token.
  init(_ app: TestApp, _ username: String, id: User.ID, accessToken: String) {
    self.app = app
    self.username = username
    self.id = id.description
    tokens = Mutex((accessToken, ""))
  }

  var accessToken: String { tokens.withLock { $0.access } }
  var refreshToken: String { tokens.withLock { $0.refresh } }
  var userID: User.ID { User.ID(id) ?? .new() }

  func send(
    _ method: String, _ path: String, _ body: String? = nil, headers: [(String, String)] = []
  ) async throws -> APIResponse {
    try await app.send(method, path, body: body, headers: headers, token: accessToken)
  }

  /// Sends a request, and expects a status.
  @discardableResult
  func perform(
    _ method: String, _ path: String, _ body: String? = nil, headers: [(String, String)] = [], expecting status: Int,
    sourceLocation: SourceLocation
  ) async throws -> APIResponse {
    let response = try await send(method, path, body, headers: headers)
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response
  }

  /// Performs an act, and expects a status.
  ///
  /// - Parameter things: what its path names.
  @discardableResult
  func act(
    _ name: String, _ things: [String: String], body: String? = nil, headers: [(String, String)] = [], _ status: Int,
    _ sourceLocation: SourceLocation
  ) async throws -> APIResponse {
    let act = try Act.named(name)
    return try await perform(
      act.method, try act.path(things), body, headers: headers, expecting: status, sourceLocation: sourceLocation)
  }

  /// GETs something that must exist.
  func get(_ path: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> JSON {
    let response = try await send("GET", path)
    #expect(response.status == 200, "\(response.body)", sourceLocation: sourceLocation)
    return response.json
  }

  /// All items of a list, page by page.
  ///
  /// - Parameter meanwhile: an action to run between the pages.
  func pages(
    of path: String, limit: Int, meanwhile: (_ page: Int) async throws -> Void = { _ in }
  ) async throws -> [JSON] {
    var items: [JSON] = []
    var cursor: String?
    var number = 0
    repeat {
      let separator = path.contains("?") ? "&" : "?"
      let page = try await get("\(path)\(separator)limit=\(limit)" + (cursor.map { "&cursor=\($0)" } ?? ""))
      items += page["items"].array
      cursor = page["nextCursor"].string
      number += 1
      try await meanwhile(number)
    } while cursor != nil
    return items
  }

  // MARK: Sessions

  /// The password at registration.
  var password: String { "correct horse \(username)" }

  var session: Session.ID {
    get throws { try #require(RefreshToken(refreshToken, keys: app.dependencies.refreshTokenKeys)).session }
  }

  /// The same user's next phone.
  func signInAgain(device: String? = nil) async throws -> Phone {
    try Phone(app, username, try await app.logIn(username, password, device: device))
  }

  /// Verifies an email address with the token that was mailed to it.
  func verify(_ token: String) async throws -> APIResponse {
    try await send("POST", "auth/email/verify", #"{"token": "\#(token)"}"#)
  }

  /// Sends a refresh token and keeps the new tokens, as a phone does.
  @discardableResult
  func refresh(_ token: String? = nil) async throws -> APIResponse {
    let response = try await app.send(
      "POST", "auth/refresh", body: #"{"refreshToken": "\#(token ?? refreshToken)"}"#)
    if let access = response.json["accessToken"].string, let refresh = response.json["refreshToken"].string {
      tokens.withLock { $0 = (access, refresh) }
    }
    return response
  }

  // MARK: Caching

  /// The paths of their GETs.
  static let collections = Dictionary(uniqueKeysWithValues: Collection.allCases.map { ($0, $0.facts.path) })

  /// Reads all collections.
  ///
  /// - Returns: their stamps.
  func refreshLists() async throws -> [Collection: String] {
    var stamps: [Collection: String] = [:]
    for (collection, path) in Self.collections {
      let stamp: String = try #require(try await get(path)["timestamp"].string)
      stamps[collection] = stamp
    }
    return stamps
  }

  /// Validates stamps.
  ///
  /// - Returns: the stale collections.
  func stale(_ stamps: [Collection: String]) async throws -> Set<Collection> {
    let body = stamps.map { "\"\($0.rawValue)\": \"\($1)\"" }.joined(separator: ",")
    let response = try await send("POST", "cache/validate/\(id)", "{\(body)}")
    #expect(response.status == 200, "\(response.body)")
    #expect(response.json.keys == Set(stamps.keys.map(\.rawValue)))
    return Set(stamps.keys.filter { response.json[$0.rawValue]["invalidate"].bool != false })
  }

  /// The collections that `action` makes stale for this phone, after a worker has fanned out its notices.
  func stale(after action: () async throws -> Void) async throws -> Set<Collection> {
    try await app.fanOut()
    let stamps = try await refreshLists()
    try await action()
    try await app.fanOut()
    return try await stale(stamps)
  }

  /// Reads a list repeatedly while `action` runs, and once more afterwards. Every copy with the stamp of the last read
  /// must equal the last read.
  func expectNoStaleCopyCalledFresh(
    of path: String, during action: @escaping @Sendable () async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    async let acted: Void = action()
    var copies: [JSON] = []
    for _ in 0..<6 { copies.append(try await get(path)) }
    try await acted
    let last = try await get(path)
    for copy in copies where copy["timestamp"] == last["timestamp"] {
      #expect(copy == last, sourceLocation: sourceLocation)
    }
  }
}
