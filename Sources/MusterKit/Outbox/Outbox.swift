import Foundation
import Observation

/// Pending writes, and those that were refused. Its files are written off the main actor.
@MainActor
@Observable
public final class Outbox {
  /// Writes that the lists show as if they had happened, in order.
  public private(set) var pending: [PendingWrite] = []
  /// Writes that failed or whose outcome is unknown, until the app dismisses them or sends them again. They
  /// outlive the app.
  public private(set) var refusals: [RefusedWrite] = []

  @ObservationIgnored private var records: [OutboxRecord]
  /// Writes whose files are damaged.
  @ObservationIgnored private var damaged: [RefusedWrite]
  @ObservationIgnored private var dismissed: Set<OutboxRecord.ID> = []
  @ObservationIgnored private let files: OutboxFiles
  /// Writes that are not in their files yet. They are not sent.
  @ObservationIgnored private var unsaved: Set<OutboxRecord.ID> = []
  /// The new writes for refused ones that were sent again. The keys are the ids of the refused writes.
  @ObservationIgnored private var sentAgain: [OutboxRecord.ID: PendingWrite] = [:]
  /// Records whose files are older, because the disk was full.
  @ObservationIgnored private var unwritten: Set<OutboxRecord.ID> = []
  /// Why they are.
  @ObservationIgnored private(set) var diskError: StoreError?
  /// Writes the file of the newest write, after those of the earlier ones, so that writes keep their order.
  @ObservationIgnored private var saving: Task<OutboxRecord, any Error>?

  init(_ files: OutboxFiles) {
    self.files = files
    let contents = files.read() ?? OutboxFiles.Contents()
    records = contents.records.values.sorted(by: OutboxRecord.isBefore)
    damaged = contents.damaged
    show()
  }

  /// Forgets a refusal that the user has seen, and erases its file.
  ///
  /// - Throws: ``StoreError``
  public func dismiss(_ refusal: RefusedWrite) async throws {
    guard refusals.contains(where: { $0.id == refusal.id }) else { return }
    try await files.erase(refusal.id)
    if let picture = refusal.write?.picture { try await files.erase(picture) }
    dismissed.insert(refusal.id)
    remove(refusal.id)
    show()
  }

  /// Whether a write about an event, a request, a guest, a user or a report is pending.
  public func isPending<Thing>(_ subject: Identifier<Thing>) -> Bool {
    pending.contains { $0.write.names(subject.rawValue) }
  }
}

extension Outbox {
  /// The first write that waits to be sent.
  var next: OutboxRecord? {
    records.first { $0.state == .waiting }.flatMap { unsaved.contains($0.id) ? nil : $0 }
  }

  var unsettled: [OutboxRecord] { records.filter(\.isUnsettled) }

  /// Writes the picture of a write that is about to be added.
  ///
  /// - Throws: ``StoreError``
  func keep(_ picture: NewPicture) async throws -> NewPicture { try await files.keep(picture) }

  /// Erases the picture of a write that could not be added.
  func drop(_ picture: NewPicture) async { try? await files.erase(picture) }

  /// Shows a write, and writes it to the disk.
  ///
  /// - Parameters:
  ///   - basis: what the user saw.
  ///   - request: the number of the request whose response had it.
  ///   - replaced: the refused write that the user sends again.
  ///   - shown: called as soon as the write is in the line.
  /// - Throws: ``StoreError``. The write is then gone, and the refusal is back.
  func add(
    _ write: Write, basedOn basis: Basis?, seenIn request: Int?, at time: Date, replacing replaced: OutboxRecord.ID?,
    shown: () -> Void
  ) async throws -> PendingWrite {
    let place = (records.last?.sequence ?? 0) + 1
    let record = OutboxRecord(
      id: UUID(), sequence: place, write: write, basis: basis, seenIn: request, key: .random(), createdAt: time,
      replaces: replaced)
    records.append(record)
    if let replaced { sentAgain[replaced] = PendingWrite(record) }
    unsaved.insert(record.id)
    show()
    shown()
    do {
      // Cancelled or not: the user has seen it.
      let task = Task { [saving, files] in
        _ = await saving?.result
        return try await files.enqueue(record)
      }
      saving = task
      let saved = try await task.value
      unsaved.remove(record.id)
      change(record.id) { ($0.sequence, $0.madeAt) = (saved.sequence, saved.madeAt) }
      records.sort(by: OutboxRecord.isBefore)
      show()
    } catch {
      unsaved.remove(record.id)
      records.removeAll { $0.id == record.id }
      if let replaced { sentAgain[replaced] = nil }
      show()
      throw error
    }
    return PendingWrite(record)
  }

