import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A phone's copies of its user's collections, on disk. An app shows them immediately, online or offline, and updates
/// them at launch with one request. You can copy this file into your app: it needs only Foundation.
///
///     let cache = try CollectionCache(folder: folder, server: server, userID: me) { request in
///       var request = request
///       request.setValue("Bearer \(accessToken)", forHTTPHeaderField: "Authorization")
///       let (data, response) = try await URLSession.shared.data(for: request)
///       return (data, (response as? HTTPURLResponse)?.statusCode ?? 0)
///     }
///     show(try await cache.items(of: .friends, as: Friend.self))      // the stored copy
///     try await cache.refresh()
///     show(try await cache.items(of: .friends, as: Friend.self))      // the current list
actor CollectionCache {
  enum Name: String, CaseIterable, Codable, Sendable {
    case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
    case notificationPreferences

    /// The path of its GET.
    fileprivate var path: String {
      switch self {
      case .profile: "users/me"
      case .friends: "friends?limit=100"
      case .friendRequests: "friend-requests?direction=incoming&limit=100"
      case .sentFriendRequests: "friend-requests?direction=sent&limit=100"
      case .events: "events?limit=100"
      case .invitations: "invitations?limit=100"
      case .blocks: "blocks?limit=100"
      case .notifications: "notifications?limit=100"
      case .notificationPreferences: "notification-preferences"
      }
    }
  }

  /// A response other than the requested data.
  struct Refusal: Error {
    let status: Int
    let body: Data
  }

  private struct Copy: Codable {
    /// The timestamp exactly as received, to be echoed. A `Date` cannot hold its microseconds exactly.
    let timestamp: String
    /// A JSON array.
    let items: Data
  }

  /// Sends a request with the user's access token, and returns the body and status of the response.
  typealias Fetch = @Sendable (URLRequest) async throws -> (body: Data, status: Int)

  private let folder: URL
  private let server: URL
  private let userID: String
  private let fetch: Fetch
  private var copies: [Name: Copy] = [:]

  /// - Parameters:
  ///   - folder: a folder for this user only. Created if it does not exist.
  ///   - server: the base URL, such as `https://api.example.com`.
  init(folder: URL, server: URL, userID: String, fetch: @escaping Fetch) throws {
    self.folder = folder
    self.server = server
    self.userID = userID
    self.fetch = fetch
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for name in Name.allCases {
      // A copy that cannot be read is fetched again.
      guard let data = try? Data(contentsOf: Self.file(of: name, in: folder)) else { continue }
      copies[name] = try? JSONDecoder().decode(Copy.self, from: data)
    }
  }

  /// The items on the phone. Nil if the collection was never fetched.
  func items<Item: Decodable & Sendable>(of name: Name, as: Item.Type = Item.self) throws -> [Item]? {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return try copies[name].map { try decoder.decode([Item].self, from: $0.items) }
  }

  /// Updates all copies. The first request returns the small stale collections. Each page of a long collection takes
  /// one more request.
  ///
  /// - Returns: false without a network. All copies then stay as they are.
  @discardableResult
  func refresh() async throws -> Bool {
    do {
      for (name, verdict) in try await validate() {
        guard verdict["invalidate"] as? Bool != false else { continue }
        if let items = verdict["updatedItems"] as? [Any], let timestamp = verdict["timestamp"] as? String {
          try keep(items, timestamp, as: name)
        } else {
          try await fetchPages(of: name)
        }
      }
      return true
    } catch is URLError {
      return false
    }
  }

  /// Deletes all copies. Call it when the user logs out.
  func forgetEverything() throws {
    copies = [:]
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func validate() async throws -> [(Name, [String: Any])] {
    var claims: [String: Any] = [:]
    for name in Name.allCases {
      if let copy = copies[name] { claims[name.rawValue] = copy.timestamp } else { claims[name.rawValue] = NSNull() }
    }
    let body = try JSONSerialization.data(withJSONObject: claims)
    let answer = try await ask("POST", "cache/validate/\(userID)?include=items", body)
    return Name.allCases.compactMap { name in (answer[name.rawValue] as? [String: Any]).map { (name, $0) } }
  }

  private func fetchPages(of name: Name) async throws {
    var items: [Any] = []
    var timestamp: String?
    var cursor: String?
    repeat {
      let page = try await ask("GET", name.path + (cursor.map { "&cursor=\($0)" } ?? ""))
      // Lists have pages of items. The profile is a single object.
      items += page["items"] as? [Any] ?? [page]
      // Keep the first page's timestamp: if something changes while later pages are read, the copy counts as stale.
      timestamp = timestamp ?? page["timestamp"] as? String
      cursor = page["nextCursor"] as? String
    } while cursor != nil
    if let timestamp { try keep(items, timestamp, as: name) }
  }

  private func keep(_ items: [Any], _ timestamp: String, as name: Name) throws {
    let copy = Copy(timestamp: timestamp, items: try JSONSerialization.data(withJSONObject: items))
    // One file for both, replaced atomically, so that items and timestamp always match.
    try JSONEncoder().encode(copy).write(to: Self.file(of: name, in: folder), options: .atomic)
    copies[name] = copy
  }

  private func ask(_ method: String, _ path: String, _ body: Data? = nil) async throws -> [String: Any] {
    guard let url = URL(string: server.absoluteString + "/api/v1/" + path) else {
      throw Refusal(status: 0, body: Data(path.utf8))
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    if let body {
      request.httpBody = body
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    }
    let (data, status) = try await fetch(request)
    guard status == 200, let answer = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
      throw Refusal(status: status, body: data)
    }
    return answer
  }

  private static func file(of name: Name, in folder: URL) -> URL {
    folder.appendingPathComponent(name.rawValue + ".json")
  }
}
