import Foundation

/// The files of the outbox: one for each write, named by its place in the order. Several processes may share them.
struct OutboxFiles: Sendable {
  static let subfolder = "outbox"
  /// Of the last writes that are settled. Another process may still show what was before them, and base a write on that.
  private static let settledFolder = "settled"
  private static let maximumSettled = 100
  private static let digits = 12

  let folder: StoreFolder
  private let requests: RequestCounter

  init(_ folder: StoreFolder, numbering requests: RequestCounter) throws {
    self.folder = folder
    self.requests = requests
    for name in [Self.subfolder, Self.settledFolder] { try folder.makeSubfolder(name) }
  }

  struct Contents: Sendable {
    var records: [OutboxRecord.ID: OutboxRecord] = [:]
    /// Files that cannot be read now, or that a later version of the app has written. They stay.
    var unreadable: Set<OutboxRecord.ID> = []
    /// Damaged files, in the order of their writes. They stay until the app dismisses them.
    var damaged: [RefusedWrite] = []
  }

  /// - Returns: nil if the folder cannot be read now.
  func read() -> Contents? {
    guard let names = try? folder.names(in: Self.subfolder) else { return nil }
    var contents = Contents()
    for name in names.sorted() {
      guard let id = Self.id(in: name) else { continue }
      switch file("\(Self.subfolder)/\(name)", id: id) {
      case .record(let record):
        contents.records[id] = record
        requests.pass(max(record.seenIn ?? 0, record.carriedOut ?? 0, record.madeAt ?? 0))
      case .unreadable: contents.unreadable.insert(id)
      case .damaged(let refusal): contents.damaged.append(refusal)
      case nil: break
      }
    }
    return contents
  }

  /// - Returns: nil if there is no file.
  private func file(_ path: String, id: OutboxRecord.ID) -> OutboxFile? {
    if let data = folder.read(path) { return OutboxFile(data, id: id, in: folder.file(Self.subfolder)) }
    return folder.exists(path) ? .unreadable : nil
  }

  /// Whether a user's folder has writes that were not sent, or refusals. Files that cannot be read count.
  static func haveUnsentWrites(in userFolder: URL) -> Bool { files(in: userFolder).contains { !isSent($0) } }

  /// Removes what the service has carried out.
  static func removeSent(in userFolder: URL) {
    for file in files(in: userFolder) {
      guard let record = record(in: file), record.state == .sent else { continue }
      unlink(file.path)
      if let picture = record.write.picture?.file { unlink(picture.path) }
    }
  }

  private static func files(in userFolder: URL) -> [URL] {
    let folder = userFolder.appendingPathComponent(subfolder)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { id(in: $0) != nil && !$0.hasSuffix(StoreFolder.suffix) }.map(folder.appendingPathComponent)
  }

  /// Whether the service has carried out the write in a file. A file that cannot be read may have any.
  private static func isSent(_ file: URL) -> Bool { record(in: file)?.state == .sent }

  private static func record(in file: URL) -> OutboxRecord? {
    guard let id = id(in: file.lastPathComponent), let data = try? Data(contentsOf: file),
      case .record(let record) = OutboxFile(data, id: id, in: file.deletingLastPathComponent())
    else { return nil }
    return record
  }

  private func write(_ record: OutboxRecord) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    try folder.write(encoder.encode(record), to: path(of: record))
  }

  // MARK: Off the main actor

  /// Writes a new record, at its place or at the next free one after it. It is in its file when this returns.
  ///
  /// - Returns: the record, with its place and its number.
  /// - Throws: ``StoreError/disk(_:)``
  func enqueue(_ record: OutboxRecord) async throws -> OutboxRecord {
    var record = record
    let last = try folder.names(in: Self.subfolder).compactMap { Int($0.prefix(Self.digits)) }.max()
    record.sequence = max(record.sequence, (last ?? 0) + 1)
    record.madeAt = requests.next()
    try write(record)
    return record
  }

  /// Writes a record. It is in its file when this returns.
  func replace(_ record: OutboxRecord) async throws { try write(record) }

  /// A number for a write that has just been carried out.
  func nextNumber() async -> Int { requests.next() }

  /// Removes a record that the lists prove from the line, and erases its picture. Its file is put aside if later writes
  /// of the same object may be based on it.
  func settle(_ record: OutboxRecord) async throws {
    if let number = record.carriedOut, record.basis != nil, record.write.target != nil {
      try? folder.move(path(of: record), to: "\(Self.settledFolder)/\(Self.name(number, record.id))")
      removeOldSettled()
    }
    // Also if it could not be put aside.
    try folder.remove(path(of: record))
    if let picture = record.write.picture { try await erase(picture) }
  }

  /// Keeps few files of settled writes, and none for longer than the copies of opened events.
  private func removeOldSettled() {
    let names = ((try? folder.names(in: Self.settledFolder)) ?? []).sorted()
    for (place, name) in names.reversed().enumerated() {
      let path = "\(Self.settledFolder)/\(name)"
      if place >= Self.maximumSettled || folder.age(of: path) > OpenedCopies.lifetime { try? folder.remove(path) }
    }
  }

  /// The writes that were carried out after a request, and are settled, in order.
  func settled(after number: Int) async -> [OutboxRecord] {
    let names = (try? folder.names(in: Self.settledFolder)) ?? []
    return names.sorted().compactMap { name in
      guard let carriedOut = Int(name.prefix(Self.digits)), carriedOut > number, let id = Self.id(in: name),
        case .record(let record)? = file("\(Self.settledFolder)/\(name)", id: id), record.state == .sent
      else { return nil }
      return record
    }
  }

  /// Erases a record, at whatever place it is.
  func erase(_ id: OutboxRecord.ID) async throws {
    for name in try folder.names(in: Self.subfolder) where Self.id(in: name) == id {
      try folder.remove("\(Self.subfolder)/\(name)")
    }
  }

  /// ``read()``
  func contents() async -> Contents? {
    let contents = read()
    if let contents { eraseOrphans(contents) }
    return contents
  }

  /// - Returns: nil if there is no file, or if it cannot be read.
  func content(of record: OutboxRecord) async -> OutboxRecord? {
    guard case .record(let stored)? = file(path(of: record), id: record.id) else { return nil }
    return stored
  }

  func exists(_ record: OutboxRecord) async -> Bool { folder.exists(path(of: record)) }

  private static func id(in name: String) -> OutboxRecord.ID? {
    UUID(uuidString: String(name.dropFirst(digits + 1).prefix(36)))
  }

  private func path(of record: OutboxRecord) -> String {
    "\(Self.subfolder)/\(Self.name(record.sequence, record.id))"
  }

  private static func name(_ number: Int, _ id: OutboxRecord.ID) -> String {
    let number = String(number)
    return "\(String(repeating: "0", count: max(0, digits - number.count)))\(number)-\(id.wire).json"
  }
}
