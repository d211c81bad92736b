import Foundation

/// An operation of the API as tests perform it: its request, with a sample of its arguments, who may send it, and whose
/// lists it touches. Suites about all operations take them from ``all``, so that a new one is a line of ``table``, if it
/// takes a body, one of ``bodies``, and if it touches lists, one of ``touches``.
public struct Act: Sendable, CustomStringConvertible {
  /// The caller's relation to the owner of the thing that the call names. The columns have this order, and so have the
  /// calls of `AuthorizationTests`. The owner's call comes last: the other callers' attempts must not have changed
  /// anything. Only what a co-host may do is done when the owner repeats it. A co-host is also a friend, and hosts the
  /// owner's event.
  public enum Caller: String, CaseIterable, Sendable {
    case stranger, friend, invitee, blocked, cohost, owner
  }

  /// As in the document's `operationId`.
  public let name: String
  public let method: String
  /// With the names of things.
  private let path: String
  public let needsToken: Bool
  public let takesToken: Bool
  public let statuses: [Caller: Int]
  private let slugs: [Int: String]
  private let ownSlugs: [Caller: [Int: String]]

  public var isRead: Bool { method == "GET" }
  /// As in the router, with the names of its parameters.
  public var template: String { path.replacing(/:\w+}/, with: "}") }
  public var parameterCount: Int { template.split(separator: "/").count { $0.hasPrefix("{") } }
  public var description: String { "\(method) \(path)" }

  public func slug(of status: Int, for caller: Caller) -> String? { ownSlugs[caller]?[status] ?? slugs[status] }

  /// - Parameter thing: what stands for a name.
  public func path(naming thing: (_ name: String) throws -> String) rethrows -> String {
    try path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
      guard segment.hasPrefix("{"), let colon = segment.firstIndex(of: ":") else { return String(segment) }
      return try thing(String(segment[segment.index(after: colon)...].dropLast()))
    }.joined(separator: "/")
  }

  /// - Throws: ``Unexpected`` if a thing is missing.
  public func path(_ things: [String: String]) throws -> String {
    try path { name in
      guard let thing = things[name] else { throw Unexpected("\(self) names a thing that is missing: \(name)") }
      return thing
    }
  }

  /// The sample of its body; nil if it takes none.
  ///
  /// - Parameter word: what stands for a word, such as `<other>`.
  public func body(_ word: (_ name: String) throws -> String) rethrows -> String? {
    guard let sample = Self.bodies[name] else { return nil }
    var body = ""
    var rest = sample[...]
    while let start = rest.firstIndex(of: "<"), let end = rest[start...].firstIndex(of: ">") {
      body += rest[..<start]
      body += try word(String(rest[rest.index(after: start)..<end]))
      rest = rest[rest.index(after: end)...]
    }
    return body + rest
  }

  /// Whose lists it touches, and which, such as `invitee: events, invitations; owner: events`. Empty if it touches none.
  public var touches: String { Self.touches[name] ?? Self.touches["\(name) \(lastThing)"] ?? "" }

  private var lastThing: Substring { path.split(separator: ":").last?.prefix { $0 != "}" } ?? "" }

  /// Whether a request calls this.
  ///
  /// - Parameter path: the whole path, without a query.
  public func matches(_ method: String, _ path: String) -> Bool {
    let (mine, its) = (template.split(separator: "/"), path.split(separator: "/"))
    return method == self.method && mine.count == its.count
      && zip(mine, its).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
  }

  // MARK: The table

  /// All lines of the table.
  public static let all = rows()

  private static let named = Dictionary(all.map { ($0.name, $0) }) { first, _ in first }

  /// The first line of an operation.
  ///
  /// - Throws: ``Unexpected`` if it has none.
  public static func named(_ name: String) throws -> Act {
    guard let act = named[name] else { throw Unexpected("no act is named \(name)") }
    return act
  }

  private static func rows() -> [Act] {
    let lines = table.split(separator: "\n")
    let columns = lines[0].split(separator: " ").compactMap { Caller(rawValue: String($0)) }
    precondition(columns == Caller.allCases, "the table needs these columns: \(Caller.allCases.map(\.rawValue))")
    return lines.dropFirst().map { Act(String($0)) }
  }

  private init(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    let first = 4 + Caller.allCases.count
    precondition(words.count >= first, line)
    (name, method) = (words[0], words[1])
    path = words[2].hasPrefix("/") ? words[2] : "/api/v1/" + words[2]
    (needsToken, takesToken) = (words[3] == "needed", words[3] == "optional")
    statuses = Dictionary(uniqueKeysWithValues: zip(Caller.allCases, words[4..<first].map { Int($0) ?? 0 }))
    var slugs: [Int: String] = [:]
    var ownSlugs: [Caller: [Int: String]] = [:]
    for word in words[first...] {
      let parts = word.split(separator: ":").map(String.init)
      if parts.count == 3, let caller = Caller(rawValue: parts[0]) {
        ownSlugs[caller, default: [:]][Int(parts[1]) ?? 0] = parts[2]
      } else {
        precondition(parts.count == 2, line)
        slugs[Int(parts[0]) ?? 0] = parts[1]
      }
    }
    (self.slugs, self.ownSlugs) = (slugs, ownSlugs)
    precondition(
      needsToken || ["none", "optional"].contains(words[3]) && Set(statuses.values).count == 1, line)
  }
}