  /// The write as which the user sent a refused one again.
  ///
  /// - Throws: ``StoreError/dismissed`` if there is neither this write nor the refusal.
  func replacement(of refusal: RefusedWrite) throws -> PendingWrite? {
    if let sent = sentAgain[refusal.id] { return sent }
    if let waiting = unsettled.first(where: { $0.replaces == refusal.id }) { return PendingWrite(waiting) }
    guard refusals.contains(where: { $0.id == refusal.id }) else { throw StoreError.dismissed }
    return nil
  }

  /// Erases the refused write that the user sent again as this one.
  ///
  /// - Throws: ``StoreError``
  func eraseReplaced(by record: OutboxRecord) async throws {
    guard let replaced = record.replaces else { return }
    try await files.erase(replaced)
    remove(replaced)
  }

  /// The service has carried out a write: on the disk first.
  ///
  /// - Parameter state: the object with the write, on which later ones are based, unless it has what others have made.
  func complete(_ record: OutboxRecord, with state: NewerState?) async {
    let number = await files.nextNumber()
    await move(record) { record in
      (record.state, record.carriedOut) = (.sent, number)
      let isKnown = state.map { record.write.hasMade($0, onTopOf: record.basis) } ?? true
      if isKnown { record.basis = state.flatMap(Basis.init) ?? record.write.ownResult }
    }
  }

  /// Leaves an answer out that has never left the phone, if a later one to the same event counts instead. The next one
  /// that may bring people takes over the plus-ones, unless it names some.
  ///
  /// - Parameter wasShown: whether the lists have shown the answer. Otherwise no one has seen its plus-ones.
  /// - Returns: whether it is left out.
  /// - Throws: ``StoreError``
  func leaveOut(_ record: OutboxRecord, wasShown: Bool) async throws -> Bool {
    guard record.attemptedAt == nil, case .answer(_, let event, let plusOnes) = record.write,
      let place = records.firstIndex(where: { $0.id == record.id })
    else { return false }
    let later = records[(place + 1)...].filter { $0.state == .waiting && $0.write.target == .answer(event) }
    guard let first = later.first, !unsaved.contains(first.id) else { return false }
    let heir = later.first { if case .answer(.declined, _, nil) = $0.write { false } else { true } }
    if wasShown, let plusOnes, var heir, case .answer(let answer, _, nil) = heir.write {
      guard !unsaved.contains(heir.id) else { return false }
      heir.write = .answer(answer, to: event, plusOnes: plusOnes)
      try await files.replace(heir)
      change(heir.id) { $0.write = heir.write }
    }
    // On the disk first: if the app ended, this one would be sent after the later one.
    var left = record
    (left.state, left.basis) = (.sent, nil)
    try await files.replace(left)
    change(record.id) { ($0.state, $0.basis) = (.sent, nil) }
    show()
    return true
  }

  func refuse(_ record: OutboxRecord, _ reason: RefusedWrite.Reason) async {
    await move(record) { $0.state = .refused(reason) }
  }

  private func move(_ record: OutboxRecord, _ move: (inout OutboxRecord) -> Void) async {
    var moved = records.first { $0.id == record.id } ?? record
    move(&moved)
    await save(moved)
    change(record.id, move)
    show()
  }

