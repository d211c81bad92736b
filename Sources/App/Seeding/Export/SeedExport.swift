import Foundation
import HTTPServer
import Logging
import Postgres

/// The demo as the API's own responses to its main user, a file for each call, for previews and mocked clients.
/// `index.json` names them: see ``ExportIndex``. `rules.json` has the rules of requests: see ``ExportedRules``.
///
/// The responses come from the router of the service, on a database whose clock stands still. The few texts that still
/// differ from export to export are replaced: see ``canonical(_:)``. So two exports of a day are the same, byte for
/// byte, and a diff shows what has changed.
public struct SeedExport: Sendable {
  /// The day of the examples in the OpenAPI document.
  public static let day = "2026-05-01"
  /// UTC. Some of the day's events are over then, and some are to come.
  private static let time = "T09:30:00Z"
  private static let baseURL = "https://muster.example"
  /// Begins the ids of the demo. All other ids were made during the export.
  private static let seeded = "01900000-0000-7000-"

  private let now: Timestamp
  private var logger: Logger
  private var index: ExportIndex
  private var files: [ExportFolder.File] = []
  /// The placeholder of a text in the files.
  private var replacements: [String: String] = [:]

  /// - Parameter day: the day on which the demo is planted, such as `2026-05-01`.
  /// - Returns: nil if it is not a day.
  public init?(day: String, logger: Logger) throws {
    let isDay = day.wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil
    guard isDay, let now = Timestamp(rfc3339: day + Self.time) else { return nil }
    self.now = now
    self.logger = logger
    // Some calls are refused on purpose.
    self.logger.logLevel = .error
    index = ExportIndex(baseURL: Self.baseURL, time: now, user: try DemoSeed().person(DemoSeed.login).user)
  }

  /// Writes the files into a folder, which is missing, empty or an earlier export. Replaces an earlier export.
  ///
  /// - Parameter database: the URL of an empty database. Afterwards it can be used for nothing else.
  /// - Throws: ``AppError`` if the folder has other files.
  public func write(to folder: URL, database: String) async throws {
    let target = try ExportFolder(folder)
    try await StoppedClock.stop(database, at: now)
    try await Resources.migrator(url: database).up()
    let configuration = try await MusterConfiguration.load(
      for: .dev, environment: [:], file: nil,
      overrides: [
        "DATABASE_URL": database, "MUSTER_PUBLIC_URL": Self.baseURL, "MUSTER_RATE_LIMITS": "off",
        "MUSTER_THROTTLING": "off", "MUSTER_SCRYPT": "ln=4,r=8,p=1",
      ])
    // Nothing ends a session here, so one read of the ended sessions is enough.
    let dependencies = try await Dependencies(
      configuration, name: "muster seed", logger: logger, endedSessionsAge: .seconds(3600))
    var export = self
    do {
      try await export.record(dependencies)
    } catch {
      await dependencies.close()
      throw error
    }
    await dependencies.close()
    try target.write(export.files)
  }

  private mutating func record(_ dependencies: Dependencies) async throws {
    await dependencies.endedSessions.prepare()
    let seed = try DemoSeed()
    try await seed.plant(in: dependencies, now: now.date)
    let user = try seed.person(DemoSeed.login)
    let client = InProcessClient(dependencies)
    let login = DemoSeed.logIn(user)
    let tokens = try await client.send(login, token: nil)
    guard case .object(let members)? = try? JSON(parsing: tokens.body.readableBytesView),
      case .string(let access)? = members["accessToken"], case .string(let refresh)? = members["refreshToken"]
    else { throw Self.failure(login, tokens) }
    replacements = [access: "preview-access-token", refresh: "preview-refresh-token"]
    try add(login, tokens)
    for call in try seed.calls(of: user) { try add(call, try await client.send(call, token: access)) }
    add(ExportedRules(try JSON(parsing: Resources.openAPIJSON.utf8)).json, as: ExportedRules.file)
    add(index, as: ExportFolder.index)
  }

