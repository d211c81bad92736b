import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import Postgres
import Synchronization
import Testing
import TestSupport

@testable import App

/// The complete service, with its own port and database.
struct TestApp: Sendable {
  let url: String
  let databaseURL: String
  let dependencies: Dependencies
  /// The database for the test's set-up and assertions, as the owner of the tables. The service connects as a role that
  /// can only read and write rows: see ``service``.
  let database: Database
  let filed = Filed()

  /// The database as the service and the worker have it.
  var service: Database { dependencies.database }

  /// - Parameter database: nil for that of the service.
  init(url: String, databaseURL: String, dependencies: Dependencies, database: Database? = nil) {
    (self.url, self.databaseURL, self.dependencies) = (url, databaseURL, dependencies)
    self.database = database ?? dependencies.database
  }

  private static let template = Task {
    try await TestCluster.makeTemplate("muster_template") { url in
      try await Resources.migrator(url: url, role: TestCluster.programRole).up()
      try await RunningApp.prepare(url)
    }
  }

  /// The system's time zones, read once.
  static let zones = Task { try ZoneDatabase(folder: ZoneDatabase.usualFolder) }

  static let accessTokenKeys = Muster.accessTokenKeys
  static let refreshTokenKeys = Muster.refreshTokenKeys

  /// Runs `body` with a service. Fails if notifications are left that the test did not take.
  ///
  /// Most tests take turns with a service and its database: see ``RunningApp``.
  ///
  /// - Parameters:
  ///   - isShared: whether other tests may use the same service before and after. If false, the test gets a new one.
  ///   - endedSessionsAge: how long a copy of the ended sessions is trusted.
  ///   - queuesWrites: if false, concurrent writes meet in the database, as the writes of several processes do.
  ///   - hostAge: seconds after which a user causes mails to strangers. By default, tests' users do so immediately.
  ///   - decoderPath: the folders of the picture decoder. By default, those in `PATH`.
  ///   - pastPooler: connects to PostgreSQL directly. Other tests may use a pooler, whose connections outlive those of
  ///     the service.
  ///   - prepare: gets the database before the service connects to it.
  static func run(
    _ environment: [String: String] = [:], isShared: Bool = true, limits: ServiceLimits? = nil,
    logger: Logger? = nil, endedSessionsAge: Duration? = nil, lockWait: Duration? = nil, queuesWrites: Bool = true,
    hostAge: Int? = nil, decoderPath: String? = nil, pastPooler: Bool = false,
    prepare: (@Sendable (_ databaseURL: String) async throws -> Void)? = nil,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (TestApp) async throws -> Void
  ) async throws {
    let isCommon =
      limits == nil && logger == nil && endedSessionsAge == nil && lockWait == nil && decoderPath == nil
      && hostAge == nil
      && !pastPooler && prepare == nil
    let kind = isShared && isCommon ? RunningApp.Kind(environment, queuesWrites: queuesWrites) : nil
    try await template.value
    try await TestCluster.withPlace {
      let running: RunningApp
      if let idle = kind.flatMap(RunningApp.take) {
        running = idle
      } else {
        running = try await RunningApp { databaseURL in
          try await prepare?(databaseURL)
          // Without a public URL, picture URLs use the port, which is not known before the service listens.
          var variables = Muster.environment(databaseURL)
          variables["MUSTER_PUBLIC_URL"] = nil
          var configuration = try await MusterConfiguration.load(
            for: .dev, environment: variables.merging(environment) { $1 }, file: nil)
          #expect(configuration.unknownVariables.isEmpty, sourceLocation: sourceLocation)
          if Emulation.isOn {
            if environment["MUSTER_ENGINE"] == nil { try await Emulation.begin(in: databaseURL) }
            configuration.engine = .distributed
          }
          if !pastPooler, let pooled = try await TestCluster.pooled(TestCluster.limited(databaseURL)) {
            configuration.databaseURL = pooled
            configuration.isBehindPooler = true
          }
          let zones = environment[Variable.table.zoneFolder.name] == nil ? try await Self.zones.value : nil
          let dependencies = try await Dependencies(
            configuration, name: "test", logger: logger ?? .quiet,
            // A test machine may be overloaded.
            endedSessionsAge: endedSessionsAge ?? .seconds(30), connectTimeout: .seconds(10),
            connectionWait: .seconds(30), lockWait: lockWait ?? .seconds(20), queuesWrites: queuesWrites,
            hostAge: hostAge ?? 0, decoderPath: decoderPath, launcher: Program.path("muster"),
            picturePatience: .seconds(120),
            zones: zones)
          return (dependencies, limits ?? ServiceLimits())
        }
      }
      do {
        try await body(running.app)
        let left = try await running.app.takeNotifications()
        #expect(left.isEmpty, "notifications that the test did not take", sourceLocation: sourceLocation)
        try await running.app.database.execute("\(unescaped: TestCluster.checkingCopies)")
      } catch {
        try? await running.end()
        throw error
      }
      if let kind, await running.restore() { try await running.keep(for: kind) } else { try await running.end() }
    }
  }

