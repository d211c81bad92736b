import Foundation

/// The copies of a user's collections, in memory and in files. Brings them up to date, off the main actor.
actor StoredCopies {
  /// The result of a validation.
  struct Result: Sendable {
    /// Collections whose items may have changed, and their items.
    var changed: Set<CacheCollection> = []
    var lists = Lists()
    /// Of all collections with a copy that were asked for.
    var statuses: [CacheCollection: CopyStatus] = [:]
    /// Collections that are as the service has them, or that the service does not know.
    var proved: Set<CacheCollection> = []
    /// Events that the list had and no longer has.
    var leftEvents: Set<Event.ID> = []
    /// The same of the past events, which are no collection; nil if they were not asked for.
    var past: Past?
    /// Why the other ones are not.
    var error: MusterError?
    /// Why a copy could not be written to the disk. The lists are right all the same.
    var diskError: StoreError?
  }

  /// The state of the past events.
  struct Past: Sendable {
    /// Nil without a copy.
    var status: CopyStatus?
    /// Whether they are as the service has them, or the service does not know the list.
    var isProved = false
    /// Whether the service knows the list. During an update of the service, some processes do not know it yet.
    var isKnown = true
    /// Whether `lists` has them, because they may have changed.
    var hasChanged = false
  }

  private static let proofsName = "proofs.json"
  /// The digests that a validation sends at once, 11 bytes each. With more, it asks with the stamps first: mostly, few
  /// copies are stale.
  private static let maximumDigests = 500

  private let client: MusterClient
  private let folder: StoreFolder
  private let now: @Sendable () -> Date
  private var copies: [CacheCollection: StoredCopy] = [:]
  private var past = PastCopy()
  /// The copies whose files are older. An older file is right for its own stamp.
  private var unsaved: Set<CacheCollection> = []
  private var undecodable: [CacheCollection: UndecodableItems] = [:]
  /// The numbers of the latest requests for a verdict, and of those that have proved the copies.
  private var asked: [CacheCollection: Int] = [:]
  private var proved: [CacheCollection: Int] = [:]
  private let requests: RequestCounter

  init(client: MusterClient, folder: StoreFolder, requests: RequestCounter, now: @escaping @Sendable () -> Date) {
    self.client = client
    self.folder = folder
    self.requests = requests
    self.now = now
  }

  /// Reads the files. A damaged one does not count as a copy.
  func load() -> Result {
    let proofs = proofs()
    var result = Result()
    for collection in CacheCollection.allCases {
      guard let file = folder.read(Self.name(of: collection)),
        var copy = StoredCopy(file: file, of: collection, user: folder.user)
      else { continue }
      if let proof = proofs[collection.rawValue], proof.stamp == copy.stamp {
        copy.provedAt = proof.at
        proved[collection] = proof.request
        requests.pass(proof.request)
      }
      copies[collection] = copy
      undecodable[collection] = result.lists.set(collection, to: copy)
      result.statuses[collection] = status(of: collection)
      result.changed.insert(collection)
    }
    loadPast(proofs, in: &result)
    return result
  }

  private func loadPast(_ proofs: [String: Proof], in result: inout Result) {
    guard let file = folder.read(Self.name(of: PastUpdate.list)),
      var copy = StoredCopy(file: file, of: PastUpdate.list, user: folder.user)
    else { return }
    if let proof = proofs[PastUpdate.list], proof.stamp == copy.stamp {
      copy.provedAt = proof.at
      past.provedBy = proof.request
      requests.pass(proof.request)
    }
    past.copy = copy
    past.undecodable = result.lists.setPastEvents(to: copy)
    result.past = Past(status: past.status, hasChanged: true)
  }

  /// Brings copies up to date. What succeeds is kept, whatever happens to the rest.
  ///
  /// - Parameters:
  ///   - withPast: whether the past events are among them.
  ///   - lengths: the number of items to keep; without a number, all of them.
  func validate(
    _ collections: Set<CacheCollection>, withPast: Bool, lengths: [CacheCollection: Int]
  ) async -> Result {
    var result = Result()
    var updates = collections.map {
      CopyUpdate($0, from: copies[$0], length: lengths[$0] ?? .max)
    }
    var pastUpdate = withPast ? PastUpdate(from: past.copy, at: now()) : nil
    do {
      while try await advance(&updates, &pastUpdate) {}
    } catch {
      result.error = Self.reason(error)
    }
    for update in updates { finish(update, in: &result) }
    for collection in collections { result.statuses[collection] = status(of: collection) }
    if let pastUpdate { finish(pastUpdate, in: &result) }
    save(in: &result)
    return result
  }

  /// Sends the next request.
  ///
  /// - Returns: false if no update needs one.
  private func advance(_ updates: inout [CopyUpdate], _ past: inout PastUpdate?) async throws -> Bool {
    var asking = updates.indices.filter { updates[$0].need == .verdict }
    // A service that does not know the list is asked again only when other lists are validated.
    let wantsPast = past?.need == .verdict && !(updates.isEmpty && self.past.isUnknown)
    guard !asking.isEmpty || wantsPast else { return false }
    let digestsToSpare = asking.reduce(0) { $0 + updates[$1].digestsToSpare }
    let asksForStamps = digestsToSpare > Self.maximumDigests
    if asksForStamps { asking.removeAll { !updates[$0].mayBeFresh } }
    let claims = asking.map { index in
      let claim = updates[index].claim
      return (updates[index].collection, asksForStamps ? Claim(timestamp: claim.timestamp) : claim)
    }
    // Together with the digests of the other lists: the service reads past events after those.
    let asksForPast = wantsPast && !asksForStamps && (asking.isEmpty || past?.isAlone == false)
    let pastClaim = asksForPast ? past?.claim : nil
    let (sentAt, number) = (now(), requests.next())
    do {
      let (verdicts, pastVerdict) = try await Sender.$actingUser.withValue(folder.user) {
        try await client.cache.validate(
          Dictionary(uniqueKeysWithValues: claims), past: pastClaim,
          include: asksForStamps ? nil : .changes)
      }
      if asksForPast {
        past?.take(pastVerdict, sentAt: sentAt, wasAlone: asking.isEmpty)
        self.past.asked = number
      }
      for index in asking {
        let (collection, verdict) = (updates[index].collection, verdicts[updates[index].collection])
        // The first verdict of several dates the list: the others have its stamp.
        if !updates[index].isContinuing { asked[collection] = number }
        if asksForStamps {
          updates[index].takeStampVerdict(verdict, sentAt: sentAt)
        } else {
          updates[index].take(verdict, sentAt: sentAt)
        }
      }
    } catch MusterError.refused(let problem) where problem.type == .invalidFields && !asksForStamps {
      if asking.contains(where: { updates[$0].isContinuing }) {
        for index in asking { updates[index].cursorWasRefused() }
      } else {
        var asksAfresh = false
        if asksForPast, past?.digestsWereRefused() == true { asksAfresh = true }
        for index in asking where updates[index].digestsWereRefused() { asksAfresh = true }
        guard asksAfresh else { throw MusterError.refused(problem) }
      }
    }
    return true
  }

  private func finish(_ update: CopyUpdate, in result: inout Result) {
    let collection = update.collection
    guard case .nothing(let outcome) = update.need else { return }
    switch outcome {
    case .proved(let copy):
      proved[collection] = asked[collection]
      keep(copy, of: collection, in: &result)
      result.proved.insert(collection)
    case .unknown:
      noteLeft(collection, copies[collection], nil, in: &result)
      copies[collection] = nil
      undecodable[collection] = nil
      unsaved.insert(collection)
      result.changed.insert(collection)
      result.proved.insert(collection)
    case .failed(let reason, let beginning):
      if copies[collection] == nil, let beginning { keep(beginning, of: collection, in: &result) }
      result.error = result.error ?? .unexpectedResponse(status: 200, detail: reason)
    }
  }

  private func keep(_ copy: StoredCopy, of collection: CacheCollection, in result: inout Result) {
    let old = copies[collection]
    copies[collection] = copy
    guard old?.stamp != copy.stamp || old?.entries != copy.entries || old?.nextCursor != copy.nextCursor else { return }
    unsaved.insert(collection)
    guard old?.entries != copy.entries else { return }
    noteLeft(collection, old, copy, in: &result)
    undecodable[collection] = result.lists.set(collection, to: copy)
    result.changed.insert(collection)
  }

  /// Compared here, because lists of thousands of events would hold up the main actor.
  private func noteLeft(
    _ collection: CacheCollection, _ old: StoredCopy?, _ new: StoredCopy?, in result: inout Result
  ) {
    guard collection == .events, let old else { return }
    let keys = Set(old.entries.map(\.key)).subtracting((new?.entries ?? []).map(\.key))
    result.leftEvents = Set(keys.compactMap { Event.ID($0) })
  }

  private func finish(_ update: PastUpdate, in result: inout Result) {
    var now = Past()
    let old = past.copy
    switch update.need {
    case .nothing(.proved(let copy)):
      (past.copy, past.provedBy, past.isUnknown, now.isProved) = (copy, past.asked, false, true)
    // The copy stays: the next process may know the list.
    case .nothing(.unknown): (past.isUnknown, now.isProved, now.isKnown) = (true, true, false)
    case .nothing(.failed(let reason, _)):
      result.error = result.error ?? .unexpectedResponse(status: 200, detail: reason)
    case .verdict: (now.isProved, now.isKnown) = (past.isUnknown, !past.isUnknown)
    }
    if old?.stamp != past.copy?.stamp {
      past.isUnsaved = true
      past.undecodable = result.lists.setPastEvents(to: past.copy)
      now.hasChanged = true
    }
    now.status = past.status
    result.past = now
  }

  private func status(of collection: CacheCollection) -> CopyStatus? {
    copies[collection].map {
      CopyStatus($0, provedBy: proved[collection] ?? 0, undecodable: undecodable[collection])
    }
  }

  /// Deletes the user's folder, with the outbox.
  func erase() throws {
    copies = [:]
    past = PastCopy()
    try folder.erase()
  }

  /// By the names of the lists.
  private func proofs() -> [String: Proof] {
    folder.read(Self.proofsName).flatMap { try? JSONDecoder().decode([String: Proof].self, from: $0) } ?? [:]
  }

  /// Writes what is not on the disk yet. What fails is written after the next validation.
  private func save(in result: inout Result) {
    for collection in unsaved {
      do {
        if let copy = copies[collection] {
          try folder.write(try copy.file(of: folder.user), to: Self.name(of: collection))
        } else {
          try folder.remove(Self.name(of: collection))
        }
        unsaved.remove(collection)
      } catch {
        result.diskError = error as? StoreError ?? .disk("\(error)")
      }
    }
    if past.isUnsaved {
      do {
        if let copy = past.copy {
          try folder.write(try copy.file(of: folder.user), to: Self.name(of: PastUpdate.list))
        } else {
          try folder.remove(Self.name(of: PastUpdate.list))
        }
        past.isUnsaved = false
      } catch {
        result.diskError = error as? StoreError ?? .disk("\(error)")
      }
    }
    guard !result.proved.isEmpty || result.past?.isProved == true else { return }
    do {
      var proofs: [String: Proof] = [:]
      for (collection, copy) in copies {
        proofs[collection.rawValue] = Proof(copy, provedBy: proved[collection] ?? 0)
      }
      proofs[PastUpdate.list] = past.copy.map { Proof($0, provedBy: past.provedBy) }
      try folder.write(try JSONEncoder().encode(proofs), to: Self.proofsName)
    } catch {
      result.diskError = error as? StoreError ?? .disk("\(error)")
    }
  }

  private static func name(of collection: CacheCollection) -> String { name(of: collection.rawValue) }

  private static func name(of list: String) -> String { "\(list).copy" }

  private static func reason(_ error: any Error) -> MusterError {
    switch error {
    case let error as MusterError: error
    case is CancellationError: .unreachable("The request was cancelled.")
    default: .unreachable("\(error)")
    }
  }
}

/// When a copy was last proved right. Kept apart from the copies, so that a validation that finds nothing new writes
/// one small file. It holds only for the copy with its stamp.
private struct Proof: Codable, Sendable, Hashable {
  let stamp: Stamp
  /// When the request was sent, by the device's clock.
  let at: Date
  /// The number of the request.
  let request: Int

  init(_ copy: StoredCopy, provedBy request: Int) {
    stamp = copy.stamp
    at = copy.provedAt
    self.request = request
  }
}

/// The copy of the past events.
private struct PastCopy {
  var copy: StoredCopy?
  var undecodable: UndecodableItems?
  /// The numbers of the latest request for a verdict, and of the one that has proved the copy.
  var asked = 0
  var provedBy = 0
  /// Whether the file is older.
  var isUnsaved = false
  /// Whether the service does not know the list.
  var isUnknown = false

  var status: CopyStatus? { copy.map { CopyStatus($0, provedBy: provedBy, undecodable: undecodable) } }
}
