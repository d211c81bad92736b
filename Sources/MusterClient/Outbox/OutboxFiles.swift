import Foundation

/// The files of the outbox: one for each write, named by its place in the order. Several processes may share them.
struct OutboxFiles: Sendable {
  private static let subfolder = "outbox"
  private static let digits = 12

  let folder: StoreFolder

  init(_ folder: StoreFolder) throws {
    self.folder = folder
    try folder.makeSubfolder(Self.subfolder)
  }

  /// All records, in order. A file that cannot be decoded is left out and stays, because a later version of the app may
  /// have written it.
  func records() -> [OutboxRecord] {
    names().compactMap { name in
      folder.read("\(Self.subfolder)/\(name)").flatMap { try? JSONDecoder().decode(OutboxRecord.self, from: $0) }
    }
  }

  /// The next free place in the order.
  func nextSequence() -> Int { (names().last.flatMap { Int($0.prefix(Self.digits)) } ?? 0) + 1 }

  /// Writes a record. It is on the disk when this returns.
  func write(_ record: OutboxRecord) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    try folder.write(encoder.encode(record), to: path(of: record))
  }

  func remove(_ record: OutboxRecord) throws { try folder.remove(path(of: record)) }

  private func names() -> [String] { folder.names(in: Self.subfolder).sorted() }

  private func path(of record: OutboxRecord) -> String {
    let number = String(record.sequence)
    let padding = String(repeating: "0", count: max(0, Self.digits - number.count))
    return "\(Self.subfolder)/\(padding)\(number)-\(record.id.wire).json"
  }
}
