import CLibpq

/// The steps of COPY.
extension ScriptConnection {
  /// - Parameter direction: the state that the statement must lead to.
  func begin(copy statement: String, _ direction: ExecStatusType) throws {
    guard let result = PQexec(pg, statement) else { throw lost }
    guard PQresultStatus(result) == direction else {
      _ = try check(result)
      throw PostgresError(.misuse, "the statement did not start COPY")
    }
    PQclear(result)
  }

  // MARK: In

  func put(_ bytes: [UInt8]) throws {
    let isTaken = bytes.withUnsafeBytes {
      PQputCopyData(pg, $0.bindMemory(to: CChar.self).baseAddress, Int32(clamping: $0.count))
    }
    guard isTaken == 1 else { throw lost }
  }

  /// - Parameter reason: why the rows must be discarded; nil to keep them.
  func end(copyBecause reason: String?) throws {
    guard PQputCopyEnd(pg, reason) == 1 else { throw lost }
    try endCopy()
  }

  // MARK: Out

  /// The next piece, which the caller must free; nil after the last one.
  func take() throws -> UnsafeMutableRawBufferPointer? {
    var piece: UnsafeMutablePointer<CChar>?
    let count = PQgetCopyData(pg, &piece, 0)
    guard count != -2 else { throw lost }
    return piece.flatMap { count > 0 ? UnsafeMutableRawBufferPointer(start: $0, count: Int(count)) : nil }
  }

  /// Stops the query and drops what it still sends, so that the connection can be used again.
  func discardCopy() {
    _ = CancelHandle(of: pg)?.cancel()
    while let piece = try? take() { PQfreemem(piece.baseAddress) }
    while let rest = PQgetResult(pg) { PQclear(rest) }
  }

  /// Reads the result behind the data.
  func endCopy() throws {
    let rows = Result { try check(PQgetResult(pg)) }
    while let rest = PQgetResult(pg) { PQclear(rest) }
    _ = try rows.get()
  }

  /// The columns of a query, without running it.
  func describe(_ query: SQL) throws -> Columns {
    if let problem = query.problem { throw problem }
    _ = try check(PQprepare(pg, "", query.text, 0, nil))
    guard let result = PQdescribePrepared(pg, "") else { throw lost }
    guard PQresultStatus(result) == PGRES_COMMAND_OK else {
      _ = try check(result)
      throw lost
    }
    defer { PQclear(result) }
    return Columns(of: result)
  }
}