  /// The basis of a new write after the pending ones of the same object.
  ///
  /// - Parameter basis: what the copies have.
  func basis(_ basis: Basis?, of write: Write) -> Basis? { self.basis(basis, of: write, after: unsettled) }

  /// The basis of a waiting write after those of the same object that were carried out. Another process may have sent and
  /// settled some of them, while this one has shown what was before.
  func basis(of record: OutboxRecord) async -> Basis? {
    var settled: [OutboxRecord] = []
    // One that the user made later may have been sent first. It is newer than this one.
    if let number = record.seenIn {
      settled = await files.settled(after: number).filter { ($0.madeAt ?? 0) < (record.madeAt ?? .max) }
    }
    let known = Set(settled.map(\.id))
    let sent = records.prefix { $0.id != record.id }.filter { $0.state == .sent && !known.contains($0.id) }
    let earlier = (settled + sent).sorted {
      ($0.carriedOut ?? .max, $0.sequence) < ($1.carriedOut ?? .max, $1.sequence)
    }
    return basis(record.basis, of: record.write, after: earlier)
  }

  private func basis(_ basis: Basis?, of write: Write, after earlier: [OutboxRecord]) -> Basis? {
    guard let target = write.target else { return basis }
    return earlier.filter { $0.write.target == target }.reduce(basis) { basis, earlier in
      basis.map { basis in earlier.basis.map { basis.after(earlier.write, withBasis: $0) } ?? basis }
    }
  }

  /// Whether a waiting write is based on the response to this one.
  func isNeeded(_ record: OutboxRecord) -> Bool {
    guard let target = record.write.target else { return false }
    return records.contains { $0.state == .waiting && $0.write.target == target }
  }

  /// Writes a record's file. If the disk is full, ``reload()`` writes it later. If the app ends before that, the write
  /// is sent again.
  private func save(_ record: OutboxRecord) async {
    do {
      try await files.replace(record)
      unwritten.remove(record.id)
    } catch {
      unwritten.insert(record.id)
      diskError = error as? StoreError ?? .disk("\(error)")
    }
  }

  /// Writes what did not reach the disk before.
  private func saveUnwritten() async {
    for record in records where unwritten.contains(record.id) { await save(record) }
    unwritten.formIntersection(records.map(\.id))
    if unwritten.isEmpty { diskError = nil }
  }

  /// Notes that a request with the write is about to be sent, or that none has left the device: on the disk first.
  ///
  /// - Parameter time: the service's, before the request; nil if no request has left the device.
  /// - Throws: ``StoreError``
  func noteAttempt(_ record: OutboxRecord, at time: Date?) async throws {
    guard record.notesAttempts, var noted = records.first(where: { $0.id == record.id }), noted.attemptedAt != time
    else { return }
    noted.attemptedAt = time
    try await files.replace(noted)
    change(record.id) { $0.attemptedAt = time }
  }

  /// Gives a write another key, because the service knows the current one from a request with other words.
  ///
  /// - Throws: ``StoreError``
  func changeKey(of record: OutboxRecord) async throws {
    guard var changed = records.first(where: { $0.id == record.id }) else { return }
    changed.key = .random()
    try await files.replace(changed)
    change(record.id) { $0.key = changed.key }
  }

  /// Bases a write on another state.
  ///
  /// - Throws: ``StoreError``
  func changeBasis(of record: OutboxRecord, to basis: Basis) async throws {
    guard var changed = records.first(where: { $0.id == record.id }) else { return }
    changed.basis = basis
    try await files.replace(changed)
    change(record.id) { $0.basis = basis }
  }

  /// Removes what the lists prove. Then call ``eraseSettled(_:)``.
  func settle(_ settled: [OutboxRecord]) {
    guard !settled.isEmpty else { return }
    let ids = Set(settled.map(\.id))
    records.removeAll { ids.contains($0.id) }
    show()
  }