  private mutating func add(_ value: some JSONWritable, as name: String) {
    var json = JSONWriter()
    value.write(to: &json)
    files.append(ExportFolder.File(name: name, bytes: Data(IndentedJSON.text(json.bytes).utf8)))
  }

  private mutating func add(_ call: ExportedCall, _ response: InProcessClient.Response) throws {
    guard response.status == call.status else { throw Self.failure(call, response) }
    let type = response.headers[.contentType] ?? ""
    var bytes = Data(response.body.readableBytesView)
    if type.hasPrefix("text/") { bytes = Data(canonical(String(buffer: response.body)).utf8) }
    if type.contains("json") { bytes = Data(IndentedJSON.text(canonical(String(buffer: response.body)).utf8).utf8) }
    files.append(ExportFolder.File(name: call.file, bytes: bytes))
    index.entries.append(ExportIndex.Entry(call: call, eTag: response.headers[.eTag]))
  }

  /// Replaces the tokens, the random ids of rows created during the export, and the time of a calendar file,
  /// which is the time of this machine's clock.
  private mutating func canonical(_ text: String) -> String {
    for match in text.matches(of: /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/) where !match.0.hasPrefix(Self.seeded) {
      let id = String(match.0)
      if replacements[id] == nil {
        let number = String(replacements.count, radix: 16)
        replacements[id] = "\(Self.seeded)8fff-\(String(repeating: "0", count: 12 - number.count))\(number)"
      }
    }
    var text = text.replacing(/DTSTAMP:[0-9TZ]+/, with: "DTSTAMP:\(now.iCalendarText)")
    for (old, new) in replacements { text = text.replacing(old, with: new) }
    return text
  }

  private static func failure(_ call: ExportedCall, _ response: InProcessClient.Response) -> AppError {
    let body = String(buffer: response.body)
    return AppError(.conflict, "export-failed", "\(call.method) \(call.path) failed: \(response.status) \(body)")
  }
}

/// Sends requests to the router of this process, without a connection.
private struct InProcessClient: Sendable {
  struct Response: Sendable {
    let status: Int
    let headers: HTTPFields
    let body: ByteBuffer
  }

  private let responder: Envelope
  private let logger: Logger

  init(_ dependencies: Dependencies) {
    responder = Envelope(dependencies)
    logger = dependencies.logger
  }

  /// - Parameter token: the access token; nil for a call that needs none.
  func send(_ call: ExportedCall, token: String?) async throws -> Response {
    // Otherwise each problem would have an id of its own.
    var headers: HTTPFields = [.xRequestID: "preview"]
    if let token { headers[.authorization] = "Bearer \(token)" }
    if let body = call.body {
      headers[.contentType] = "application/json"
      headers[.contentLength] = String(body.utf8.count)
    }
    let head = HTTPRequest(
      method: call.method, scheme: "https", authority: "localhost", path: call.path, headerFields: headers)
    let request = Request(head: head, body: RequestBody(ByteBuffer(string: call.body ?? "")))
    let response = try await responder.respond(to: request, context: Context(logger: logger))
    return Response(
      status: Int(response.status.code), headers: response.headers, body: try await response.body.collect())
  }
}

/// A database whose clock stands still and whose random numbers are all 0, so that the same changes always leave the
/// same rows and stamps.
private enum StoppedClock {
  /// Prepares an empty database, before anything else connects to it. The functions come before PostgreSQL's own in the
  /// search path, and so also become the defaults of columns that the migrations create.
  static func stop(_ url: String, at time: Timestamp) async throws {
    let clocks = ["now", "clock_timestamp", "statement_timestamp"].map {
      "CREATE FUNCTION public.\($0)() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT '\(time.rfc3339())'::timestamptz $$;"
    }
    let script =
      clocks.joined(separator: "\n") + """
        CREATE FUNCTION public.random() RETURNS double precision LANGUAGE sql STABLE AS $$ SELECT 0.0::double precision $$;
        DO $$ BEGIN
          EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
        END $$;
        """
    try await ScriptConnection.run(url) { try $0.script(script) }
  }
}
