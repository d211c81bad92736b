/// The rows of one statement, fetched in parts while they are read: see ``Transaction/stream(_:partsOf:)``.
///
/// Each iteration runs the statement again. It must end before its transaction does.
public struct RowStream: AsyncSequence, Sendable {
  public typealias Element = Row

  /// The usual number of rows of each part.
  public static let usualSize = 1000

  let transaction: Transaction
  let sql: SQL
  let size: Int

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(stream: self)
  }

  /// Fetches the next part when the last row of the previous one was read.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let stream: RowStream
    private var cursor: Cursor?
    private var part: Rows?
    private var place = 0
    private var isLast = false

    fileprivate init(stream: RowStream) {
      self.stream = stream
    }

    /// - Throws: ``PostgresError``, or `CancellationError`.
    public mutating func next() async throws -> Row? {
      if let part, place < part.count {
        defer { place += 1 }
        return part[place]
      }
      if isLast { return nil }
      let next = try await fetch()
      (part, place) = (next, 1)
      return next.first
    }

    private mutating func fetch() async throws -> Rows {
      let size = Swift.max(1, stream.size)
      let isFirst = cursor == nil
      let cursor = cursor ?? Cursor(number: stream.transaction.nextCursor())
      self.cursor = cursor
      let statements = (isFirst ? [cursor.declare(stream.sql)] : []) + [cursor.fetch(size)]
      let results = try await stream.transaction.send(statements)
      guard let rows = results.last else { throw PostgresError(.misuse, "FETCH had no result") }
      if rows.count < size {
        isLast = true
        try stream.transaction.write(cursor.close)
      }
      return rows
    }
  }
}

/// A cursor of a transaction. Its name and the size of its parts are whole numbers, and so the only text that varies.
private struct Cursor {
  let number: Int

  private var name: SQL { "c\(unescaped: String(number))" }

  func declare(_ sql: SQL) -> SQL { "DECLARE \(name) NO SCROLL CURSOR FOR \(sql)" }
  func fetch(_ count: Int) -> SQL { "FETCH FORWARD \(unescaped: String(count)) FROM \(name)" }
  var close: SQL { "CLOSE \(name)" }
}
