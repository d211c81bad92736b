import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct ReadinessTests {
  @Test func `a process turns unready while the database has a breaking migration that it does not know`() async throws
  {
    try await TestApp.run { app in
      func readiness() async throws -> String? {
        let response = try await app.send("GET", "/health/ready")
        return response.status == 200 ? nil : response.problem
      }
      try await app.database.execute(
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9998', '9998_wide', '', false)")
      try await app.dependencies.schemaWatch.read()
      #expect(try await readiness() == nil)
      try await app.database.execute(
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9999', '9999_new', '', true)")
      // The service checks by itself.
      try await eventually { try await readiness() == "migrations-ahead" }
      #expect(app.dependencies.schemaWatch.breaking == ["9999_new"])
      // The migration is undone.
      try await app.database.execute("DELETE FROM schema_migrations WHERE version = '9999'")
      try await app.dependencies.schemaWatch.read()
      #expect(try await readiness() == nil)
    }
  }
}