  func eraseSettled(_ settled: [OutboxRecord]) async {
    for record in settled { try? await files.settle(record) }
  }

  /// Whether the event or request that a write names was refused. A write that creates one names only itself, and one
  /// that cancels a request has what it wants.
  func lacksSubject(_ record: OutboxRecord) -> Bool {
    if case .cancelRequest = record.write { return false }
    guard record.write.createdID == nil, let subject = record.write.subject else { return false }
    // A write that is sent again creates the same id as the refused one.
    let makers = records.filter { $0.write.createdID == subject }
    return !makers.isEmpty && makers.allSatisfy { if case .refused = $0.state { true } else { false } }
  }

  /// Shows nothing from now on. The files are erased with their folder.
  func forget() {
    records = []
    damaged = []
    show()
  }

  private func show() {
    let pending = unsettled.map(PendingWrite.init)
    if pending != self.pending { self.pending = pending }
    let replaced = Set(records.compactMap(\.replaces))
    let refusals = (records.compactMap(RefusedWrite.init) + damaged).filter { !replaced.contains($0.id) }
    if refusals != self.refusals { self.refusals = refusals }
  }

  private func remove(_ id: OutboxRecord.ID) {
    records.removeAll { $0.id == id }
    damaged.removeAll { $0.id == id }
  }

  private func change(_ id: OutboxRecord.ID, _ change: (inout OutboxRecord) -> Void) {
    guard let index = records.firstIndex(where: { $0.id == id }) else { return }
    change(&records[index])
  }
}

/// Changes of other processes to the same files.
extension Outbox {
  /// Takes over what other processes have written to the files.
  ///
  /// - Returns: the writes that another process has moved: the lists may not show their effects yet.
  func reload() async -> [OutboxRecord] {
    await saveUnwritten()
    let known = Set(records.map(\.id)).subtracting(unsaved)
    guard let stored = await files.contents() else { return [] }
    let unreadable = stored.unreadable.union(stored.damaged.map(\.id))
    var moved: [OutboxRecord] = []
    records = records.compactMap { record in
      // Records that were added while the files were read stay, and so do those whose files cannot be read.
      guard known.contains(record.id), !unreadable.contains(record.id), !unwritten.contains(record.id) else {
        return record
      }
      let new = Self.next(record, stored: stored.records[record.id])
      if let new, new.state != record.state { moved.append(new) }
      return new
    }
    // Those that were added or removed while the files were read are not news.
    let found = known.union(records.map(\.id))
    for record in stored.records.values where !found.contains(record.id) {
      records.append(record)
      if record.state != .waiting { moved.append(record) }
    }
    records.sort(by: OutboxRecord.isBefore)
    // This process may know better what stands in a damaged file.
    let read = Set(records.map(\.id)).union(dismissed)
    damaged = stored.damaged.filter { !read.contains($0.id) }
    show()
    return moved
  }

  /// The write, with the attempts of other processes. Nil if one of them has sent or refused it.
  func waiting(_ record: OutboxRecord) async -> OutboxRecord? {
    // A file that cannot be read now says nothing new.
    guard let stored = await files.content(of: record) else { return await files.exists(record) ? record : nil }
    guard stored.state == .waiting else { return nil }
    change(record.id) { $0 = stored }
    return records.first { $0.id == record.id }
  }

  /// A record after other processes have worked on its file; nil if nothing is left of it.
  private static func next(_ record: OutboxRecord, stored: OutboxRecord?) -> OutboxRecord? {
    switch record.state {
    case .refused: return stored
    case .waiting where stored != nil: return stored
    // The other process has seen the effect in its lists, or the refusal. This one's lists may not show it yet.
    case .waiting, .sent:
      var new = record
      new.state = .sent
      // Settled writes are read when a later one needs them.
      if stored == nil { new.basis = nil }
      return new
    }
  }
}
