import Hummingbird
import NIOCore
import Postgres

struct CacheRoutes {
  private let dependencies: Dependencies
  private let stamps: DataLoader<User.ID, Row>
  /// With `include=changes`: the digests of some 5,000 items.
  private static let largest = Operation.validateCache.attributes

  init(_ dependencies: Dependencies) {
    self.dependencies = dependencies
    stamps = Stamps.reads(in: dependencies.database)
  }

  /// Responds with which of a phone's collections are stale. This takes one indexed read, whatever their size, which
  /// concurrent requests share. With `include`, each stale collection takes one more read.
  @Sendable func validate(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    guard context.parameters.get("userId").flatMap({ User.ID($0) }) == me else { throw AppError.notYours }
    let include = try request.query { $0.validationInclude() }
    if include == .nothing { return try await verdicts(on: request, .nothing, for: me, context) }
    return try await GlobalPool.run { try await verdicts(on: request, include, for: me, context) }
  }

  private func verdicts(
    on request: Request, _ include: ValidationInclude, for me: User.ID, _ context: Context
  ) async throws -> Response {
    let claims = try CacheClaim.all(in: try await body(of: request, include), readsDigests: include == .changes)
    let now = Timestamp.now()
    guard let stamps = try await stamps.value(for: me).map(Stamps.init) else { throw AppError.sessionEnded }
    var verdicts = claims.map { Verdict($0, stamps, now: now) }
    if include == .changes { try countReads(for: verdicts, in: context) }
    if let page = include.page {
      let lists = try await staleItems(of: verdicts, page: page, for: me)
      add(include, lists, to: &verdicts)
    }
    return .json(Verdicts(verdicts: verdicts))
  }

  private func add(_ include: ValidationInclude, _ lists: [Int: Collection.Items], to verdicts: inout [Verdict]) {
    let digests = dependencies.itemDigests
    var (room, rest) = (Delta.maximumChanged, lists.count)
    for index in verdicts.indices {
      guard let list = lists[index] else { continue }
      // The stamp that was compared may be older than the items.
      verdicts[index].stamp = list.stamp
      switch include {
      case .nothing: break
      case .items(let withDigests):
        verdicts[index].addition = .snapshot(Snapshot(list, digests: withDigests ? digests : nil))
      case .changes:
        // Each collection gets its share, so that all of them make progress, and leaves what it does not need.
        let delta = Delta(list, held: verdicts[index].claim.digests, digests: digests, share: room / rest, room: room)
        room -= delta.changed.count
        rest -= 1
        verdicts[index].addition = .delta(delta)
      }
    }
  }

  private func body(of request: Request, _ include: ValidationInclude) async throws -> JSON? {
    guard include == .changes, request.hasBody else { return try await request.json() }
    return try await request.json(upTo: Self.largest.maximumBody, else: Self.largest.bodyTooLarge)
  }

  /// Counts the request once for each stale collection: comparing a whole list costs as much as reading several pages
  /// of it.
  private func countReads(for verdicts: [Verdict], in context: Context) throws {
    for _ in verdicts.filter({ $0.staleCollection != nil }).dropFirst() {
      try dependencies.rateLimits.count(.reads, in: context)
    }
  }

  /// The items of the stale collections, by index in `verdicts`. Each takes one statement, and the statements share a
  /// connection.
  private func staleItems(
    of verdicts: [Verdict], page: PageRequest, for user: User.ID
  ) async throws -> [Int: Collection.Items] {
    let database = dependencies.database
    return try await withThrowingTaskGroup(of: (Int, Collection.Items).self) { group in
      for (index, verdict) in verdicts.enumerated() {
        guard let collection = verdict.staleCollection else { continue }
        group.addTask { (index, try await collection.items(of: user, page: page, in: database)) }
      }
      var lists: [Int: Collection.Items] = [:]
      for try await (index, list) in group { lists[index] = list }
      return lists
    }
  }
}

private struct Verdicts: JSONWritable {
  let verdicts: [Verdict]

  func write(to json: inout JSONWriter) {
    json.object {
      for verdict in verdicts { $0.member(name: verdict.claim.name) { verdict.write(to: &$0) } }
    }
  }
}

extension AppError {
  static let notYours = AppError(.forbidden, "not-yours", "The user in the path is not the one in the token.")
}
