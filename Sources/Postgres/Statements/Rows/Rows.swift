import CLibpq

/// The result of one statement: its rows, in order, and the number of rows that it affected.
public struct Rows: RandomAccessCollection, Sendable {
  private let result: ResultHandle

  init(_ result: ResultHandle) {
    self.result = result
  }

  public var startIndex: Int { 0 }
  public var endIndex: Int { result.count }

  /// - Precondition: the index is one of `indices`, as in any collection.
  public subscript(index: Int) -> Row {
    precondition(index >= 0 && index < result.count, "row \(index) of \(result.count)")
    return Row(result: result, index: index)
  }

  /// The number of rows that INSERT, UPDATE, DELETE or SELECT reported.
  public var affected: Int {
    Int(String(cString: PQcmdTuples(result.pointer))) ?? 0
  }

  /// The server's command tag, such as `COMMIT` or `UPDATE 3`.
  var commandTag: String {
    String(cString: PQcmdStatus(result.pointer))
  }
}
