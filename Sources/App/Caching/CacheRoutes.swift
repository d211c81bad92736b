import Hummingbird
import NIOCore
import Postgres

struct CacheRoutes {
  private let database: Database
  private let stamps: DataLoader<User.ID, Row>

  init(_ dependencies: Dependencies) {
    database = dependencies.database
    stamps = Stamps.reads(in: database)
  }

  func add(to routes: Routes) {
    routes.post("cache/validate/{userId}", readsQuery: true, limit: .reads, use: validate)
  }

  private enum Include: String, CaseIterable {
    case items
  }

  /// Tells a phone which of its collections are stale. This takes one indexed read, whatever their size, which
  /// concurrent requests share. With `include=items`, each stale collection takes one more read, and small collections
  /// are included in the response.
  @Sendable private func validate(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    guard context.parameters.get("userId").flatMap({ User.ID($0) }) == me else { throw AppError.notYours }
    let include = try request.query { $0.word("include", of: Include.allCases) }
    let claims = try Self.claims(try await request.json())
    let now = Timestamp.now()
    guard let stamps = try await stamps.value(for: me).map(Stamps.init) else { throw AppError.sessionEnded }
    var verdicts = claims.map { name, claim in
      // An unknown collection is never fresh.
      let collection = name.isASCII ? Collection.named[name] : nil
      let stamp = collection.flatMap { stamps[$0] }
      let isFresh = stamp.map { claim.isFresh(at: $0, now: now) } ?? false
      return Verdict(
        name: name, collection: collection, isFresh: isFresh, isMalformed: claim == .malformed, stamp: stamp)
    }
    if include == .items {
      for (index, whole) in try await snapshots(of: verdicts, for: me) {
        // The snapshot's stamp replaces the one that was compared, because the items may be newer.
        verdicts[index].stamp = whole.stamp
        verdicts[index].items = whole.items
      }
    }
    return .json(Verdicts(verdicts: verdicts))
  }

  /// Snapshots of the stale collections, by index in `verdicts`. Each takes one statement, and the statements share a
  /// connection.
  private func snapshots(of verdicts: [Verdict], for user: User.ID) async throws -> [Int: Snapshot] {
    let database = database
    return try await withThrowingTaskGroup(of: (Int, Snapshot).self) { group in
      for (index, verdict) in verdicts.enumerated() {
        guard !verdict.isFresh, let collection = verdict.collection else { continue }
        group.addTask { (index, try await collection.snapshot(of: user, in: database)) }
      }
      var snapshots: [Int: Snapshot] = [:]
      for try await (index, whole) in group { snapshots[index] = whole }
      return snapshots
    }
  }

  /// Reads the flat map or the one inside `timestamps`. An empty map asks for all collections. A malformed stamp
  /// concerns its own collection only, so that a phone with a damaged copy recovers by itself.
  private static func claims(_ json: JSON?) throws -> [(name: String, claim: Stamps.Claim)] {
    var members: JSON.Object = [:]
    if let json {
      guard case .object(let outer) = json else {
        throw AppError(.malformed, "malformed-body", "The body must be a JSON object, not \(json.kind).")
      }
      members = outer
      if let inner = outer["timestamps"] {
        guard case .object(let named) = inner else {
          throw AppError.invalid("timestamps", .wrongType, "must be an object, not \(inner.kind)")
        }
        members = named
      }
    }
    if members.isEmpty { return Collection.allCases.map { ($0.rawValue, .none) } }
    return members.map { name, value in
      switch value {
      case .null: (name, .none)
      case .string(let text): (name, Stamps.Claim(text))
      default: (name, .malformed)
      }
    }
  }
}

private struct Verdict {
  let name: String
  /// Nil if the collection is unknown.
  let collection: Collection?
  let isFresh: Bool
  /// Whether the phone's stamp was not a time.
  let isMalformed: Bool
  var stamp: Timestamp?
  /// A JSON array.
  var items: [UInt8]?
}

private struct Verdicts: JSONWritable {
  let verdicts: [Verdict]

  func write(to json: inout JSONWriter) {
    json.object {
      for verdict in verdicts {
        $0.member(name: verdict.name) {
          $0.object {
            $0.member("invalidate", !verdict.isFresh)
            $0.member("timestamp", verdict.stamp.map(Stamp.init))
            if verdict.isMalformed { $0.member("warning", "malformed-timestamp") }
            if let items = verdict.items { $0.member("updatedItems") { $0.raw(items) } }
          }
        }
      }
    }
  }
}

extension AppError {
  static let notYours = AppError(.forbidden, "not-yours", "The user in the path is not the one in the token.")
}
