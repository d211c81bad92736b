import HTTPServer
import Postgres

/// The health checks for load balancers, and the OpenAPI document.
struct HealthRoutes {
  /// Load balancers expect a response within a second.
  private static let patience = Duration.milliseconds(800)

  private let database: Database
  private let endedSessions: EndedSessions
  private let schemaWatch: SchemaWatch
  private let readiness: Readiness
  private static let yaml = Document("application/yaml; charset=utf-8", Resources.openAPI)
  private static let json = Document("application/json; charset=utf-8", Resources.openAPIJSON)

  private struct Document {
    let type: String
    let bytes: ByteBuffer
    /// Compressed once, as small as possible.
    let packed: ByteBuffer?

    init(_ type: String, _ text: String) {
      self.type = type
      bytes = ByteBuffer(string: text)
      packed = bytes.gzipped(level: 9)
    }
  }

  init(_ dependencies: Dependencies) {
    database = dependencies.database
    endedSessions = dependencies.endedSessions
    schemaWatch = dependencies.schemaWatch
    readiness = dependencies.readiness
  }

  /// The process is running and can respond.
  @Sendable func live(_ request: Request, _ context: Context) async throws -> Response {
    .json(Health(status: .live))
  }

  /// The process can serve requests: it is not stopping; the database responds, has all migrations of this release and
  /// no breaking one of a newer release; and the copy of the ended sessions is up to date.
  @Sendable func ready(_ request: Request, _ context: Context) async throws -> Response {
    if readiness.isStopping { throw AppError.stopping }
    guard try await areMigrationsApplied() else { throw AppError.migrationsBehind }
    guard schemaWatch.breaking.isEmpty else { throw AppError.migrationsAhead }
    guard endedSessions.isFresh, !readiness.isUnchecked else { throw AppError.databaseUnavailable }
    return .json(Health(status: .ready))
  }

  /// - Throws: 503 if the database is unavailable, or does not respond in time.
  private func areMigrationsApplied() async throws -> Bool {
    let versions = Resources.migrations.map(\.version)
    return try await withThrowingTaskGroup(of: Bool.self) { [database] group in
      group.addTask {
        let applied: Int? = try await database.value(
          "SELECT count(*) FROM schema_migrations WHERE version = ANY(\(versions))")
        return applied == versions.count
      }
      group.addTask {
        try await Task.sleep(for: Self.patience)
        throw AppError.databaseUnavailable
      }
      defer { group.cancelAll() }
      guard let isApplied = try await group.next() else { throw CancellationError() }
      return isApplied
    }
  }

  @Sendable func openAPI(_ request: Request, _ context: Context) async throws -> Response {
    show(Self.yaml, for: request)
  }

  @Sendable func openAPIJSON(_ request: Request, _ context: Context) async throws -> Response {
    show(Self.json, for: request)
  }

  private func show(_ document: Document, for request: Request) -> Response {
    var response = Response(
      status: .ok, headers: [.contentType: document.type], body: ResponseBody(document.bytes))
    if request.takesGzip, let packed = document.packed { response.pack(packed) }
    return response
  }
}

extension AppError {
  static let migrationsBehind = AppError(
    .unavailable, "migrations-behind", "The database lacks migrations of this release.", retryAfter: 10)
  static let migrationsAhead = AppError(
    .unavailable, "migrations-ahead", "The database has a breaking migration that this release does not know.",
    retryAfter: 10)
}

private struct Health: JSONWritable {
  enum Status: String {
    case live, ready
  }

  let status: Status

  func write(to json: inout JSONWriter) {
    json.health(status: status)
  }
}