  /// A migrated, empty database.
  static func withDatabase(_ body: (_ url: String) async throws -> Void) async throws {
    try await template.value
    try await TestCluster.withDatabase(template: "muster_template", body)
  }

  // MARK: Requests

  /// The client that sends requests. See ``withConnections(_:_:)``. It takes no compressed responses: the library
  /// refuses texts that repeat themselves as much as those of tests, and cannot read the response to HEAD.
  @TaskLocal static var client: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.decompression = .disabled
    configuration.timeout.connect = .seconds(60)
    return HTTPClient(configuration: configuration)
  }()

  /// Runs `body` with this number of connections to the service instead of 8.
  ///
  /// - Parameter isPatient: whether to wait for a while if the service does not listen. If false, that is an error.
  func withConnections<Value: Sendable>(
    _ count: Int, isPatient: Bool = true, _ body: () async throws -> Value
  ) async throws -> Value {
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(60)
    configuration.connectionPool.retryConnectionEstablishment = isPatient
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = count
    let client = HTTPClient(configuration: configuration)
    do {
      let value = try await Self.$client.withValue(client) { try await body() }
      try await client.shutdown()
      return value
    } catch {
      try? await client.shutdown()
      throw error
    }
  }

  /// Sends a request, with or without a token.
  func send(
    _ method: String, _ path: String, body: String? = nil, headers: [(String, String)] = [], token: String? = nil
  ) async throws -> APIResponse {
    var request = HTTPClientRequest(url: path.hasPrefix("/") ? url + path : "\(url)/api/v1/\(path)")
    request.method = .RAW(value: method)
    if let body {
      request.body = .bytes(ByteBuffer(string: body))
      request.headers.add(name: "Content-Type", value: "application/json")
    }
    if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
    for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
    let received = try await Self.client.execute(request, timeout: .seconds(180))
    // An event stream does not end. Leaving the loop after the first bytes closes the connection.
    if received.headers.first(name: "Content-Type") == "text/event-stream" {
      var first = ByteBuffer()
      for try await bytes in received.body {
        first = bytes
        break
      }
      return APIResponse(
        status: Int(received.status.code), headers: received.headers.map { ($0, $1) }, body: String(buffer: first))
    }
    let bytes = try await received.body.collect(upTo: 16 << 20)
    let response = APIResponse(
      status: Int(received.status.code), headers: received.headers.map { ($0, $1) }, body: String(buffer: bytes))
    let faults = APIDocument.published?.faults(in: response, to: method, URL(string: request.url)?.path ?? "") ?? []
    #expect(faults == [], "\(method) \(path): \(response.status) \(response.body.prefix(1000))")
    return response
  }

  /// Registers a user, who is then logged in.
  ///
  /// - Parameter isVerified: whether the user has followed the link in the mail.
  func signUp(_ username: String, displayName: String? = nil, isVerified: Bool = true) async throws -> Phone {
    let name = displayName ?? username.prefix(1).uppercased() + username.dropFirst()
    let response = try await send(
      "POST", "auth/register",
      body: """
        {"username": "\(username)", "email": "\(username)@example.com", "password": "correct horse \(username)",
         "displayName": "\(name)"}
        """)
    #expect(response.status == 201, "\(response.body)")
    let phone = try Phone(self, username, response)
    if isVerified { try await verifyAddress(of: phone) }
    return phone
  }

  /// Marks an address as verified, as the link in the mail does.
  func verifyAddress(of phone: Phone) async throws {
    try await database.batch("UPDATE users SET email_verified_at = now() WHERE id = \(phone.userID)")
  }

  /// Signs up two users and makes them friends. The queue is empty afterwards.
  func friends(_ first: String, _ second: String) async throws -> (Phone, Phone) {
    let (one, other) = (try await signUp(first), try await signUp(second))
    try await befriend(one, other)
    return (one, other)
  }

  /// Makes two users friends, and discards the notifications of it.
  func befriend(_ one: Phone, _ other: Phone) async throws {
    let request = try await one.sendFriendRequest(to: other)
    try await other.accept(request)
    try await takeNotifications()
  }

  /// Logs in. The response may have any status.
  ///
  /// - Parameters:
  ///   - login: a username or an email address.
  ///   - device: the name of the device, or nil to omit it.
  ///   - forwarded: the client's address in a proxy's header, or nil without a proxy.
  func logIn(
    _ login: String, _ password: String, device: String? = nil, from forwarded: String? = nil
  ) async throws -> APIResponse {
    let named: String = device.map { #", "device": "\#($0)""# } ?? ""
    let headers: [(String, String)] = forwarded.map { [("X-Forwarded-For", $0)] } ?? []
    return try await send(
      "POST", "auth/login", body: #"{"login": "\#(login)", "password": "\#(password)"\#(named)}"#, headers: headers)
  }

  func askForReset(_ email: String) async throws -> APIResponse {
    try await send("POST", "auth/password-reset", body: #"{"email": "\#(email)"}"#)
  }

  func confirmReset(_ token: String, _ password: String) async throws -> APIResponse {
    try await send(
      "POST", "auth/password-reset/confirm", body: #"{"token": "\#(token)", "newPassword": "\#(password)"}"#)
  }

  func askForCode(_ email: String) async throws -> APIResponse {
    try await send("POST", "auth/code", body: #"{"email": "\#(email)"}"#)
  }

  /// Logs in with a mailed code. The response may have any status.
  func confirmCode(_ code: String, of email: String) async throws -> APIResponse {
    try await send("POST", "auth/code/confirm", body: #"{"email": "\#(email)", "code": "\#(code)"}"#)
  }

  /// Logs in with the token of a mail that has a code.
  func confirmCode(byToken token: String) async throws -> APIResponse {
    try await send("POST", "auth/code/confirm", body: #"{"token": "\#(token)"}"#)
  }

  /// Verifies an email address with the token that was mailed to it, as a reader who is not logged in.
  func verify(_ token: String) async throws -> APIResponse {
    try await send("POST", "auth/email/verify", body: #"{"token": "\#(token)"}"#)
  }

  /// Sends requests concurrently, and counts the responses by status.
  func race(
    _ count: Int, _ request: @escaping @Sendable (_ index: Int) async throws -> APIResponse
  ) async throws -> [Int: Int] {
    try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<count { group.addTask { try await request(index).status } }
      return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
  }

  // MARK: Queues

  struct Queued: Equatable, CustomStringConvertible {
    let type: String
    let recipient: String
    let payload: JSON

    var description: String { "\(type) for \(recipient): \(payload)" }

    static func == (left: Queued, right: (String, Phone)) -> Bool {
      left.type == right.0 && left.recipient == right.1.id
    }
  }

  /// The notices in the queue, one per recipient, oldest first.
  func queuedNotices() async throws -> [Queued] {
    let rows = try await database.rows(
      """
      SELECT q.type, recipient.id AS recipient_id, q.payload
      FROM notification_queue AS q
      CROSS JOIN LATERAL unnest(q.recipient_ids) AS recipient (id)
      ORDER BY q.id, recipient.id
      """)
    return try rows.map { row in
      let recipient: User.ID = try row["recipient_id"]
      let payload = Notice.rendered(try row["payload"], at: .now())
      return Queued(
        type: try row["type"], recipient: recipient.description, payload: try JSON(parsing: payload.text.utf8))
    }
  }

  /// The notices that ``fanOut()`` has filed since the last ``takeNotifications()``.
  final class Filed: Sendable {
    private let notices = Mutex<[Queued]>([])

    func add(_ more: [Queued]) {
      notices.withLock { $0 += more }
    }

    func take() -> [Queued] {
      notices.withLock { notices in
        defer { notices = [] }
        return notices
      }
    }
  }

  /// Empties the queue, and returns all notices since the last call. They reach the inboxes, but no device.
  @discardableResult
  func takeNotifications() async throws -> [Queued] {
    try await fanOut()
    try await database.batch("DELETE FROM deliveries", "DELETE FROM mails")
    return filed.take()
  }

  /// Files all queued notices in the inboxes, as a worker does. ``takeNotifications()`` still returns them.
  func fanOut() async throws {
    try await endMinuteOfVisitors()
    filed.add(try await queuedNotices())
    while try await FanOut.step(in: service).notices > 0 {}
    #expect(try await value("SELECT count(*) FROM notification_queue") == 0)
  }

  /// Notifies hosts of the answers that wait, and lets the next answer wait for nothing, as after a minute.
  func endMinuteOfVisitors() async throws {
    // Whatever a test has set the clock to.
    try await database.batch("UPDATE visitor_news SET due_at = '-infinity' WHERE due_at IS NOT NULL")
    // An event that a change still locks is skipped.
    try await eventually {
      while try await service.change({ try await VisitorNews.tellNext(in: $0) }) {}
      return try await value("SELECT count(*) FROM visitor_news WHERE due_at IS NOT NULL") == 0
    }
    try await database.batch("DELETE FROM visitor_news")
  }

  /// Files notices while other tasks do the same, until none is queued for these users.
  func fanOut(for people: Phone...) async throws {
    let ids = people.map(\.userID)
    try await eventually {
      while try await FanOut.step(in: service).notices > 0 {}
      return try await value("SELECT count(*) FROM notification_queue WHERE recipient_ids && \(ids)") == 0
    }
  }

  /// Runs `body` while a worker fans out. ``takeNotifications()`` does not return what it files.
  func withFanOut<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    let worker = Task {
      while !Task.isCancelled {
        do {
          if try await FanOut.step(in: service).notices > 0 { continue }
        } catch {
          // Some tests cause errors on purpose. The next step tries again.
        }
        try? await Task.sleep(for: .milliseconds(5))
      }
    }
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    worker.cancel()
    await worker.value
    return try result.get()
  }

  struct Mailed {
    /// For example `mail-verify-email`.
    let type: String
    let to: String
    /// The token that the recipient would send, and the code that they would type.
    var token: String?
    var code: String?
    /// The token of a visitor's page.
    var page: String?
  }

  /// Empties the queue of mails, and returns the mails, oldest first.
  @discardableResult
  func takeMails() async throws -> [Mailed] {
    let rows = try await database.execute(
      """
      WITH taken AS (DELETE FROM mails RETURNING id, type, mail_token_id, visitor_id, payload)
      SELECT type, coalesce(payload->>'to', v.email) AS email, mail_token_id AS token, payload->>'kid' AS kid,
        payload->>'purpose' AS purpose, \(Visitor.columns)
      FROM taken
      LEFT JOIN visitors AS v ON v.id = taken.visitor_id
      ORDER BY taken.id
      """)
    return try rows.map { row in
      var mailed = Mailed(type: try row["type"], to: try row["email"], token: nil)
      if try (row["visitor_id"] as Guest.ID?) != nil {
        mailed.page = dependencies.visitorTokens.mailed(to: try Visitor(row: row))
      }
      if let id: MailToken.ID = try row["token"], let purpose: MailToken.Purpose = try row["purpose"] {
        let (kid, keys): (String, SigningKeys) = (try row["kid"], dependencies.refreshTokenKeys)
        mailed.token = MailToken.text(of: id, for: purpose, kid: kid, keys: keys)
        if purpose == .signInCode { mailed.code = SignInCode.text(of: id, kid: kid, keys: keys) }
      }
      return mailed
    }
  }

  /// Takes the mails, and returns the token of the only mail of a type.
  func takeToken(_ type: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
    let mails = try await takeMails().filter { $0.type == type }
    #expect(mails.count == 1, "\(mails)", sourceLocation: sourceLocation)
    return try #require(mails.first?.token, sourceLocation: sourceLocation)
  }

  /// Requests a code for an address, and takes it from the only mail that has one.
  func takeCode(
    of email: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (code: String, token: String) {
    let response = try await askForCode(email)
    #expect(response.status == 202, "\(response.body)", sourceLocation: sourceLocation)
    let mails = try await takeMails().filter { $0.type == "mail-sign-in-code" }
    #expect(mails.count == 1, "\(mails)", sourceLocation: sourceLocation)
    return (
      try #require(mails.first?.code, sourceLocation: sourceLocation),
      try #require(mails.first?.token, sourceLocation: sourceLocation)
    )
  }

  /// Waits until this number of statements in this database wait for a lock.
  func waitForLocks(_ count: Int) async throws {
    try await eventually {
      let waiting: Int? = try await value(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
      return waiting == count
    }
  }

  /// A text that changes with any row of any table.
  func contents() async throws -> String? {
    try await value(
      """
      SELECT string_agg(table_name || query_to_xml(
        format('SELECT md5(string_agg(t.xmin || t::text, '','' ORDER BY t::text)) FROM %I AS t', table_name),
        true, false, '')::text, ',' ORDER BY table_name)
      FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
      """)
  }

  /// Runs one statement and returns its single value.
  func value<Value: SQLValue>(_ sql: SQL, as: Value.Type = Value.self) async throws -> Value? {
    try await database.value(sql)
  }
}

extension String {
  /// Another code of six digits than this one, for each number below a million.
  func wrongCode(_ number: Int) -> String {
    let digits = String(((Int(self) ?? 0) + number) % 1_000_000)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }
}

extension ServiceLimits {
  /// The service's limits, some of them changed.
  static func with(_ change: (inout ServiceLimits) -> Void) -> ServiceLimits {
    var limits = ServiceLimits()
    change(&limits)
    return limits
  }
}
