import HTTPServer
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
    if include == .changes { try chargeReads(for: verdicts, in: context) }
    if include != .nothing {
      let lists = try await staleItems(of: verdicts, include, for: me)
      add(include, lists, to: &verdicts)
    }
    return .json(Verdicts(verdicts: verdicts))
  }

  private func add(_ include: ValidationInclude, _ lists: [Int: Collection.Items], to verdicts: inout [Verdict]) {
    let digests = dependencies.itemDigests
    var (room, rest) = (ListParts.Size.maximum, lists.count)
    for index in verdicts.indices {
      guard let list = lists[index] else { continue }
      // The stamp that was compared may be older than the items. There is none if the list has changed since the
      // claim's cursor: then the items do not belong to those before.
      verdicts[index].stamp = list.stamp
      guard list.stamp != nil || verdicts[index].readsPastEvents else { continue }
      switch include {
      case .nothing: break
      case .items(let withDigests):
        verdicts[index].addition = .snapshot(Snapshot(list, digests: withDigests ? digests : nil))
      case .changes:
        // Each collection gets its share, so that all of them make progress, and leaves what it does not need.
        let share = ListParts.Size(compared: room.compared / rest, new: room.new / rest)
        rest -= 1
        if let held = verdicts[index].claim.held {
          let parts = ListParts(list, held: held, digests: digests, share: share)
          room.compared -= parts.size.compared
          room.new = max(0, room.new - parts.size.new)
          verdicts[index].addition = .parts(parts)
        } else {
          let claimed = verdicts[index].claim.digests
          let delta = Delta(list, held: claimed, digests: digests, share: share.new, room: room.new)
          room.new -= delta.changed.count
          verdicts[index].addition = .delta(delta)
        }
      }
    }
  }

  private func body(of request: Request, _ include: ValidationInclude) async throws -> JSON? {
    guard include == .changes, request.hasBody else { return try await request.json() }
    return try await request.json(upTo: Self.largest.maximumBody, else: Self.largest.bodyTooLarge)
  }

  /// Counts the request once for each stale collection, and for each further 500 items: comparing them costs as much as
  /// reading several pages. A refused request has counted once.
  private func chargeReads(for verdicts: [Verdict], in context: Context) throws {
    let reads = verdicts.reduce(0) { sum, verdict in
      guard verdict.staleCollection != nil || verdict.readsPastEvents else { return sum }
      return sum + (ValidationInclude.changes.page(for: verdict.claim).limit - 1) / Delta.maximumItems + 1
    }
    if reads > 1 { try dependencies.rateLimits.count(.reads, times: reads - 1, in: context) }
  }

  /// The items of the stale collections, by index in `verdicts`. Each takes one statement, and the statements share a
  /// connection. Past events come last: then they show every change that another list of the response shows.
  private func staleItems(
    of verdicts: [Verdict], _ include: ValidationInclude, for user: User.ID
  ) async throws -> [Int: Collection.Items] {
    let database = dependencies.database
    var lists = try await withThrowingTaskGroup(of: (Int, Collection.Items).self) { group in
      for (index, verdict) in verdicts.enumerated() {
        guard let collection = verdict.staleCollection, verdict.stamp != nil else { continue }
        let page = verdict.claim.held?.boundedPage ?? include.page(for: verdict.claim)
        group.addTask { (index, try await collection.items(of: user, page: page, in: database)) }
      }
      var lists: [Int: Collection.Items] = [:]
      for try await (index, list) in group { lists[index] = list }
      return lists
    }
    for (index, verdict) in verdicts.enumerated() where verdict.readsPastEvents {
      let page = verdict.claim.held?.boundedPage ?? include.page(for: verdict.claim)
      lists[index] = try await Event.list(archived: true, of: user, page: page, in: database).map { $0 }
    }
    return lists
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

/// A phone's claim about its copy of one collection.
private struct CacheClaim: Sendable {
  /// As the phone wrote it.
  let name: String
  let validator: Stamps.Validator
  /// The digests of the copy's items, by key. Not every value needs to be a digest.
  var digests: JSON.Object?
  /// The same without keys, in the order of the copy.
  var held: HeldItems?

  /// Reads the flat map or the one inside `timestamps`. An empty map asks for all collections.
  ///
  /// - Parameter readsDigests: whether a value may be an object with a stamp and digests.
  static func all(in json: JSON?, readsDigests: Bool) throws -> [CacheClaim] {
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
    if members.isEmpty { return Collection.allCases.map { CacheClaim(name: $0.rawValue, validator: .none) } }
    var errors: [FieldError] = []
    let claims = members.map { name, value in
      guard readsDigests, case .object(let copy) = value else {
        return CacheClaim(name: name, validator: Self.validator(value))
      }
      var claim = CacheClaim(name: name, validator: Self.validator(copy["timestamp"] ?? .null))
      if case .object(let digests)? = copy["items"] { claim.digests = digests }
      claim.held = ClaimedList(name).flatMap { HeldItems(copy, of: $0, &errors) }
      return claim
    }
    guard errors.isEmpty else { throw AppError.invalid(errors) }
    return claims
  }

  /// A malformed stamp concerns its own collection only, so that a phone with a damaged copy recovers by itself.
  private static func validator(_ value: JSON) -> Stamps.Validator {
    switch value {
    case .null: .none
    case .string(let text): Stamps.Validator(text)
    case .bool, .number, .array, .object: .malformed
    }
  }
}

/// The part of a stale collection that a validation includes.
private enum ValidationInclude: Equatable {
  case nothing
  /// All items of small collections.
  case items(withDigests: Bool)
  /// Those of the first items that the phone lacks. See ``Delta``.
  case changes

  /// The items to read of a stale collection.
  func page(for claim: CacheClaim) -> PageRequest {
    switch self {
    case .nothing, .items: .all
    case .changes: claim.held?.page ?? PageRequest(limit: Delta.maximumItems)
    }
  }
}

extension QueryFields {
  private enum Word: String, CaseIterable {
    case items, digests, changes
  }

  /// `?include=` of a validation.
  fileprivate mutating func validationInclude() -> ValidationInclude {
    switch words("include", of: Word.allCases) {
    case []: return .nothing
    case [.items]: return .items(withDigests: false)
    case [.items, .digests]: return .items(withDigests: true)
    case [.changes]: return .changes
    default:
      note("include", .notAllowed, "must be items, or items,digests, or changes")
      return .nothing
    }
  }
}

/// The result of validating one collection.
private struct Verdict {
  let claim: CacheClaim
  /// Nil if the server does not know it.
  let collection: Collection?
  /// Whether the claim is about past events, with the digests of a copy: these tell what is stale, without a stamp.
  let readsPastEvents: Bool
  let isFresh: Bool
  /// Nil if the collection is unknown, or has changed since the claim's cursor.
  var stamp: Timestamp?
  /// The contents that a verdict on a stale collection adds.
  var addition: Addition?

  enum Addition {
    case snapshot(Snapshot)
    case delta(Delta)
    case parts(ListParts)
  }

  init(_ claim: CacheClaim, _ stamps: Stamps, now: Timestamp) {
    self.claim = claim
    collection = Collection.claimed(claim.name)
    readsPastEvents = collection == nil && claim.held != nil && ClaimedList(claim.name) == .pastEvents
    let current = collection.flatMap { stamps[$0] }
    // An unknown collection is never fresh.
    isFresh = current.map { claim.validator.isFresh(at: $0, now: now) } ?? false
    // If the list has changed since the claim's cursor, its items need not be read.
    let hasChanged = claim.held?.page.cursor.map { $0.stamp != current } ?? false
    stamp = hasChanged && !isFresh ? nil : current
  }

  /// The collection, if the server knows it and the phone's copy is stale.
  var staleCollection: Collection? { isFresh ? nil : collection }
}

extension Verdict: JSONWritable {
  private enum Warning: String {
    case malformedTimestamp = "malformed-timestamp"
  }

  func write(to json: inout JSONWriter) {
    switch addition {
    case .snapshot(let snapshot): write(snapshot, nil, nil, to: &json)
    case .delta(let delta): write(nil, delta, nil, to: &json)
    case .parts(let parts): write(nil, nil, parts, to: &json)
    case nil: write(nil, nil, nil, to: &json)
    }
  }

  /// Inlined: without an addition, which is the most frequent case, only the first members are left.
  @inline(__always)
  private func write(_ snapshot: Snapshot?, _ delta: Delta?, _ parts: ListParts?, to json: inout JSONWriter) {
    json.verdict(
      invalidate: !isFresh, timestamp: stamp.map(Stamp.init),
      warning: claim.validator == .malformed ? Warning.malformedTimestamp : nil,
      updatedItems: snapshot?.items.map(WrittenJSON.init), digests: snapshot?.digests, keys: delta?.keys,
      changed: (delta?.changed).map(WrittenJSON.init), nextCursor: delta.map(\.next?.text) ?? parts.map(\.next?.text),
      missing: delta?.missing, parts: parts?.parts)
  }
}

extension Request {
  /// Whether an `If-None-Match` names this tag.
  func alreadyHas(_ eTag: String) -> Bool { EntityTags(.ifNoneMatch, of: self)?.contains(eTag) ?? false }

  /// Responds with 304 if the client's copy of a collection is current, and reads only its stamp then. Otherwise runs
  /// `body`.
  ///
  /// - Parameter collection: nil for a list that is not a collection.
  func unlessUnchanged(
    _ collection: Collection?, of user: User.ID, in database: Database, _ body: () async throws -> Response
  ) async throws -> Response {
    guard let collection, headers[.ifNoneMatch] != nil, uri.queryParameter("cursor") == nil,
      let stamp = try await Stamps.read(collection, of: user, in: database), alreadyHas(Stamp(stamp).eTag)
    else { return try await body() }
    return Response(status: .notModified, headers: [.eTag: Stamp(stamp).eTag])
  }
}
