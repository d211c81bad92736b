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
    /// Why the other ones are not.
    var error: MusterError?
    /// Why a copy could not be written to the disk. The lists are right all the same.
    var diskError: StoreError?
  }

  private static let proofsName = "proofs.json"
  /// The digests that a validation sends at once, 11 bytes each. With more, it asks with the stamps first: mostly, few
  /// copies are stale.
  private static let maximumDigests = 500

  private let client: MusterClient
  private let folder: StoreFolder
  private let now: @Sendable () -> Date
  private var copies: [CacheCollection: StoredCopy] = [:]
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
      if let proof = proofs[collection], proof.stamp == copy.stamp {
        copy.provedAt = proof.at
        proved[collection] = proof.request
        requests.pass(proof.request)
      }
      copies[collection] = copy
      undecodable[collection] = result.lists.set(collection, to: copy)
      result.statuses[collection] = status(of: collection)
      result.changed.insert(collection)
    }
    return result
  }

  /// Brings copies up to date. What succeeds is kept, whatever happens to the rest.
  ///
  /// - Parameter lengths: the number of items to keep; without a number, all of them.
  func validate(_ collections: Set<CacheCollection>, lengths: [CacheCollection: Int]) async -> Result {
    var result = Result()
    var updates = collections.map {
      CopyUpdate($0, from: copies[$0], length: lengths[$0] ?? .max)
    }
    do {
      while try await advance(&updates) {}
    } catch {
      result.error = Self.reason(error)
    }
    for update in updates { finish(update, in: &result) }
    for collection in collections { result.statuses[collection] = status(of: collection) }
    save(in: &result)
    return result
  }

  /// Sends the next request.
  ///
  /// - Returns: false if no update needs one.
  private func advance(_ updates: inout [CopyUpdate]) async throws -> Bool {
    var asking = updates.indices.filter { updates[$0].need == .verdict }
    guard !asking.isEmpty else { return false }
    let digestsToSpare = asking.reduce(0) { $0 + updates[$1].digestsToSpare }
    let asksForStamps = digestsToSpare > Self.maximumDigests
    if asksForStamps { asking.removeAll { !updates[$0].mayBeFresh } }
    let claims = asking.map { index in
      let claim = updates[index].claim
      return (updates[index].collection, asksForStamps ? Claim(timestamp: claim.timestamp) : claim)
    }
    let (sentAt, number) = (now(), requests.next())
    do {
      let verdicts = try await Sender.$actingUser.withValue(folder.user) {
        try await client.cache.validate(
          Dictionary(uniqueKeysWithValues: claims), include: asksForStamps ? nil : .changes)
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
      keep(copy, in: &result)
      result.proved.insert(collection)
    case .unknown:
      copies[collection] = nil
      undecodable[collection] = nil
      unsaved.insert(collection)
      result.changed.insert(collection)
      result.proved.insert(collection)
    case .failed(let reason, let beginning):
      if copies[collection] == nil, let beginning { keep(beginning, in: &result) }
      result.error = result.error ?? .unexpectedResponse(status: 200, detail: reason)
    }
  }

  private func keep(_ copy: StoredCopy, in result: inout Result) {
    let old = copies[copy.collection]
    copies[copy.collection] = copy
    guard old?.stamp != copy.stamp || old?.entries != copy.entries || old?.nextCursor != copy.nextCursor else { return }
    unsaved.insert(copy.collection)
    guard old?.entries != copy.entries else { return }
    undecodable[copy.collection] = result.lists.set(copy.collection, to: copy)
    result.changed.insert(copy.collection)
  }

  private func status(of collection: CacheCollection) -> CopyStatus? {
    copies[collection].map {
      CopyStatus($0, provedBy: proved[collection] ?? 0, undecodable: undecodable[collection])
    }
  }

  /// Deletes the user's folder, with the outbox.
  func erase() throws {
    copies = [:]
    try folder.erase()
  }

  private func proofs() -> [CacheCollection: Proof] {
    folder.read(Self.proofsName).flatMap { try? JSONDecoder().decode([CacheCollection: Proof].self, from: $0) } ?? [:]
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
    guard !result.proved.isEmpty else { return }
    do {
      let proofs = copies.mapValues {
        Proof(stamp: $0.stamp, at: $0.provedAt, request: proved[$0.collection] ?? 0)
      }
      try folder.write(try JSONEncoder().encode(proofs), to: Self.proofsName)
    } catch {
      result.diskError = error as? StoreError ?? .disk("\(error)")
    }
  }

  private static func name(of collection: CacheCollection) -> String { "\(collection.rawValue).copy" }

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
}
