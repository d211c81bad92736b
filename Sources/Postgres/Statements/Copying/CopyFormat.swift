/// The format of COPY's data.
public enum CopyFormat: Sendable {
  /// Comma-separated values.
  case csv(header: Bool)
  /// PostgreSQL's own, with tabs between columns.
  case text
  /// PostgreSQL's own, which COPY reads faster.
  case binary

  var options: SQL {
    switch self {
    case .csv(header: true): "FORMAT csv, HEADER"
    case .csv(header: false): "FORMAT csv"
    case .text: "FORMAT text"
    case .binary: "FORMAT binary"
    }
  }
}
