import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A phone's copies of its user's collections, on disk: what an app shows at once, online or not, and brings up to date
/// at launch with one request. Take this file into your app; it needs Foundation only.
///
///     let cache = try CollectionCache(folder: folder, server: server, userID: me) { request in
///       var request = request
///       request.setValue("Bearer \(accessToken)", forHTTPHeaderField: "Authorization")
///       let (data, response) = try await URLSession.shared.data(for: request)
///       return (data, (response as? HTTPURLResponse)?.statusCode ?? 0)
///     }
///     show(try await cache.items(of: .friends, as: Friend.self))      // as of last time
///     try await cache.refresh()
///     show(try await cache.items(of: .friends, as: Friend.self))      // as of now
actor CollectionCache {
  enum Name: String, CaseIterable, Codable, Sendable {
    case profile, friends, friendRequests, sentFriendRequests, events, invitations, blocks, notifications
    case notificationPreferences

    /// Of its GET.
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

  /// The server answered, and not with what was asked for.
  struct Refusal: Error {
    let status: Int
    let body: Data
  }

  private struct Copy: Codable {
    /// Echoed as it came. A `Date` cannot hold its microseconds exactly.
    let timestamp: String
    /// A JSON array.
    let items: Data
  }

  /// Sends a request with the user's access token, and returns the answer's body and status.
  typealias Fetch = @Sendable (URLRequest) async throws -> (body: Data, status: Int)

  private let folder: URL
  private let server: URL
  private let userID: String
  private let fetch: Fetch
  private var copies: [Name: Copy] = [:]

  /// - Parameters:
  ///   - folder: each user's own; made if it is not there.
  ///   - server: such as `https://api.example.com`.
  init(folder: URL, server: URL, userID: String, fetch: @escaping Fetch) throws {
    self.folder = folder
    self.server = server
    self.userID = userID
    self.fetch = fetch
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for name in Name.allCases {
      // A copy that cannot be read is none: it is fetched again.
      guard let data = try? Data(contentsOf: Self.file(of: name, in: folder)) else { continue }
      copies[name] = try? JSONDecoder().decode(Copy.self, from: data)
    }
  }

  /// What is on the phone. Nil if the collection was never fetched.
  func items<Item: Decodable & Sendable>(of name: Name, as: Item.Type = Item.self) throws -> [Item]? {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    return try copies[name].map { try decoder.decode([Item].self, from: $0.items) }
  }

  /// Brings all copies up to date: one request, which brings along what is stale and small, and one more for each page of
  /// what is long.
  ///
  /// - Returns: false without a network: all copies are those of last time.
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

  /// When the user signs out.
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
      // A list has its items in pages; the profile is one object.
      items += page["items"] as? [Any] ?? [page]
      // The first page's: if something changes before the last one is read, the copy is stale already.
      timestamp = timestamp ?? page["timestamp"] as? String
      cursor = page["nextCursor"] as? String
    } while cursor != nil
    if let timestamp { try keep(items, timestamp, as: name) }
  }

  private func keep(_ items: [Any], _ timestamp: String, as name: Name) throws {
    let copy = Copy(timestamp: timestamp, items: try JSONSerialization.data(withJSONObject: items))
    // Items and timestamp in one file, which is replaced as a whole: they never come apart.
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
