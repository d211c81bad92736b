import Foundation
import Postgres

extension Report {
  /// For operators: the reported user's picture at the time of the report, as a JPEG. Nil if there is none, or no such
  /// report.
  public static func picture(of id: ID, in database: Database) async throws -> Data? {
    try await database.first("SELECT picture FROM reports WHERE id = \(id)").flatMap { try $0["picture"] }
  }
}
