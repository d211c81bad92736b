import HTTPTypes
import Hummingbird
import NIOCore
import Postgres

/// For load balancers, and for people who want to know what there is.
struct HealthRoutes {
  private let database: Database
  private let document = ByteBuffer(string: Resources.openAPI)

  init(_ dependencies: Dependencies) {
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.get("health/live", use: live)
    routes.get("health/ready", use: ready)
    routes.get("openapi.yaml", use: openAPI)
  }

  /// The process answers.
  @Sendable private func live(_ request: Request, _ context: Context) async throws -> Response {
    .json(Health(status: "live"))
  }

  /// The process can do its work: the database answers.
  @Sendable private func ready(_ request: Request, _ context: Context) async throws -> Response {
    try await database.rows("SELECT 1")
    return .json(Health(status: "ready"))
  }

  @Sendable private func openAPI(_ request: Request, _ context: Context) async throws -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/yaml; charset=utf-8"], body: ResponseBody(byteBuffer: document))
  }
}

private struct Health: JSONWritable {
  let status: String

  func write(to json: inout JSONWriter) {
    json.object { $0.member("status", status) }
  }
}
