import CLibpq

/// The steps of COPY.
extension ScriptConnection {
  func begin(copy statement: String) throws {
    guard let result = PQexec(pg, statement) else { throw lost }
    guard PQresultStatus(result) == PGRES_COPY_IN else {
      _ = try check(result)
      throw PostgresError(.misuse, "the statement did not start COPY")
    }
    PQclear(result)
  }

  func put(_ bytes: [UInt8]) throws {
    let isTaken = bytes.withUnsafeBytes {
      PQputCopyData(pg, $0.bindMemory(to: CChar.self).baseAddress, Int32(clamping: $0.count))
    }
    guard isTaken == 1 else { throw lost }
  }

  /// - Parameter reason: why the rows must be discarded; nil to keep them.
  func end(copyBecause reason: String?) throws {
    guard PQputCopyEnd(pg, reason) == 1 else { throw lost }
    let rows = Result { try check(PQgetResult(pg)) }
    while let rest = PQgetResult(pg) { PQclear(rest) }
    _ = try rows.get()
  }
}
